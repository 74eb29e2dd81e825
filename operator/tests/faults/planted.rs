//! What must not be is planted, and the checker of that invariant finds it, and no other does.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use water_domain::KeyHash;
use water_harness::HttpClient;
use water_keystore::{Declaration, Origin, Owner, Record};

use crate::clients::{Expected, Tally};
use crate::invariants::{Violation, accounts};
use crate::objects::secret_name;
use crate::population::in_force;
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::world::{API, PATIENCE};

const NAME: &str = "acme";

/// A stage with one key in force at which everything holds, and the key's hash.
async fn stage(namespace: &str) -> Result<(Stage, KeyHash)> {
    let stage = Stage::new(namespace).await?;
    let subject = Scenario::Suspend.prepare(&stage, NAME).await?;
    stage.holds().await?;
    Ok((stage, subject.before.context("a key")?))
}

/// The numbers of the invariants that do not hold.
fn numbers(found: &[Violation]) -> BTreeSet<u8> {
    found.iter().map(|violation| violation.invariant).collect()
}

/// Waits until the violations are of exactly this invariant.
async fn is_found(stage: &Stage, invariant: u8) -> Result<()> {
    let found = async || {
        let found = stage.violations().await?;
        ensure!(numbers(&found) == BTreeSet::from([invariant]), "{found:?}");
        Ok(())
    };
    stage
        .wait("the violation to be found", PATIENCE, found)
        .await
}

/// Declares by hand, as an operator would that is out of its mind.
async fn declare(
    stage: &Stage,
    records: BTreeMap<KeyHash, Record>,
    withdrawn: BTreeSet<KeyHash>,
) -> Result<()> {
    let directory = stage.world.directory()?;
    let meta = directory.observe().await?.meta.context("no meta")?;
    let (writer, _) = directory.claim(&meta.owner, &meta.api, None).await?;
    let key = stage.objects.key(NAME).await?.context("no ApiKey")?;
    let uid = key.metadata.uid.context("no uid")?;
    let sight = directory.sight(&uid, &Origin::Generated, &[]).await?;
    let declaration = Declaration {
        owner: Owner {
            uid: uid.into(),
            namespace: stage.world.namespace.as_str().into(),
            name: NAME.into(),
        },
        number: sight.number,
        records,
        withdrawn,
        revoked: BTreeSet::new(),
        reinstated: BTreeMap::new(),
        origin: Origin::Generated,
        is_last: false,
    };
    writer.declare(&declaration).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_differs_from_what_is_declared_is_found() -> Result<()> {
    let (stage, hash) = stage("planted-record").await?;
    stage.operator.kill()?;
    let shard = format!("wd:{{planted-record.{API}}}:records:{}", hash.shard());
    stage.redis.command(&["DEL", &shard]).await?;
    is_found(&stage, 1).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_record_of_an_api_key_that_nobody_can_read_is_found() -> Result<()> {
    let (stage, _) = stage("planted-unreadable").await?;
    let hash = in_force(&stage, "comma", 'c').await?;
    let comma = json!({ "spec": { "notBefore": "2026-01-01T00:00:00,5Z" } });
    stage.world.patch("apikey/comma", &comma, &[])?;
    let told = async || stage.holds().await;
    stage.wait("it to be told of", PATIENCE, told).await?;
    stage.operator.kill()?;
    let shard = format!("wd:{{planted-unreadable.{API}}}:records:{}", hash.shard());
    stage.redis.command(&["DEL", &shard]).await?;
    is_found(&stage, 1).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_without_an_owner_is_found() -> Result<()> {
    let (stage, _) = stage("planted-orphan").await?;
    stage.operator.kill()?;
    let stripped = json!({ "metadata": { "finalizers": null } });
    stage.objects.edit(NAME, &stripped).await?;
    stage.objects.delete(NAME).await?;
    is_found(&stage, 2).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_secret_and_another_text_are_found() -> Result<()> {
    let (stage, _) = stage("planted-secret").await?;
    stage.operator.kill()?;
    let secret = format!("secret/{}", secret_name(NAME));
    let mut copy = stage.world.get(&secret)?;
    copy["metadata"] = json!({
        "name": "copy",
        "labels": copy["metadata"]["labels"],
        "annotations": copy["metadata"]["annotations"],
    });
    stage.world.apply(&copy)?;
    is_found(&stage, 3).await?;
    stage.world.kubectl(&["delete", "secret", "copy"])?;
    stage.holds().await?;
    // Nobody would delete it with its ApiKey.
    let owners = stage.world.get(&secret)?["metadata"]["ownerReferences"].clone();
    let owned_by = |owners| json!({ "metadata": { "ownerReferences": owners } });
    stage.world.patch(&secret, &owned_by(json!(null)), &[])?;
    is_found(&stage, 3).await?;
    stage.world.patch(&secret, &owned_by(owners), &[])?;
    stage.holds().await?;
    let text = json!({ "stringData": { "api-key": "another" } });
    stage.world.patch(&secret, &text, &[])?;
    is_found(&stage, 3).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finalizer_that_goes_while_a_gate_accepts_the_key_is_found() -> Result<()> {
    let (stage, _) = stage("planted-release").await?;
    // What the operator sends when it lets an ApiKey go; that it is refused here does not matter.
    let path = "/apis/waterdata.dev/v1/namespaces/planted-release/apikeys/acme";
    let body = json!({ "metadata": { "finalizers": [] } }).to_string();
    let length = body.len();
    let head = format!("PATCH {path} HTTP/1.1\r\nHost: api\r\nContent-Length: {length}\r\n\r\n");
    let mut client = HttpClient::connect(stage.api_server).await?;
    client.send(head + &body).await?;
    client.answer().await?;
    is_found(&stage, 4).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_outside_of_its_secret_is_found() -> Result<()> {
    let (stage, _) = stage("planted-text").await?;
    assert_eq!(stage.shown_texts().await?, []);
    let template = "--output=go-template={{index .data \"api-key\" | base64decode}}";
    let secret = secret_name(NAME);
    let text = stage.world.kubectl(&["get", "secret", &secret, template])?;
    let literal = format!("--from-literal=text={text}");
    stage
        .world
        .kubectl(&["create", "configmap", "leak", &literal])?;
    let found = stage.shown_texts().await?;
    ensure!(found.len() == 1, "{found:?}");
    ensure!(
        found[0].found.contains("etcd") && !found[0].found.contains(&text),
        "what is told"
    );
    stage.redis.command(&["SET", "leak", &text]).await?;
    ensure!(stage.shown_texts().await?.len() == 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_that_writes_is_found() -> Result<()> {
    let (stage, _) = stage("planted-write").await?;
    assert_eq!(stage.restart_writes().await?, []);
    stage.operator.stop(PATIENCE).await?;
    let before = stage.point().await?;
    stage
        .objects
        .edit(NAME, &json!({ "spec": { "suspend": true } }))
        .await?;
    stage.start_again()?;
    // The passes over the WaterDataApi do not wait for those over keys.
    stage
        .world
        .condition("apikey/acme", "Ready", "True/Suspended")
        .await?;
    let found = stage.writes_since(before).await?;
    ensure!(numbers(&found) == BTreeSet::from([6]), "{found:?}");
    let told = found.iter().map(Violation::to_string).collect::<String>();
    ensure!(told.contains("apikeys/acme/status"), "{told}");
    ensure!(told.contains("changed the directory"), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_decreases_is_found() -> Result<()> {
    let (stage, _) = stage("planted-order").await?;
    stage.operator.kill()?;
    let meta = format!("wd:{{planted-order.{API}}}:meta");
    let lower = "local meta = cjson.decode(redis.call('GET', KEYS[1])) \
        meta[ARGV[1]] = meta[ARGV[1]] - 1 \
        redis.call('SET', KEYS[1], cjson.encode(meta))";
    stage
        .redis
        .command(&["EVAL", lower, "1", &meta, "term"])
        .await?;
    is_found(&stage, 7).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_valid_key_that_is_refused_is_found() -> Result<()> {
    let (stage, hash) = stage("planted-refusal").await?;
    stage.operator.kill()?;
    declare(&stage, BTreeMap::new(), BTreeSet::from([hash])).await?;
    let found = async || {
        let found = accounts(&stage.clients.tallies());
        ensure!(numbers(&found) == BTreeSet::from([8]), "{found:?}");
        Ok(())
    };
    stage.wait("the refusal to be found", PATIENCE, found).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_that_is_accepted_is_found() -> Result<()> {
    let (stage, hash) = stage("planted-acceptance").await?;
    let stored = stage.world.directory()?.stored().await?;
    let record = stored.get(&hash).context("no record")?.record.clone()?;
    let suspended = json!({ "spec": { "suspend": true } });
    stage.clients.expect(hash, Expected::Either);
    stage.objects.edit(NAME, &suspended).await?;
    stage
        .world
        .condition("apikey/acme", "Ready", "True/Suspended")
        .await?;
    stage.clients.expect(hash, Expected::Refused);
    stage.holds().await?;
    stage.operator.kill()?;
    declare(&stage, BTreeMap::from([(hash, record)]), BTreeSet::new()).await?;
    let found = async || {
        let found = accounts(&stage.clients.tallies());
        ensure!(numbers(&found) == BTreeSet::from([9]), "{found:?}");
        Ok(())
    };
    stage
        .wait("the acceptance to be found", PATIENCE, found)
        .await
}

#[test]
fn an_answer_that_is_missing_is_found() -> Result<()> {
    let hash: KeyHash = "ab".repeat(32).parse()?;
    let tally = |sent| Tally {
        sent,
        accepted: 2,
        refused: 1,
        ..Tally::default()
    };
    let of = |sent| accounts(&BTreeMap::from([(hash, tally(sent))]));
    assert_eq!(of(3), []);
    assert_eq!(numbers(&of(4)), BTreeSet::from([10]));
    Ok(())
}

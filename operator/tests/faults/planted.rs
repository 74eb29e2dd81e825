//! What must not be is planted, and the checker of that invariant finds it, and no other does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use water_domain::{AccountId, KeyHash, PlanName};
use water_harness::{HttpClient, Port, Process, Program};
use water_keystore::{Declaration, KeyState, Origin, Owner, Record};

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

/// What was planted is taken away again, and nothing else was broken.
async fn is_whole(stage: &Stage) -> Result<()> {
    let found = stage.violations().await?;
    ensure!(found.is_empty(), "{found:?}");
    Ok(())
}

/// A change of a record.
type Edit<'a> = &'a dyn Fn(&mut Record);

/// The record of a key.
async fn record(stage: &Stage, hash: &KeyHash) -> Result<Record> {
    let stored = stage.world.directory()?.stored().await?;
    let record = stored.get(hash).and_then(|stored| stored.record.clone());
    record.context("no record")
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
    let snapshot = directory
        .owner_snapshot(&uid, &Origin::Generated, &[])
        .await?;
    let declaration = Declaration {
        owner: Owner {
            uid: uid.into(),
            namespace: stage.world.namespace.as_str().into(),
            name: NAME.into(),
        },
        number: snapshot.number,
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
    // What a gate makes of it is another invariant's.
    stage.clients.forget();
    let declared = record(&stage, &hash).await?;
    let extra: KeyHash = "ab".repeat(32).parse()?;
    let now = Some(stage.now().await?);
    let (plan, account) = ("Free".parse()?, "other".parse()?);
    let mut differing = vec![
        ("no record", vec![]),
        (
            "a second key",
            vec![(hash, declared.clone()), (extra, declared.clone())],
        ),
    ];
    let fields: [(&str, Edit<'_>); 6] = [
        ("another plan", &|one| one.plan = PlanName::clone(&plan)),
        ("another account", &|one| {
            one.account = AccountId::clone(&account)
        }),
        ("another state", &|one| one.state = KeyState::Suspended),
        ("a beginning", &|one| one.not_before = now),
        ("an end", &|one| one.expires = now),
        ("the end of an overlap", &|one| one.retires = now),
    ];
    differing.extend(fields.map(|(what, change)| {
        let mut record = declared.clone();
        change(&mut record);
        (what, vec![(hash, record)])
    }));
    for (what, records) in differing {
        let withdrawn = |records: &BTreeMap<KeyHash, Record>| {
            let all = BTreeSet::from([hash, extra]);
            all.into_iter()
                .filter(|hash| !records.contains_key(hash))
                .collect()
        };
        let records = BTreeMap::from_iter(records);
        let others = withdrawn(&records);
        declare(&stage, records, others).await?;
        is_found(&stage, 1).await.context(what)?;
        let records = BTreeMap::from([(hash, declared.clone())]);
        let others = withdrawn(&records);
        declare(&stage, records, others).await?;
        is_whole(&stage).await.context(what)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_without_its_index_and_an_index_without_its_record_are_found() -> Result<()> {
    let (stage, hash) = stage("planted-index").await?;
    stage.operator.kill()?;
    let key = stage.objects.key(NAME).await?.context("no ApiKey")?;
    let uid = key.metadata.uid.context("no uid")?;
    let records = format!("wd:{{planted-index.{API}}}:records:{}", hash.shard());
    let held = stage.redis.command(&["KEYS", "*:held:*"]).await?;
    // *1, the length of the name, the name
    let held = held.lines().nth(2).context("no index")?;
    let other = format!("7 planted-index/{NAME}\n{}", "x".repeat(32));
    for (what, shard, command) in [
        ("no record", &*records, vec!["DEL", &records]),
        ("no entry", held, vec!["DEL", held]),
        ("another hash", held, vec!["HSET", held, &uid, &other]),
    ] {
        stage.redis.command(&["COPY", shard, "aside"]).await?;
        stage.redis.command(&command).await?;
        is_found(&stage, 1).await.context(what)?;
        stage.redis.command(&["RENAME", "aside", shard]).await?;
        is_whole(&stage).await.context(what)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_published_as_declared_and_not_told_so_is_found() -> Result<()> {
    let (stage, _) = stage("planted-untold").await?;
    stage.operator.kill()?;
    let mut key = stage.world.get("apikey/acme")?;
    let conditions = key["status"]["conditions"].as_array_mut();
    let mut conditions = conditions.into_iter().flatten();
    let synced = conditions.find(|one| one["type"] == "Synced");
    synced.context("no Synced")?["status"] = "False".into();
    let told = json!({ "status": { "conditions": key["status"]["conditions"] } });
    stage
        .world
        .patch("apikey/acme", &told, &["--subresource=status"])?;
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
    is_whole(&stage).await?;
    // Nobody would delete it with its ApiKey.
    let owners = stage.world.get(&secret)?["metadata"]["ownerReferences"].clone();
    let owned_by = |owners| json!({ "metadata": { "ownerReferences": owners } });
    stage.world.patch(&secret, &owned_by(json!(null)), &[])?;
    is_found(&stage, 3).await?;
    stage.world.patch(&secret, &owned_by(owners), &[])?;
    is_whole(&stage).await?;
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

/// The text in the Secret of the key.
fn text(stage: &Stage) -> Result<String> {
    let template = "--output=go-template={{index .data \"api-key\" | base64decode}}";
    let secret = secret_name(NAME);
    stage.world.kubectl(&["get", "secret", &secret, template])
}

/// Waits until the text is found, and in this place alone. It is not told itself.
async fn text_is_found(stage: &Stage, text: &str, place: &str) -> Result<()> {
    let found = async || {
        let found = stage.violations().await?;
        ensure!(numbers(&found) == BTreeSet::from([5]), "{found:?}");
        let (one, told) = (found.len() == 1, &found[0].found);
        ensure!(
            one && told.contains(place) && !told.contains(text),
            "{found:?}"
        );
        Ok(())
    };
    stage.wait("the text to be found", PATIENCE, found).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_outside_of_its_secret_is_found() -> Result<()> {
    let (stage, _) = stage("planted-text").await?;
    let text = text(&stage)?;
    // It is written after the status.
    let told = async || {
        let events = stage.world.kubectl(&["get", "events", "--output=name"])?;
        Ok(events.lines().next().context("no event")?.to_owned())
    };
    let event = stage.wait("an event", PATIENCE, told).await?;
    stage.operator.kill()?;
    let (event, key) = (&*event, "apikey/acme");
    let message = |text: &str| json!({ "message": text });
    let waiting = |names: &[&str]| json!({ "status": { "waitingFor": names } });
    let note = |text: Option<&str>| json!({ "metadata": { "annotations": { "note": text } } });
    let rows: [(&str, Value, Value, &[&str]); 3] = [
        (event, message(&text), message("issued"), &[]),
        (
            key,
            waiting(&[&text]),
            waiting(&[]),
            &["--subresource=status"],
        ),
        (key, note(Some(&text)), note(None), &[]),
    ];
    for (object, planted, taken, more) in rows {
        stage.world.patch(object, &planted, more)?;
        let found = text_is_found(&stage, &text, "etcd").await;
        found.with_context(|| planted_in(object, more))?;
        stage.world.patch(object, &taken, more)?;
        is_whole(&stage)
            .await
            .with_context(|| planted_in(object, more))?;
    }
    // As a name, as a value, and where much else would be compressed with it.
    let long = "more ".repeat(100) + &text;
    for (name, value) in [(&*text, "name"), ("leak", &text), ("leak", &long)] {
        stage.redis.command(&["SET", name, value]).await?;
        text_is_found(&stage, &text, "Redis").await?;
        stage.redis.command(&["DEL", name]).await?;
        is_whole(&stage).await?;
    }
    // A log forgets nothing.
    let operator = Arc::new(Program::new("echo").arg(&*text).start()?);
    stage.search(operator, Port::reserve()?);
    text_is_found(&stage, &text, "logs").await
}

fn planted_in(object: &str, more: &[&str]) -> String {
    format!("planted in {object} {more:?}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_in_metrics_and_metrics_that_nobody_answers_are_found() -> Result<()> {
    let (stage, _) = stage("planted-metrics").await?;
    let text = text(&stage)?;
    let operator = shows(&stage, ["200 OK", "503 Service Unavailable"], &text).await?;
    let found = stage.shown_metrics().await?;
    ensure!(numbers(&found) == BTreeSet::from([5]), "{found:?}");
    ensure!(!found[0].found.contains(&text), "what is told");
    let refused = stage.holds().await.err().context("nothing is found")?;
    ensure!(refused.to_string().contains("503"), "{refused}");
    operator.kill()?;
    stage.holds().await?;
    stage.operator.kill()?;
    ensure!(stage.holds().await.is_err(), "no metrics are enough");
    Ok(())
}

/// An operator beside that of the stage whose metrics are these, with one status after the other.
async fn shows(stage: &Stage, statuses: [&'static str; 2], metrics: &str) -> Result<Arc<Process>> {
    let operator = Arc::new(Program::new("sleep").arg("infinity").start()?);
    let (admin, length) = (Port::reserve()?, metrics.len());
    let listener = TcpListener::bind(admin.address()).await?;
    stage.search(Arc::clone(&operator), admin);
    let metrics = metrics.to_owned();
    tokio::spawn(async move {
        for status in statuses {
            let (mut client, _) = listener.accept().await?;
            // A question is shorter.
            let _ = client.read(&mut [0; 1024]).await?;
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n");
            client.write_all((head + &metrics).as_bytes()).await?;
        }
        anyhow::Ok(())
    });
    Ok(operator)
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
    // A gate that is told of another generation is another invariant's.
    stage.clients.forget();
    let meta = format!("wd:{{planted-order.{API}}}:meta");
    let add = "local meta = cjson.decode(redis.call('GET', KEYS[1])) \
        meta[ARGV[1]] = meta[ARGV[1]] + ARGV[2] \
        redis.call('SET', KEYS[1], cjson.encode(meta))";
    let falls = ["term", "generation", "seq"];
    for (before, field) in falls.iter().enumerate() {
        let lower = ["EVAL", add, "1", &meta, field, "-1"];
        stage.redis.command(&lower).await?;
        // One for each fall so far.
        let found = async || {
            let found = stage.violations().await?;
            ensure!(numbers(&found) == BTreeSet::from([7]), "{found:?}");
            ensure!(found.len() == before + 1, "{found:?}");
            Ok(())
        };
        stage.wait(field, PATIENCE, found).await?;
        let raise = ["EVAL", add, "1", &meta, field, "1"];
        stage.redis.command(&raise).await?;
    }
    Ok(())
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
    let record = record(&stage, &hash).await?;
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

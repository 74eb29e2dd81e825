//! A key's life as its owner sees it: Secret, status, events, and what the directory holds meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_domain::Timestamp;

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::turnover::{current, raise, successor};
use crate::world::{API, PATIENCE, World, brought, key, shown};

#[tokio::test]
async fn a_key_is_issued_suspended_resumed_and_revoked() -> Result {
    let (world, operator) = World::running("key-life").await?;
    let issued = world.in_force(&key("acme")).await?;
    let id = issued["status"]["keyId"]
        .as_str()
        .context("a key id")?
        .to_owned();
    assert_eq!(
        world.published().await?,
        [format!("{id} Enterprise Active")]
    );

    world.patch(
        "apikey/acme",
        &json!({ "spec": { "suspend": true, "plan": "Free" } }),
        &[],
    )?;
    world
        .condition("apikey/acme", "Ready", "True/Suspended")
        .await?;
    assert_eq!(world.published().await?, [format!("{id} Free Suspended")]);
    world.patch("apikey/acme", &json!({ "spec": { "suspend": false } }), &[])?;
    world
        .condition("apikey/acme", "Ready", "True/PlanWithoutAccess")
        .await?;

    world.kubectl(&["delete", "apikey", "acme"])?;
    world.gone("apikey/acme").await?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    let events = [
        "KeyIssued",
        "PlanChanged",
        "KeySuspended",
        "KeyResumed",
        "KeyRevoked",
    ];
    world.told("acme", &events).await?;
    let log = operator.log();
    for line in events.iter().chain(&["declared the keys of an ApiKey"]) {
        assert!(log.contains(line), "{line}: {log}");
    }
    Ok(())
}

#[tokio::test]
async fn the_secret_alone_has_the_text_and_hashes_to_what_is_published() -> Result {
    let (world, operator) = World::running("key-secret").await?;
    let issued = world.in_force(&key("acme")).await?;
    let value = |name: &str| {
        let template =
            format!("--output=go-template={{{{index .data \"{name}\" | base64decode}}}}");
        world.kubectl(&["get", "secret", "acme-apikey", &template])
    };
    let text = value("api-key")?;
    let parsed =
        water_domain::PlainKey::parse(text.as_bytes(), &water_domain::KeyPrefix::default())?;
    assert_eq!(
        parsed.hash().to_string(),
        issued["status"]["current"]["hash"].as_str().unwrap()
    );
    assert_eq!(
        value("key-id")?,
        issued["status"]["keyId"].as_str().unwrap()
    );
    assert_eq!(value("base-url")?, "http://water.example");
    assert!(!issued.to_string().contains(&text));
    assert!(!operator.log().contains(&text));
    Ok(())
}

#[tokio::test]
async fn an_edited_hash_takes_the_place_of_the_old_one_for_good() -> Result {
    let (world, _operator) = World::running("key-hash").await?;
    becomes_current(&world, &cut("partner", 'a')).await?;
    assert_eq!(world.published().await?, ["aaaaaaaaaaaa Enterprise Active"]);
    becomes_current(&world, &cut("partner", 'b')).await?;
    assert_eq!(world.published().await?, ["bbbbbbbbbbbb Enterprise Active"]);
    world.apply(&cut("partner", 'a'))?;
    let stalled = world
        .condition("apikey/partner", "Stalled", "True/RevokedInStore")
        .await?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    world.in_force(&reinstated(&stalled)?).await?;
    let events = [
        "KeyIssued",
        "KeyRotated",
        "RevokedInStore",
        "KeyReinstated",
        "KeyRotated",
    ];
    world.told("partner", &events).await
}

/// Applies a brought key and waits until the status says that its hash is in force.
async fn becomes_current(world: &World, key: &Value) -> Result {
    world.apply(key)?;
    let hash = key["spec"]["material"]["hash"]["sha256"].as_str();
    let current = async || {
        let found = world.get("apikey/partner")?;
        ensure!(shown(&found, "Ready") == "True/Active", "{found}");
        ensure!(
            found["status"]["current"]["hash"].as_str() == hash,
            "{found}"
        );
        Ok(())
    };
    world
        .wait("the hash to be in force", PATIENCE, current)
        .await
}

/// A brought key that leaves a replaced hash no overlap.
fn cut(name: &str, digit: char) -> Value {
    let mut key = brought(name, digit);
    key["spec"]["rotation"] = json!({ "overlapSeconds": 0 });
    key
}

/// Hash a with the annotation that the message of a stalled key spells out.
fn reinstated(stalled: &Value) -> anyhow::Result<Value> {
    let conditions = stalled["status"]["conditions"].to_string();
    let (_, annotation) = conditions
        .split_once("waterdata.dev/reinstate: ")
        .context("an annotation")?;
    let (annotation, _) = annotation.split_once(' ').context("its end")?;
    assert!(annotation.starts_with("aaaaaaaaaaaa@20"), "{annotation}");
    let mut key = cut("partner", 'a');
    key["metadata"]["annotations"] = json!({ "waterdata.dev/reinstate": annotation });
    Ok(key)
}

#[tokio::test]
async fn a_reinstatement_that_is_left_in_the_manifest_lifts_no_later_tombstone() -> Result {
    let (world, _operator) = World::running("key-reinstated").await?;
    let stalled = async |key: &Value| -> anyhow::Result<Value> {
        world.apply(key)?;
        world
            .condition("apikey/partner", "Stalled", "True/RevokedInStore")
            .await
    };
    becomes_current(&world, &cut("partner", 'a')).await?;
    becomes_current(&world, &cut("partner", 'b')).await?;
    let left = reinstated(&stalled(&cut("partner", 'a')).await?)?;
    becomes_current(&world, &left).await?;
    let mut third = left.clone();
    third["spec"]["material"] = cut("partner", 'c')["spec"]["material"].clone();
    becomes_current(&world, &third).await?;
    // Hash a is revoked again, at another time than the annotation says.
    let again = stalled(&left).await?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    becomes_current(&world, &reinstated(&again)?).await?;
    let told = async || {
        let events = world.events("partner")?;
        let times = events.iter().filter(|reason| *reason == "KeyReinstated");
        ensure!(times.count() == 2, "{events:?}");
        Ok(())
    };
    world
        .wait("the events of the reinstatements", PATIENCE, told)
        .await
}

#[tokio::test]
async fn times_decide_and_an_expired_key_says_so() -> Result {
    let (world, _operator) = World::running("key-times").await?;
    let with = |name: &str, field: &str, time: &str| {
        let mut key = brought(name, if name == "early" { 'c' } else { 'd' });
        key["spec"][field] = time.into();
        world.apply(&key)
    };
    with("early", "notBefore", "2100-01-01T00:00:00Z")?;
    with("late", "expirationTime", "2020-01-01T00:00:00Z")?;
    world
        .condition("apikey/early", "Ready", "True/NotYetValid")
        .await?;
    let late = world
        .condition("apikey/late", "Ready", "False/Expired")
        .await?;
    assert_eq!(shown(&late, "Stalled"), "True/Expired");
    world.told("late", &["KeyExpired"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_acts_though_nobody_asks_for_another_look() -> Result {
    let (world, _operator) = World::running("key-alone").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let soon = Duration::from_secs(20);
    let boundary = gate.now().context("Redis' time")?.plus(soon).to_string();
    let mut begins = brought("begins", '0');
    begins["spec"]["notBefore"] = boundary.as_str().into();
    let mut ends = brought("ends", '1');
    ends["spec"]["expirationTime"] = boundary.into();
    world.apply(&begins)?;
    world.apply(&ends)?;
    for (name, before) in [("begins", "True/NotYetValid"), ("ends", "True/Active")] {
        let key = format!("apikey/{name}");
        world.condition(&key, "Ready", before).await?;
    }
    let mut rotated = brought("rotated", '2');
    rotated["spec"]["rotation"] = json!({ "overlapSeconds": soon.as_secs() });
    world.in_force(&rotated).await?;
    rotated["spec"]["material"]["hash"]["sha256"] = "3".repeat(64).into();
    world.apply(&rotated)?;
    let with_old = async || {
        let found = world.get("apikey/rotated")?;
        ensure!(found["status"]["previous"].is_object(), "{found}");
        Ok(())
    };
    world.wait("the overlap", PATIENCE, with_old).await?;
    // Keys at rest are looked at after 450 s at the earliest: nobody waits for that here.
    for (name, after) in [("begins", "True/Active"), ("ends", "False/Expired")] {
        let key = format!("apikey/{name}");
        world.condition(&key, "Ready", after).await?;
    }
    let alone = async || {
        let found = world.get("apikey/rotated")?;
        ensure!(found["status"]["previous"].is_null(), "{found}");
        Ok(())
    };
    world.wait("the end of the overlap", PATIENCE, alone).await
}

#[tokio::test]
async fn each_rotation_is_told_in_its_own_words() -> Result {
    let (world, _operator) = World::running("key-told").await?;
    let mut first = current(&world.in_force(&key("acme")).await?)?;
    for revision in 1..=2 {
        raise(&world, revision)?;
        first = current(&successor(&world, &first).await?)?;
    }
    world
        .told("acme", &["KeyIssued", "KeyRotated", "KeyRotated"])
        .await?;
    let notes =
        "--output=jsonpath={range .items[?(@.reason==\"KeyRotated\")]}{.message}{\"\\n\"}{end}";
    let notes = world.kubectl(&["get", "events", notes])?;
    let notes: BTreeSet<&str> = notes.lines().collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    Ok(())
}

#[tokio::test]
async fn a_key_that_is_made_expired_is_told_to_be_usable_only_once_it_is_renewed() -> Result {
    let (world, _operator) = World::running("key-renewed").await?;
    let expires = |time: &str| {
        let mut key = key("acme");
        key["spec"]["expirationTime"] = time.into();
        world.apply(&key)
    };
    expires("2020-01-01T00:00:00Z")?;
    world
        .condition("apikey/acme", "Stalled", "True/Expired")
        .await?;
    expires("2100-01-01T00:00:00Z")?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    world.told("acme", &["KeyExpired", "KeyRenewed"]).await
}

#[tokio::test]
async fn a_deletion_waits_for_redis_and_says_so() -> Result {
    let (redis, world, _operator) = World::on_own_redis("key-waits").await?;
    world.in_force(&key("acme")).await?;
    redis.pause()?;
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    let deleting = async || {
        let found = world.get("apikey/acme")?;
        let told = found["status"]["conditions"].to_string();
        ensure!(shown(&found, "Ready") == "False/Deleting", "{told}");
        ensure!(told.contains("revoked as soon as that works"), "{told}");
        Ok(())
    };
    world
        .wait("the deletion to wait", PATIENCE, deleting)
        .await?;
    redis.resume()?;
    world.gone("apikey/acme").await?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_restart_without_changes_writes_nothing() -> Result {
    let (world, operator) = World::running("key-restart").await?;
    world.in_force(&key("acme")).await?;
    world.in_force(&brought("partner", 'e')).await?;
    let counted = world
        .condition("waterdataapi/water-data", "Ready", "False/Migrating")
        .await?;
    let keys_counted = async || {
        let keys = world.get("waterdataapi/water-data")?["status"]["apiKeys"].clone();
        let all_count = keys["synced"] == 2 && keys["active"] == 2;
        ensure!(all_count, "{keys} counted in {counted}");
        Ok(())
    };
    world
        .wait("both keys to be counted", PATIENCE, keys_counted)
        .await?;
    world.assert_restart_writes_nothing(&operator).await
}

#[tokio::test]
async fn a_first_use_shows_within_a_minute_and_a_restart_writes_none() -> Result {
    let (world, operator) = World::running("key-used").await?;
    let issued = world.in_force(&key("acme")).await?;
    let id = issued["status"]["keyId"].as_str().context("a key id")?;
    let settings = water_keystore::ConnectionSettings::new(&world.redis_url, None)?;
    let connection = settings.connect(water_keystore::connection::Purpose::Directory);
    let instance = water_keystore::Instance::new(&world.namespace, API)?;
    let uses = water_keystore::Usage::new(connection, instance);
    let used = Timestamp::parse(
        issued["status"]["current"]["issuedTime"]
            .as_str()
            .context("a time")?,
    )?;
    uses.write_last_uses(&[(id.parse()?, used)]).await?;
    let shown = async || {
        let found = world.get("apikey/acme")?;
        let shown = found["status"]["lastUsedTime"].as_str().unwrap_or_default();
        ensure!(shown == used.to_string(), "{found}");
        Ok(())
    };
    // A gate may have kept it for 15 s of the minute.
    let rest = Duration::from_secs(45);
    world.wait("the first use to show", rest, shown).await?;
    // A later one does not show for ten minutes, restarted or not.
    let later = used.as_millis() + 1000;
    let later = Timestamp::from_millis(later).context("a time")?;
    uses.write_last_uses(&[(id.parse()?, later)]).await?;
    world.assert_restart_writes_nothing(&operator).await
}

#[tokio::test]
async fn key_and_secret_carry_the_label_of_their_account() -> Result {
    let (world, _operator) = World::running("key-label").await?;
    world.in_force(&key("acme")).await?;
    let selector = "--selector=waterdata.dev/account=acme";
    let found = world.kubectl(&["get", "apikeys,secrets", selector, "--output=name"])?;
    assert_eq!(
        found.lines().collect::<Vec<_>>(),
        ["apikey.waterdata.dev/acme", "secret/acme-apikey"]
    );
    Ok(())
}

#[tokio::test]
async fn a_wiped_directory_is_rebuilt_by_the_next_leader() -> Result {
    let (redis, world, operator) = World::on_own_redis("key-wiped").await?;
    world.in_force(&key("acme")).await?;
    world.in_force(&brought("partner", 'f')).await?;
    let before = world.published().await?;
    operator.stop(PATIENCE).await?;
    redis.command(&["FLUSHALL"]).await?;
    let _next = world.operator("operator-1")?;
    let rebuilt = async || {
        let after = world.published().await?;
        ensure!(after == before, "{after:?}");
        Ok(())
    };
    world
        .wait("the directory as it was", PATIENCE, rebuilt)
        .await
}

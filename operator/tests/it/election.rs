//! At most one operator leads, and another takes over.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use water_domain::Timestamp;
use water_harness::Process;

use crate::Result;
use crate::world::{API, PATIENCE, World, brought, key};

/// A leader that is asked to stop has ended by then.
const DRAINED_WITHIN: Duration = Duration::from_secs(10);

async fn holder(world: &World, wanted: &str) -> anyhow::Result<()> {
    world
        .wait(&format!("{wanted} to lead"), PATIENCE, async || {
            let holder = world.get("lease/water-operator")?["spec"]["holderIdentity"].clone();
            ensure!(holder == wanted, "{holder} leads");
            Ok(())
        })
        .await
}

/// Waits until a key can be used that was asked for when this began. A leader has to act for that.
async fn issued(world: &World, name: &str) -> anyhow::Result<()> {
    world.apply(&key(name))?;
    world
        .condition(&format!("apikey/{name}"), "Ready", "True/Active")
        .await
        .map(drop)
}

/// Starts another operator and waits until it stands by: it has read the Lease and knows all objects.
async fn standby(world: &World, pod: &str) -> anyhow::Result<Arc<Process>> {
    let operator = world.operator(pod)?;
    let stands_by = async || {
        let log = operator.log();
        ensure!(log.contains("the watches have told of everything"), "{log}");
        Ok(())
    };
    world.wait("the standby", PATIENCE, stands_by).await?;
    Ok(operator)
}

#[tokio::test]
async fn a_stopped_leaders_successor_acts_within_three_seconds() -> Result {
    let (world, mut leader) = World::running("hand-over").await?;
    issued(&world, "before").await?;
    let mut times = Vec::new();
    for number in 1..=3 {
        let pod = format!("operator-{number}");
        let next = standby(&world, &pod).await?;
        let asked = Instant::now();
        leader.stop(DRAINED_WITHIN).await?;
        issued(&world, &format!("after-{number}")).await?;
        times.push(asked.elapsed());
        holder(&world, &pod).await?;
        leader = next;
    }
    // The others may have waited for a busy machine.
    let fastest = times.iter().min();
    assert!(fastest < Some(&Duration::from_secs(3)), "{times:?}");
    Ok(())
}

#[tokio::test]
async fn a_leader_that_is_asked_to_stop_amid_changes_ends_within_ten_seconds() -> Result {
    let (world, leader) = World::running("drained").await?;
    issued(&world, "before").await?;
    let _next = standby(&world, "operator-1").await?;
    let keys: Vec<Value> = (0..100).map(|number| numbered(&world, number)).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": keys }).to_string();
    let cluster = world.cluster;
    let applying = spawn_blocking(move || cluster.apply(&list));
    let begun = async || {
        let published = world.published().await?.len();
        ensure!(published > 1, "{published} published");
        Ok(())
    };
    world.wait("the first of them", PATIENCE, begun).await?;
    leader.stop(DRAINED_WITHIN).await?;
    let log = leader.log();
    ensure!(log.contains("lease released"), "{}", leader.log_end());
    applying.await??;
    let through = async || {
        let published = world.published().await?.len();
        ensure!(published == 101, "{published} published");
        Ok(())
    };
    world.wait("all of them", PATIENCE, through).await
}

/// An ApiKey with a hash of its own, in the test's namespace.
fn numbered(world: &World, number: usize) -> Value {
    let mut key = brought(&format!("key-{number}"), '0');
    key["metadata"]["namespace"] = world.namespace.as_str().into();
    let hash = format!("{number:012x}{number:052x}");
    key["spec"]["material"]["hash"]["sha256"] = hash.into();
    key
}

#[tokio::test]
async fn a_killed_leaders_successor_acts_once_the_lease_has_run_out() -> Result {
    let (world, first) = World::running("killed").await?;
    issued(&world, "before").await?;
    let term = world.observe().await?.meta.unwrap().term;
    let _second = standby(&world, "operator-1").await?;
    let killed = Instant::now();
    first.kill()?;
    let (renewed, looks) = (lease_time(&world, "renewTime")?, world.lease_looks()?);
    issued(&world, "after").await?;
    println!("another leader acted after {:?}", killed.elapsed());
    let waited = lease_time(&world, "acquireTime")?.as_millis() - renewed.as_millis();
    assert!(waited >= 15_000, "the lease had not run out: {waited} ms");
    // A candidate looks twice a second for 15 s. Looks are counted because a busy machine delays them.
    let looks = world.lease_looks()? - looks;
    assert!(looks <= 33, "{looks} looks");
    assert!(world.observe().await?.meta.unwrap().term > term);
    Ok(())
}

/// A time of the operator's Lease.
fn lease_time(world: &World, field: &str) -> anyhow::Result<Timestamp> {
    let lease = world.get("lease/water-operator")?;
    let time = lease["spec"][field].as_str().context("a time")?;
    Ok(Timestamp::parse(time)?)
}

/// What stands in Redis and at the API server, and who wrote there.
async fn standing(world: &World) -> anyhow::Result<impl PartialEq + std::fmt::Debug + use<>> {
    let meta = world.observe().await?.meta.context("no meta")?;
    let versions = world.kubectl(&[
        "get",
        "apikeys,secrets,waterdataapis,deployments,services",
        "--output=jsonpath={.items[*].metadata.resourceVersion}",
    ])?;
    let published = world.published().await?;
    Ok((meta.term, meta.seq, published, versions, world.writes()?))
}

#[tokio::test]
async fn a_leader_that_was_held_past_its_lease_writes_nothing_stale() -> Result {
    let (world, first) = World::running("held").await?;
    for name in ["suspended", "deleted"] {
        issued(&world, name).await?;
        world.told(name, &["KeyIssued"]).await?;
    }
    let counted = async |total: u64, active: u64| {
        let counted = async || {
            let keys = world.get("waterdataapi/water-data")?["status"]["apiKeys"].clone();
            let is_told = keys["total"] == total && keys["active"] == active;
            ensure!(is_told && keys["synced"] == total, "{keys} counted");
            Ok(())
        };
        let counted = world.wait("the keys to be counted", PATIENCE, counted);
        counted.await
    };
    let settled = async || {
        let first = standing(&world).await?;
        ensure!(
            first == standing(&world).await?,
            "still changing: {first:?}"
        );
        Ok(first)
    };
    let _second = standby(&world, "operator-1").await?;
    // A write of it that is under way is refused when it goes on, and would be counted.
    counted(2, 2).await?;
    world.wait("rest", PATIENCE, settled).await?;
    first.signal(Signal::SIGSTOP)?;
    // It will find all of this in its watches when it goes on, and its status of before.
    let suspend = json!({ "spec": { "suspend": true } });
    world.patch("apikey/suspended", &suspend, &[])?;
    world.kubectl(&["delete", "apikey", "deleted", "--wait=false"])?;
    issued(&world, "made").await?;
    holder(&world, "operator-1").await?;
    world
        .condition("apikey/suspended", "Ready", "True/Suspended")
        .await?;
    world.gone("apikey/deleted").await?;
    for (name, last) in [
        ("suspended", Some("KeySuspended")),
        ("deleted", Some("KeyRevoked")),
        ("made", None),
    ] {
        let events: Vec<&str> = ["KeyIssued"].into_iter().chain(last).collect();
        world.told(name, &events).await?;
    }
    counted(2, 1).await?;
    let before = world.wait("rest", PATIENCE, settled).await?;
    first.signal(Signal::SIGCONT)?;
    let noticed = async || {
        let log = first.log();
        ensure!(log.contains("the lease was not renewed in time"), "{log}");
        Ok(())
    };
    let what = "the first leader to stop leading";
    world.wait(what, PATIENCE, noticed).await?;
    assert_eq!(standing(&world).await?, before);
    assert_eq!(first.exit_status()?, None);
    Ok(())
}

#[tokio::test]
async fn a_leader_whose_lease_was_taken_writes_no_more() -> Result {
    let (world, operator) = World::running("taken").await?;
    holder(&world, "operator-0").await?;
    let patch = serde_json::json!({ "spec": { "holderIdentity": "somebody-else" } });
    world.patch("lease/water-operator", &patch, &[])?;
    let noticed = async || {
        ensure!(
            operator.log().contains("the lease names another leader"),
            "{}",
            operator.log_end()
        );
        Ok(())
    };
    world
        .wait("the leader to notice", PATIENCE, noticed)
        .await?;
    world.apply(&brought("acme", '7'))?;
    // Nobody renews for somebody-else: after 15 s the operator leads again, and only then writes.
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    let transitions = world.get("lease/water-operator")?["spec"]["leaseTransitions"].clone();
    assert_eq!(transitions, 1);
    Ok(())
}

#[tokio::test]
async fn a_restarted_api_server_is_no_reason_to_restart_or_to_tell_anything_twice() -> Result {
    let world = World::alone("api-server-restart").await?;
    world.apply(&crate::world::api())?;
    let operator = world.operator("operator-0")?;
    for digit in '0'..='9' {
        let name = format!("before-{digit}");
        world.in_force(&brought(&name, digit)).await?;
        // Told by now: an event that the API server does not take is not told again.
        world.told(&name, &["KeyIssued"]).await?;
    }
    world.told(API, &["RolloutStarted"]).await?;
    let before = all_told(&world)?;
    world.cluster.api_server().kill()?;
    world.cluster.api_server().start_again()?;
    world.cluster.ready().await?;
    world.in_force(&brought("after", 'a')).await?;
    world.told("after", &["KeyIssued"]).await?;
    let mut told = all_told(&world)?;
    told.retain(|event| event != "after KeyIssued");
    assert_eq!(told, before);
    assert_eq!(operator.exit_status()?, None);
    Ok(())
}

/// All events of the world, each as often as it was told.
fn all_told(world: &World) -> anyhow::Result<Vec<String>> {
    let list = world.kubectl(&["get", "events", "--output=json"])?;
    let list: Value = serde_json::from_str(&list)?;
    let told = |event: &Value| {
        let (about, reason) = (&event["involvedObject"]["name"], &event["reason"]);
        let times = event["series"]["count"].as_u64().unwrap_or(1);
        vec![format!("{about} {reason}").replace('"', ""); times as usize]
    };
    let events = list["items"].as_array().context("a list")?;
    let mut all: Vec<String> = events.iter().flat_map(told).collect();
    all.sort();
    Ok(all)
}

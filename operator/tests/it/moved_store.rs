//! Redis is moved while rollouts are stopped, or for the operator only: a gate still reads the former one. The
//! leader that knew it writes it too. A deletion waits for the end of the gate's pod, however long that takes,
//! since another leader does not know the former Redis. And Redis is moved back.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use water_harness::{Process, Proxy, Redis};

use crate::Result;
use crate::gate::{GRACE, Gate, end_pod};
use crate::installation::complete;
use crate::restrictions::{holds, spoil_api, unreadable};
use crate::sweep::strip;
use crate::world::{API, PATIENCE, World, api, brought};

const BOTH: [&str; 2] = ["operator-url", "gate-url"];

/// When a gate without a lease that could read this directory only would have stopped serving: after
/// its grace and ten seconds, with as much again for a busy machine.
const RUN_OUT: Duration = Duration::from_secs(150);

/// Gives a pod the annotations that the operator writes into the gates' template.
fn of_template(world: &World, pod: &str) -> Result {
    let deployment = world.get(&format!("deployment/{API}-gate"))?;
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    let annotated = json!({ "metadata": { "annotations": annotations } });
    world.patch(&format!("pod/{pod}"), &annotated, &[])
}

/// Stops rollouts.
async fn pause(world: &World) -> Result {
    let mut paused = api();
    paused["spec"]["paused"] = true.into();
    world.apply(&paused)?;
    world
        .condition("waterdataapi/water-data", "Ready", "True/Paused")
        .await?;
    Ok(())
}

/// Has these URLs name another Redis.
fn name_store(world: &mut World, urls: &[&str], to: &str) -> Result {
    let urls = urls.iter().map(|url| ((*url).to_owned(), to.into()));
    let urls: serde_json::Map<String, Value> = urls.collect();
    world.patch("secret/redis", &json!({ "stringData": urls }), &[])?;
    world.redis_url = to.into();
    Ok(())
}

/// The same, and waits until the operator writes it.
async fn move_store(world: &mut World, urls: &[&str], to: &Redis) -> Result {
    let store = |api: &Value| api["status"]["directoryStore"].clone();
    let before = store(&world.get("waterdataapi/water-data")?);
    name_store(world, urls, &to.url())?;
    let moved = async || {
        let found = world.get("waterdataapi/water-data")?;
        let now = store(&found);
        ensure!(now != "" && now != before, "{}", found["status"]);
        Ok(())
    };
    world.wait("the operator to move", PATIENCE, moved).await
}

/// Waits until the ApiKey's condition says of this pod that it reads another Redis.
async fn told(world: &World, pod: &str) -> Result {
    let says = async || {
        let status = world.get("apikey/acme")?["status"].clone();
        ensure!(status["waitingFor"] == json!([pod]), "{status}");
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let says = |condition: &Value| {
            let message = condition["message"].as_str().unwrap_or_default();
            condition["type"] == "Ready" && message.contains("named another Redis")
        };
        ensure!(conditions.any(says), "{status}");
        Ok(())
    };
    world.wait("the words about the pod", PATIENCE, says).await
}

#[tokio::test]
async fn a_deletion_waits_without_limit_for_a_gate_whose_redis_no_leader_knows_any_more() -> Result
{
    let (_former, mut world, operator) = World::on_own_redis("moved-store").await?;
    complete(&world, "1.2.3").await?;
    world.in_force(&brought("acme", 'a')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    of_template(&world, &gate.name)?;
    let present = Redis::start().await?;
    pause(&world).await?;
    move_store(&mut world, &BOTH, &present).await?;
    operator.kill()?;
    let _next = world.operator("operator-1")?;

    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    let asked = Instant::now();
    told(&world, &gate.name).await?;
    while asked.elapsed() < RUN_OUT {
        let found = world.get("apikey/acme");
        found.with_context(|| format!("the deletion ended after {:?}", asked.elapsed()))?;
        sleep(Duration::from_secs(1)).await;
    }
    assert!(gate.accepts(&"a".repeat(64))?);
    end_pod(&world, &gate.name)?;
    world.gone("apikey/acme").await
}

/// Waits until the gate accepts a key, or refuses it.
async fn judged(world: &World, gate: &Gate, digit: char, is_accepted: bool) -> Result {
    let hash = digit.to_string().repeat(64);
    let what = format!("the gate to accept {digit}: {is_accepted}");
    let judged = async || {
        ensure!(gate.accepts(&hash)? == is_accepted, "{digit}");
        Ok(())
    };
    world.wait(&what, PATIENCE, judged).await
}

/// These URLs name another Redis while a gate reads the former one. The keys of `acme` and `other` are in
/// force in both. What is answered last keeps the stores running.
async fn moved_ahead(
    namespace: &str,
    urls: &[&str],
    [acme, other]: [char; 2],
) -> anyhow::Result<(World, Gate, Arc<Process>, impl Sized)> {
    let (former, mut world, operator) = World::on_own_redis(namespace).await?;
    complete(&world, "1.2.3").await?;
    world.in_force(&brought("acme", acme)).await?;
    world.in_force(&brought("other", other)).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    of_template(&world, &gate.name)?;
    let present = Redis::start().await?;
    pause(&world).await?;
    move_store(&mut world, urls, &present).await?;
    Ok((world, gate, operator, (former, present)))
}

fn suspend(suspend: bool) -> Value {
    json!({ "spec": { "suspend": suspend } })
}

/// What is restricted after a move is refused by the gate that reads the former Redis, too, and a deletion
/// waits for its end all the same.
async fn written_too(namespace: &str, urls: &[&str]) -> Result {
    let digits @ [acme, other] = ['b', '2'];
    let (world, gate, _operator, _stores) = moved_ahead(namespace, urls, digits).await?;
    world.patch("apikey/other", &suspend(true), &[])?;
    judged(&world, &gate, other, false).await?;
    world.patch("apikey/other", &suspend(false), &[])?;
    judged(&world, &gate, other, true).await?;
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    judged(&world, &gate, acme, false).await?;
    told(&world, &gate.name).await?;
    end_pod(&world, &gate.name)?;
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn a_gate_that_reads_the_redis_before_the_present_one_is_told_what_changes() -> Result {
    written_too("moved-written", &BOTH).await
}

#[tokio::test]
async fn a_gate_that_was_forgotten_when_the_operators_redis_was_moved_is_told_what_changes()
-> Result {
    written_too("moved-forgotten", &["operator-url"]).await
}

#[tokio::test]
async fn a_stripped_key_stays_in_the_former_redis_where_no_sweep_counts() -> Result {
    let digits @ [acme, other] = ['7', '8'];
    let (world, gate, operator, _stores) = moved_ahead("moved-stripped", &BOTH, digits).await?;
    // It would put the finalizer back.
    operator.signal(Signal::SIGSTOP)?;
    strip(&world, "acme").await?;
    operator.signal(Signal::SIGCONT)?;
    world.patch("apikey/other", &suspend(true), &[])?;
    judged(&world, &gate, other, false).await?;
    // The comparison that wrote the suspension knew that this ApiKey is gone.
    assert!(gate.accepts(&acme.to_string().repeat(64))?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_name_of_the_same_redis_costs_one_claim() -> Result {
    let (redis, mut world, _operator) = World::on_own_redis("moved-name").await?;
    complete(&world, "1.2.3").await?;
    world.in_force(&brought("acme", '5')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let name = Proxy::before(redis.address()).await?;
    let url = format!("redis://{}/", name.address());
    name_store(&mut world, &BOTH, &url)?;
    let turned = async |is_suspended: bool| {
        world.patch("apikey/acme", &suspend(is_suspended), &[])?;
        judged(&world, &gate, '5', !is_suspended).await
    };
    let term = async || {
        let seen = world.observe().await?;
        seen.meta.map(|meta| meta.term).context("no directory")
    };
    let before = term().await?;
    let claimed = async || {
        ensure!(term().await? > before, "not claimed by its other name");
        Ok(())
    };
    world.wait("the claim", PATIENCE, claimed).await?;
    turned(true).await?;
    let (claimed, begun) = (term().await?, Instant::now());
    // A directory that two write is claimed by turns, once a second.
    while begun.elapsed() < Duration::from_secs(5) {
        turned(false).await?;
        turned(true).await?;
    }
    assert_eq!(term().await?, claimed);
    Ok(())
}

/// Redis is moved, a key is revoked, and Redis is moved back. `meanwhile` is called before that.
async fn moved_back(
    namespace: &str,
    digits: [char; 3],
    meanwhile: impl FnOnce(&World, &Process) -> Result,
) -> Result {
    let (first, mut world, operator) = World::on_own_redis(namespace).await?;
    let [revoked, kept, later] = digits;
    world.in_force(&brought("revoked", revoked)).await?;
    world.in_force(&brought("kept", kept)).await?;
    let second = Redis::start().await?;
    move_store(&mut world, &BOTH, &second).await?;
    world.kubectl(&["delete", "apikey", "revoked"])?;
    meanwhile(&world, &operator)?;
    move_store(&mut world, &BOTH, &first).await?;
    world.in_force(&brought("later", later)).await?;
    let published = world.directory()?.stored().await?;
    let published: BTreeSet<String> = published.keys().map(ToString::to_string).collect();
    let wanted = [kept, later].map(|digit| digit.to_string().repeat(64));
    assert_eq!(published, wanted.into());
    Ok(())
}

#[tokio::test]
async fn a_key_that_was_revoked_in_another_redis_is_not_revived_when_the_first_is_returned_to()
-> Result {
    moved_back("moved-back", ['c', 'd', 'e'], |_, _| Ok(())).await
}

#[tokio::test]
async fn a_key_that_was_revoked_in_another_redis_is_not_revived_by_another_leader() -> Result {
    let next = Cell::new(None);
    moved_back("moved-back-led", ['f', '0', '1'], |world, operator| {
        operator.kill()?;
        next.set(Some(world.operator("operator-1")?));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_key_that_was_revoked_in_another_redis_is_not_revived_beside_an_api_that_cannot_be_read()
-> Result {
    let (first, mut world, operator) = World::on_own_redis("moved-back-unread").await?;
    world.in_force(&brought("revoked", '3')).await?;
    world.in_force(&brought("kept", '4')).await?;
    let second = Redis::start().await?;
    move_store(&mut world, &BOTH, &second).await?;
    world.kubectl(&["delete", "apikey", "revoked"])?;
    operator.kill()?;
    spoil_api(&world)?;
    name_store(&mut world, &BOTH, &first.url())?;
    let _next = world.operator("operator-1")?;
    world.patch("apikey/kept", &suspend(true), &[])?;
    let suspended = "444444444444 Enterprise Suspended".to_owned();
    let published = async || {
        let published = world.published().await?;
        ensure!(published.contains(&suspended), "{published:?}");
        Ok(published)
    };
    let published = world.wait("the suspension", PATIENCE, published).await?;
    assert_eq!(published, [suspended]);
    Ok(())
}

#[tokio::test]
async fn a_key_that_cannot_be_read_moves_with_the_directory() -> Result {
    let (first, mut world, _operator) = World::on_own_redis("moved-unreadable").await?;
    unreadable(&world, '6').await?;
    let second = Redis::start().await?;
    move_store(&mut world, &BOTH, &second).await?;
    holds(&world, &["666666666666 Enterprise Active"]).await?;
    world.patch("apikey/comma", &suspend(true), &[])?;
    holds(&world, &["666666666666 Enterprise Suspended"]).await?;
    move_store(&mut world, &BOTH, &first).await?;
    holds(&world, &["666666666666 Enterprise Suspended"]).await
}

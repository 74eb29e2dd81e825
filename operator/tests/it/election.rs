//! Tests of the election: at most one operator leads, and another takes over. `successors.rs` in `faults/long`
//! and in `faults/measurements` have one that goes on after its Lease has run out, and one that is asked to stop, amid
//! the changes of a population.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::time::Instant;
use water_domain::Timestamp;
use water_harness::Process;
use water_kit::is_all_asked_for;

use crate::Result;
use crate::audit::lease_looks;
use crate::steps::{
    NOT_RENEWED, becomes, edit, holds, keeps_term, logs, one_leadership, ready, revoke, term, until,
};
use crate::world::{PATIENCE, World, brought, key};

/// Most looks at a Lease that was given back. One that runs out takes a candidate more than twice as many.
const LOOKS: usize = 10;
const LEASE: &str = "lease/water-operator";
/// Reasons that a leader logs when it has lost its Lease; the second one after ten seconds without a renewal.
const LOST: [&str; 2] = ["the lease names another leader", NOT_RENEWED];

async fn holder(world: &World, wanted: &str) -> Result {
    let holds = |lease: &serde_json::Value| lease["spec"]["holderIdentity"] == wanted;
    becomes(world, LEASE, wanted, holds).await.map(drop)
}

/// Starts another operator and waits until it is ready to take over: it has read the Lease and knows all objects.
async fn standby(world: &World, pod: &str) -> anyhow::Result<Arc<Process>> {
    let operator = world.operator(pod)?;
    let filled = "the watches have told of everything";
    logs(world, &operator, filled).await?;
    Ok(operator)
}

#[tokio::test]
async fn fault_04_a_stopped_leaders_successor_acts_within_three_seconds() -> Result {
    let (world, mut leader) = World::running("hand-over").await?;
    world.in_force(&key("before")).await?;
    let (mut looks, mut times) = (Vec::new(), Vec::new());
    for number in 1..=3 {
        let pod = format!("operator-{number}");
        let next = standby(&world, &pod).await?;
        let asked = Instant::now();
        leader.stop(PATIENCE).await?;
        let before = lease_looks(&world)?;
        holder(&world, &pod).await?;
        looks.push(lease_looks(&world)? - before);
        // A leader has to act for that.
        world.in_force(&key(&format!("after-{number}"))).await?;
        times.push(asked.elapsed());
        leader = next;
    }
    println!("successors acted after {times:?} and {looks:?} looks");
    // The others may have waited for a busy machine, on which a leader may fail to give its Lease back.
    let fewest = looks.iter().min();
    assert!(fewest <= Some(&LOOKS), "the lease ran out: {looks:?}");
    let is_fast = times.iter().min() < Some(&Duration::from_secs(3));
    assert!(is_fast || !is_all_asked_for(), "{times:?}");
    Ok(())
}

/// A time of the operator's Lease.
fn lease_time(world: &World, field: &str) -> anyhow::Result<Timestamp> {
    let lease = world.get(LEASE)?;
    let time = lease["spec"][field].as_str().context("a time")?;
    Ok(Timestamp::parse(time)?)
}

#[tokio::test]
async fn a_killed_leaders_successor_acts_once_the_lease_has_run_out() -> Result {
    let (world, first) = World::running("killed").await?;
    world.in_force(&key("before")).await?;
    let before = term(&world).await?;
    let _second = standby(&world, "operator-1").await?;
    let killed = Instant::now();
    first.kill()?;
    let (renewed, looks) = (lease_time(&world, "renewTime")?, lease_looks(&world)?);
    world.in_force(&key("after")).await?;
    println!("another leader acted after {:?}", killed.elapsed());
    let waited = lease_time(&world, "acquireTime")?.as_millis() - renewed.as_millis();
    assert!(waited >= 15_000, "the lease had not run out: {waited} ms");
    // A candidate looks twice a second, give or take a quarter; some more are the successor's own.
    let looks = lease_looks(&world)? - looks;
    let most = 2.5 * waited as f64 / 1000.0 + 3.0;
    assert!(looks as f64 <= most, "{looks} looks in {waited} ms");
    assert!(term(&world).await? > before);
    Ok(())
}

#[tokio::test]
async fn fault_05_a_leader_that_goes_on_after_another_took_its_lease_undoes_nothing() -> Result {
    let (world, first) = World::running("goes-on").await?;
    for (name, digit) in [("suspended", 'a'), ("deleted", 'b')] {
        world.in_force(&brought(name, digit)).await?;
    }
    let second = standby(&world, "operator-1").await?;
    first.signal(Signal::SIGSTOP)?;
    // Free at once, as if it had run out.
    let free = json!({ "spec": { "holderIdentity": "" } });
    world.patch(LEASE, &free, &[])?;
    holder(&world, "operator-1").await?;
    edit(&world, "suspended", &json!({ "suspend": true }))?;
    ready(&world, "suspended", "True/Suspended").await?;
    revoke(&world, "deleted").await?;
    let suspended = "aaaaaaaaaaaa Enterprise Suspended";
    holds(&world, &[suspended]).await?;
    let before = term(&world).await?;
    first.signal(Signal::SIGCONT)?;
    until(&world, "the first leader to notice", async || {
        let log = first.log();
        let is_noticed = LOST.iter().any(|reason| log.contains(reason));
        ensure!(is_noticed, "{}", first.log_end());
        Ok(())
    })
    .await?;
    // All that it might have undone comes before this.
    world.in_force(&brought("later", 'c')).await?;
    let later = "cccccccccccc Enterprise Active";
    assert_eq!(world.published().await?, [suspended, later]);
    ready(&world, "suspended", "True/Suspended").await?;
    keeps_term(&world, before, &second.log()).await?;
    assert_eq!(first.exit_status()?, None);
    Ok(())
}

#[tokio::test]
async fn fault_06_a_leader_whose_lease_was_taken_writes_no_more() -> Result {
    // Who does not lead notices nothing.
    one_leadership("taken", World::running, async |world, operator| {
        holder(world, "operator-0").await?;
        let taken = json!({ "spec": { "holderIdentity": "somebody-else" } });
        world.patch(LEASE, &taken, &[])?;
        logs(world, operator, LOST[0]).await?;
        // Nobody renews for somebody-else: after 15 s the operator leads again, and only then writes.
        world.in_force(&brought("acme", '7')).await?;
        let lease = world.get(LEASE)?;
        ensure!(lease["spec"]["leaseTransitions"] == 1, "{lease}");
        Ok(())
    })
    .await
}

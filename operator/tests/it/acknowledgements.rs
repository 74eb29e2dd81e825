//! Tests of waits for the gates' acknowledgements, and of their length: no key is revealed, and none is gone, before
//! every gate that counts has applied it.

mod long;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use water_harness::Process;

use crate::Result;
use crate::gate::{GRACE, Gate, Started, end_pod, pod};
use crate::steps::{
    NOTHING, allow, becomes, delete, edit, forbid, holds, logs, measured, message, ready, says,
};
use crate::world::{World, api, brought, key, shown};

/// A world with one gate that has a copy of the directory.
async fn with_gate(namespace: &str, grace: Duration) -> anyhow::Result<(World, Gate)> {
    let (world, gate, _operator) = with_gate_of(namespace, grace).await?;
    Ok((world, gate))
}

/// The same, with its operator.
async fn with_gate_of(
    namespace: &str,
    grace: Duration,
) -> anyhow::Result<(World, Gate, Arc<Process>)> {
    let (world, operator) = World::running(namespace).await?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", grace).await?;
    Ok((world, gate, operator))
}

/// Waits until acme waits for exactly this gate, in its status and in words.
async fn awaits(world: &World, gate: &str, reason: &str) -> Result {
    let wanted = format!("False/{reason}");
    let what = format!("waiting for {gate}");
    let awaits = becomes(world, "apikey/acme", &what, |found| {
        let named = found["status"]["waitingFor"] == json!([gate]);
        named && shown(found, "Ready") == wanted && message(found, "Ready").contains(gate)
    });
    awaits.await.map(drop)
}

#[tokio::test]
async fn nothing_is_revealed_or_ready_before_every_gate_has_acknowledged_it() -> Result {
    let (world, gate) = with_gate("ack-reveal", GRACE).await?;
    gate.fall_silent();
    world.apply(&key("acme"))?;
    awaits(&world, "gate-0", "AwaitingGates").await?;
    assert_eq!(world.published().await?.len(), 1);
    assert!(world.get("secret/acme-apikey").is_err());
    gate.follow();
    let issued = ready(&world, "acme", "True/Active").await?;
    assert_eq!(issued["status"]["waitingFor"], json!(null));
    assert_eq!(gate.keys(), 1);
    world.get("secret/acme-apikey")?;
    world.told("acme", &["KeyIssued"]).await?;
    gate.fall_silent();
    edit(&world, "acme", &json!({ "suspend": true }))?;
    awaits(&world, "gate-0", "AwaitingGates").await?;
    gate.follow();
    ready(&world, "acme", "True/Suspended").await.map(drop)
}

#[tokio::test]
async fn fault_38_a_deletion_waits_for_a_silent_gate_and_ends_with_its_acknowledgement() -> Result {
    let (world, gate, operator) = with_gate_of("ack-delete", GRACE).await?;
    world.in_force(&brought("acme", 'b')).await?;
    gate.fall_silent();
    delete(&world, "acme")?;
    awaits(&world, "gate-0", "Deleting").await?;
    for metric in [
        "api_keys{state=\"Active\"}",
        "pending_changes",
        "oldest_pending_change_seconds",
        "silent_gates",
    ] {
        measured(&world, &operator, &format!("water_operator_{metric}")).await?;
    }
    holds(&world, &NOTHING).await?;
    gate.follow();
    world.gone("apikey/acme").await?;
    assert_eq!(gate.keys(), 0);
    measured(&world, &operator, "water_operator_revocations").await
}

#[tokio::test]
async fn fault_38_a_silent_gate_is_not_waited_for_beyond_its_grace_and_ten_seconds() -> Result {
    let (world, gate) = with_gate("ack-run-out", Duration::from_secs(1)).await?;
    world.in_force(&brought("acme", 'c')).await?;
    gate.fall_silent();
    let renewed = world.leases().await?.gates[0].renewed;
    delete(&world, "acme")?;
    world.gone("apikey/acme").await?;
    let silent = world.leases().await?.now.as_millis() - renewed.as_millis();
    assert!(silent >= 11_000, "{silent} ms");
    Ok(())
}

#[tokio::test]
async fn pods_that_may_have_read_the_key_are_waited_for_without_a_lease_and_until_they_are_gone()
-> Result {
    let (world, gate) = with_gate("ack-lost", GRACE).await?;
    pod(&world, "never-ready", false, Started::After)?;
    world.in_force(&brought("acme", 'e')).await?;
    gate.lose_lease().await?;
    delete(&world, "acme")?;
    awaits(&world, &gate.name, "Deleting").await?;
    // It may have read what Redis lost together with its lease.
    pod(&world, "older", false, Started::Before)?;
    end_pod(&world, &gate.name)?;
    awaits(&world, "older", "Deleting").await?;
    end_pod(&world, "older")?;
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn why_the_gates_cannot_be_asked_is_told_counted_and_logged() -> Result {
    let world = World::new("ack-refused").await?;
    world.apply(&api())?;
    let rules = forbid(&world, "pods")?;
    let operator = world.operator("operator-0")?;
    world.apply(&brought("acme", 'a'))?;
    let awaiting = "Reconciling=True/AwaitingGates";
    let told = says(&world, "apikey/acme", awaiting, "the gates cannot be asked").await?;
    let why = message(&told, "Reconciling");
    anyhow::ensure!(why.contains("pods is forbidden"), "{why}");
    let counted = "water_operator_api_server_failures_total{reason=\"refused\"}";
    measured(&world, &operator, counted).await?;
    logs(
        &world,
        &operator,
        "cannot be asked whether they have applied a change",
    )
    .await?;
    allow(&world, &rules)?;
    ready(&world, "acme", "True/Active").await.map(drop)
}

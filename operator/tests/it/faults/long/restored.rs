//! etcd is restored from an older snapshot while everything runs, so that the API server goes back in
//! time; and it is full.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::{Instant, timeout};
use water_harness::{ControlPlane, ControlPlaneOptions};
use water_kit::operator::stage::{Stage, converged};
use water_kit::operator::world::{OBJECT, PATIENCE, key};

use crate::faults::change::offering;
use crate::faults::population::Population;

/// Watches that ask for changes since a time to come stay silent; a renewal of the Lease shows the restore.
const NOTICED_WITHIN: Duration = Duration::from_secs(60);
/// Bytes that etcd may hold: a few times what a control plane begins with.
const SMALL: u64 = 24 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_12_a_restored_snapshot_revives_no_key_and_offers_no_plan_that_came_since()
-> Result<()> {
    let stage = Stage::on(ControlPlane::start().await?, "restored").await?;
    let population = Population::make(&stage).await?;
    let revoked = stage.generate("revoked").await?;
    let brought = stage.bring("brought", 'b').await?;
    let snapshot = stage.cluster.snapshot().await?;
    stage.revoke("revoked", revoked).await?;
    stage.revoke("brought", brought).await?;
    stage.objects.edit_api(&offering(true))?;
    let offered = async || {
        let api = stage.get(OBJECT)?;
        let seen = &api["status"]["observedGeneration"];
        ensure!(*seen == api["metadata"]["generation"], "{api}");
        Ok(())
    };
    stage.wait("the plan to be seen", PATIENCE, offered).await?;
    stage.cluster.restore(&snapshot).await?;
    let restored = Instant::now();
    population.change(&stage)?;
    let mut golden = key("golden");
    golden["spec"]["plan"] = "Gold".into();
    stage.objects.create(&golden)?;
    for name in ["revoked", "brought"] {
        let dead = stage.key_is(name, "Stalled", "True/RevokedInStore");
        timeout(NOTICED_WITHIN, dead).await??;
    }
    let unknown = "False/PlanUnknown";
    stage.key_is("golden", "Accepted", unknown).await?;
    population.rest(&stage, restored).await?;
    stage.generate("after").await?;
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_13_a_full_etcd_ends_no_key_and_room_in_it_needs_no_restart() -> Result<()> {
    let options = ControlPlaneOptions {
        room: SMALL,
        ..ControlPlaneOptions::DEFAULT
    };
    let stage = Stage::on(ControlPlane::start_with(options).await?, "full").await?;
    let kept = stage.generate("kept").await?;
    let text = "x".repeat(900_000);
    let filling = |number| {
        let metadata = json!({ "name": format!("filling-{number}") });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "text": text } })
    };
    let objects = &stage.objects;
    let refused = (0..100).find_map(|number| objects.create(&filling(number)).err());
    let refused = refused.context("etcd is not full")?.to_string();
    ensure!(refused.contains("space exceeded"), "{refused}");
    let noticed = "cannot renew the lease";
    stage.logged(&stage.operator, noticed).await?;
    stage.kubectl(&["delete", "configmap", "--all"])?;
    stage.cluster.make_room().await?;
    let roomy = Instant::now();
    stage.generate("after").await?;
    converged(roomy);
    let text = stage.objects.text_hash("kept")?;
    ensure!(text == Some(kept), "another key");
    stage.holds_for_good().await
}

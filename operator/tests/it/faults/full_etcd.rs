//! etcd is full, and has room again.

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;
use water_harness::{ControlPlane, ControlPlaneOptions};
use water_kit::operator::stage::{Stage, converged};

/// Bytes that etcd may hold: a few times what a control plane begins with.
const SMALL: u64 = 24 * 1024 * 1024;

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
    // Others are of a busy machine.
    let mut refusals = (0..200).filter_map(|number| objects.create(&filling(number)).err());
    let is_full = refusals.any(|refusal| refusal.to_string().contains("space exceeded"));
    ensure!(is_full, "etcd is not full");
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

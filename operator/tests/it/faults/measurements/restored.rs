//! etcd is restored from an older snapshot while everything runs, so that the API server goes back in time.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, timeout};
use water_harness::ControlPlane;
use water_kit::operator::stage::Stage;
use water_kit::operator::world::{OBJECT, PATIENCE, key};

use crate::faults::change::offering;
use crate::faults::population::Population;

/// Watches that ask for changes since a time to come stay silent; a renewal of the Lease shows the restore.
const NOTICED_WITHIN: Duration = Duration::from_secs(60);

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

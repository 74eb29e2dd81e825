//! Renewals of the Lease that are never answered.

use anyhow::{Result, ensure};
use water_harness::{Fault, Moment, Which};

use crate::stage::Stage;
use crate::world::PATIENCE;

const RENEWAL: &str = "PUT /apis/coordination.k8s.io";

/// Lets the next renewal hang, and those after it pass.
async fn hang_one(stage: &Stage, moment: Moment) -> Result<()> {
    stage
        .interceptor
        .order(Which::Every(RENEWAL), moment, Fault::Hang);
    let sent = async || {
        ensure!(renewals(stage) > 0, "no renewal yet");
        Ok(())
    };
    stage.wait("a renewal", PATIENCE, sent).await?;
    stage.interceptor.recall();
    Ok(())
}

/// How many there were since the last order.
fn renewals(stage: &Stage) -> usize {
    let requests = stage.interceptor.requests();
    let renewals = requests.iter().filter(|one| one.starts_with(RENEWAL));
    renewals.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_renewal_that_is_never_answered_costs_no_leadership() -> Result<()> {
    let stage = Stage::new("renewal-hangs").await?;
    let before = stage.point().await?;
    hang_one(&stage, Moment::BeforeDelivery).await?;
    let renewed = async || {
        ensure!(renewals(&stage) >= 2, "not renewed again");
        Ok(())
    };
    stage.wait("two more renewals", PATIENCE, renewed).await?;
    let log = stage.operator.log();
    ensure!(log.contains("does not answer about the lease"), "{log}");
    ensure!(!log.contains("the lease was not renewed in time"), "{log}");
    ensure!(stage.point().await?.term == before.term, "another term");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_released_though_the_answer_to_its_renewal_is_under_way() -> Result<()> {
    let stage = Stage::new("renewal-releases").await?;
    // It is written, and the operator knows an older version.
    hang_one(&stage, Moment::AfterDelivery).await?;
    stage.operator.stop(PATIENCE).await?;
    let leader = stage.objects.leader().await?;
    ensure!(leader.as_deref() == Some(""), "{leader:?} holds the Lease");
    Ok(())
}

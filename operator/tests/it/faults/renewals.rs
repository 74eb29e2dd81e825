//! Renewals of the Lease that are never answered.

use anyhow::{Result, ensure};
use water_harness::{Fault, Moment, Which};
use water_kit::operator::stage::Stage;
use water_kit::operator::world::PATIENCE;

use crate::steps::{NOT_RENEWED, given_back, one_leadership};

const RENEWAL: &str = "PUT /apis/coordination.k8s.io";

/// Lets the next renewal hang, and those after it pass.
async fn hang_one(stage: &Stage, moment: Moment) -> Result<()> {
    let which = Which::Every(RENEWAL);
    stage.interceptor.order(which, moment, Fault::Hang);
    renewed(stage, 1).await?;
    stage.interceptor.recall();
    Ok(())
}

/// Waits until there were so many since the last order.
async fn renewed(stage: &Stage, times: usize) -> Result<()> {
    let renewed = async || {
        let requests = stage.interceptor.requests();
        let renewals = requests.iter().filter(|one| one.starts_with(RENEWAL));
        ensure!(renewals.count() >= times, "{requests:?}");
        Ok(())
    };
    stage.wait("renewals", PATIENCE, renewed).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_renewal_that_is_never_answered_costs_no_leadership() -> Result<()> {
    let start = async |namespace: &str| Ok((Stage::new(namespace).await?, ()));
    one_leadership("renewal-hangs", start, async |stage, ()| {
        let before = stage.point().await?;
        hang_one(stage, Moment::BeforeDelivery).await?;
        renewed(stage, 2).await?;
        let log = stage.operator.log();
        ensure!(log.contains("does not answer about the lease"), "{log}");
        ensure!(!log.contains(NOT_RENEWED), "{log}");
        ensure!(stage.point().await?.term == before.term, "another term");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_04_a_lease_is_released_though_the_answer_to_its_renewal_is_under_way() -> Result<()>
{
    let stage = Stage::new("renewal-releases").await?;
    // It is written, and the operator knows an older version.
    hang_one(&stage, Moment::AfterDelivery).await?;
    stage.operator.stop(PATIENCE).await?;
    given_back(&stage, &stage.operator.log())
}

//! A leader is stopped past its lease amid changes and goes on, and its successor brings them to their end.
//! `faults/measurements/successors.rs` has one that is asked to stop.

use anyhow::Result;
use tokio::time::Instant;
use water_kit::operator::stage::Stage;

use crate::faults::operators::Operators;
use crate::faults::population::Population;
use crate::faults::scenario::{Scenario, Subject};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_05_a_leader_that_goes_on_after_its_lease_undoes_nothing_of_its_successors()
-> Result<()> {
    let stage = Stage::new("stopped-past-lease").await?;
    let operators = Operators::start(&stage)?;
    let population = Population::make(&stage).await?;
    let suspended = Subject::prepare(&stage, Scenario::Suspend, "unseen-suspend").await?;
    let deleted = Subject::prepare(&stage, Scenario::Delete, "unseen-delete").await?;
    // These it has begun, and the others it knows nothing of.
    population.change(&stage)?;
    operators.hold(&stage).await?;
    for subject in [&suspended, &deleted] {
        subject.begin(&stage)?;
        subject.ends(&stage).await?;
    }
    population.rest(&stage, Instant::now()).await?;
    operators.go_on()?;
    let continued = Instant::now();
    let noticed = "the lease was not renewed in time";
    stage.logged(&stage.operator, noticed).await?;
    population.rest(&stage, continued).await?;
    operators.leave_to_first(&stage).await?;
    stage.holds_for_good().await
}

//! A leader goes amid changes, and its successor brings them to their end: it was asked to stop, or
//! it is stopped past its lease and goes on.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;
use water_kit::operator::stage::Stage;

use crate::faults::operators::Operators;
use crate::faults::population::Population;
use crate::faults::scenario::{Scenario, Subject};

/// A leader that is asked to stop has ended by then.
const DRAINED_WITHIN: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_04_a_leader_that_is_asked_to_stop_leaves_its_changes_to_its_successor() -> Result<()>
{
    let stage = Stage::new("asked-to-stop").await?;
    let operators = Operators::start(&stage)?;
    let population = Population::make(&stage).await?;
    population.change(&stage)?;
    let asked = Instant::now();
    stage.operator.stop(DRAINED_WITHIN).await?;
    population.rest(&stage, asked).await?;
    stage.start_again()?;
    operators.leave_to_first(&stage).await?;
    stage.holds_for_good().await
}

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

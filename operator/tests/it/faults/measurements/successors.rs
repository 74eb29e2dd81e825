//! A leader is asked to stop amid changes, and its successor brings them to their end.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;
use water_kit::operator::stage::Stage;

use crate::faults::operators::Operators;
use crate::faults::population::Population;

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

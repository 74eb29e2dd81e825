//! A leader goes amid changes, and its successor brings them to their end: it was asked to stop, or
//! it is stopped past its lease and goes on.

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;

use crate::operators::Operators;
use crate::population::Population;
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::world::PATIENCE;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_asked_to_stop_leaves_its_changes_to_its_successor() -> Result<()> {
    let stage = Stage::new("asked-to-stop").await?;
    let operators = Operators::of(&stage)?;
    let population = Population::of(&stage).await?;
    population.change(&stage).await?;
    let asked = Instant::now();
    stage.operator.stop(PATIENCE).await?;
    let rest = population.rest(&stage, asked).await;
    rest.with_context(|| operators.log_ends())?;
    stage.start_again()?;
    operators.leave_to_first(&stage).await?;
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_goes_on_after_its_lease_undoes_nothing_of_its_successors() -> Result<()> {
    let stage = Stage::new("stopped-past-lease").await?;
    let operators = Operators::of(&stage)?;
    let population = Population::of(&stage).await?;
    let unseen = [Scenario::Suspend, Scenario::Delete];
    let unseen = unseen.map(|scenario| (scenario, format!("unseen-{scenario:?}").to_lowercase()));
    let mut subjects = Vec::new();
    for (scenario, name) in unseen {
        subjects.push((scenario, scenario.prepare(&stage, &name).await?));
    }
    // These it has begun, and the others it knows nothing of.
    population.change(&stage).await?;
    operators.hold(&stage).await?;
    for (scenario, subject) in &subjects {
        scenario.begin(&stage, subject).await?;
        let ended = async || scenario.has_ended(&stage, subject).await;
        stage.wait(&subject.name, PATIENCE, ended).await?;
    }
    let rest = population.rest(&stage, Instant::now()).await;
    rest.with_context(|| operators.log_ends())?;
    operators.go_on()?;
    let continued = Instant::now();
    let noticed = async || {
        let log = stage.operator.log();
        ensure!(log.contains("the lease was not renewed in time"), "{log}");
        Ok(())
    };
    let what = "the first leader to stop leading";
    stage.wait(what, PATIENCE, noticed).await?;
    population.rest(&stage, continued).await?;
    ensure!(
        stage.operator.exit_status()?.is_none(),
        "{}",
        stage.operator.log_end()
    );
    operators.leave_to_first(&stage).await?;
    stage.holds_for_good().await
}

//! The operator is killed at every request of a change, before or after its delivery, until the
//! change ends before. Each time it starts again, brings the change to its end, and all invariants
//! hold. One change is tried in every run, the others in long ones.

mod long;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::time::Instant;
use water_harness::{Fault, Moment, Which};
use water_kit::is_all_asked_for;
use water_kit::operator::stage::Stage;
use water_kit::operator::world::PATIENCE;

use super::scenario::{Scenario, Subject};

/// Time from the restart to the end of the change, where nothing else runs.
const CONVERGED_WITHIN: Duration = Duration::from_secs(10);
/// Number of requests that no change has: one that never ends would be killed for ever.
const MOST: usize = 300;

/// Result of one run.
enum Outcome {
    /// The operator was killed, and this long after its restart the change was through.
    Converged(Duration),
    /// The change had only so many requests.
    NotKilled(usize),
}

/// Moments of the request of this number: by turns, or with `WATER_FAULTS=all` both.
fn moments(number: usize) -> &'static [Moment] {
    const BOTH: [Moment; 2] = [Moment::BeforeDelivery, Moment::AfterDelivery];
    match number % 2 {
        _ if is_all_asked_for() => &BOTH,
        1 => &BOTH[..1],
        _ => &BOTH[1..],
    }
}

/// Kills the operator at its first request, then at its second, until a run ends before the kill. Then
/// comes the invariant that takes long.
async fn killed_at_every_request(scenario: Scenario) -> Result<()> {
    let stage = Stage::new(&format!("kills-{scenario:?}").to_lowercase()).await?;
    let (mut kills, mut slowest) = (0, Duration::ZERO);
    let runs = (1..MOST).flat_map(|number| moments(number).iter().map(move |at| (number, *at)));
    for (number, moment) in runs {
        let name = format!("{scenario:?}-{moment:?}-{number}").to_lowercase();
        let subject = Subject::prepare(&stage, scenario, &name).await?;
        let outcome = run(&stage, &subject, moment, number).await;
        let outcome = outcome.with_context(|| {
            let requests = stage.interceptor.requests();
            format!("{name}: the requests were {requests:?}")
        })?;
        let checked = stage.holds().await;
        checked.with_context(|| format!("after {name}"))?;
        subject.forget(&stage).await?;
        let requests = match outcome {
            Outcome::NotKilled(requests) => requests,
            Outcome::Converged(after) => {
                slowest = slowest.max(after);
                kills += 1;
                continue;
            }
        };
        println!("{scenario:?} has {requests} requests; killed {kills} times");
        println!("converged after {:.3} s", slowest.as_secs_f64());
        // Each run's ApiKey is deleted in the end: the fourth invariant was checked.
        let released = stage.releases.count();
        ensure!(
            requests > 0 && kills >= requests && released > kills,
            "{kills} kills of {requests} requests, {released} releases"
        );
        return stage.holds_for_good().await;
    }
    bail!("{scenario:?} goes on for more than {MOST} requests")
}

async fn run(stage: &Stage, subject: &Subject, moment: Moment, number: usize) -> Result<Outcome> {
    let (operator, interceptor) = (&stage.operator, &stage.interceptor);
    let kill = Fault::Kill(Arc::clone(operator));
    interceptor.order(Which::Number(number), moment, kill);
    subject.begin(stage)?;
    let ended = async || subject.has_ended(stage);
    let stopped = async || match operator.exit_status()? {
        Some(_) => Ok(()),
        None => ended().await,
    };
    let what = "the kill, or the end";
    stage.wait(what, PATIENCE, stopped).await?;
    let course = interceptor.recall();
    if !course.happened {
        return Ok(Outcome::NotKilled(course.requests.len()));
    }
    operator.ended(PATIENCE).await?;
    subject.holds_midway(stage)?;
    // What the killed one has left is soon replaced.
    stage.shows_no_text().await?;
    let restarted = Instant::now();
    operator.start_again()?;
    let within = if is_all_asked_for() {
        CONVERGED_WITHIN
    } else {
        PATIENCE
    };
    stage.wait("the end of the change", within, ended).await?;
    Ok(Outcome::Converged(restarted.elapsed()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_02_a_suspension_killed_at_any_request_ends_with_a_refused_key() -> Result<()> {
    killed_at_every_request(Scenario::Suspend).await
}

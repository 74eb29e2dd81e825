//! The operator is killed at every request of a change, before or after its delivery, until the
//! change ends before. Each time it starts again, brings the change to its end, and all invariants
//! hold.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::time::Instant;
use water_harness::{Fault, Moment, Which};

use crate::scenario::Scenario;
use crate::stage::{Stage, is_all_asked_for};
use crate::world::PATIENCE;

/// From the restart to the end of the change.
const CONVERGED_WITHIN: Duration = Duration::from_secs(10);
/// No change has so many requests: one that never ends would be killed for ever.
const MOST: usize = 300;

/// What the sweep over one change has shown.
#[derive(Default)]
struct Report {
    kills: usize,
    /// Requests of the whole change, when nothing was killed.
    requests: usize,
    slowest: Duration,
}

/// What came of one run.
enum Outcome {
    /// It was killed, and this long after its restart the change was through.
    Converged(Duration),
    /// The change had only so many requests.
    NotKilled(usize),
}

/// At which moments of the request of this number: by turns, or with `WATER_FAULTS=all` at both.
fn moments(number: usize) -> &'static [Moment] {
    const BOTH: [Moment; 2] = [Moment::BeforeDelivery, Moment::AfterDelivery];
    match number % 2 {
        _ if is_all_asked_for() => &BOTH,
        1 => &BOTH[..1],
        _ => &BOTH[1..],
    }
}

/// Kills the operator at its first request, then at its second, until a run ends before the kill.
async fn sweep(stage: &Stage, scenario: Scenario) -> Result<Report> {
    let mut report = Report::default();
    for number in 1..MOST {
        for moment in moments(number) {
            let name = format!("{scenario:?}-{moment:?}-{number}").to_lowercase();
            let outcome = run(stage, scenario, *moment, number, &name).await;
            let outcome = outcome.with_context(|| {
                let requests = stage.interceptor.requests();
                format!("{name}: the requests were {requests:?}")
            })?;
            let checked = stage.holds().await;
            checked.with_context(|| format!("after {name}"))?;
            Scenario::forget(stage, &name).await?;
            match outcome {
                Outcome::Converged(after) => report.slowest = report.slowest.max(after),
                Outcome::NotKilled(requests) => {
                    report.requests = requests;
                    return Ok(report);
                }
            }
            report.kills += 1;
        }
    }
    bail!("{scenario:?} goes on for more than {MOST} requests")
}

async fn run(
    stage: &Stage,
    scenario: Scenario,
    moment: Moment,
    number: usize,
    name: &str,
) -> Result<Outcome> {
    let (operator, interceptor) = (&stage.operator, &stage.interceptor);
    let subject = scenario.prepare(stage, name).await?;
    interceptor.order(
        Which::Number(number),
        moment,
        Fault::Kill(Arc::clone(operator)),
    );
    scenario.begin(stage, &subject).await?;
    let ended = async || scenario.has_ended(stage, &subject).await;
    let stopped = async || match operator.exit_status()? {
        Some(_) => Ok(()),
        None => ended().await,
    };
    stage
        .wait("the kill, or the end", PATIENCE, stopped)
        .await?;
    let course = interceptor.recall();
    if !course.happened {
        return Ok(Outcome::NotKilled(course.requests.len()));
    }
    operator.ended(PATIENCE).await?;
    scenario.holds_midway(stage, &subject).await?;
    // What the killed one has left is soon replaced.
    stage.shows_no_text().await?;
    let restarted = Instant::now();
    operator.start_again()?;
    stage
        .wait("the end of the change", CONVERGED_WITHIN, ended)
        .await?;
    Ok(Outcome::Converged(restarted.elapsed()))
}

/// The sweep over a change, and then the invariant that takes long.
async fn killed_at_every_request(scenario: Scenario) -> Result<()> {
    let stage = Stage::new(&format!("kills-{scenario:?}").to_lowercase()).await?;
    let Report {
        kills,
        requests,
        slowest,
    } = sweep(&stage, scenario).await?;
    println!("{scenario:?} has {requests} requests; killed {kills} times");
    println!("converged after {:.3} s", slowest.as_secs_f64());
    // Each run's ApiKey is deleted in the end: the fourth invariant was looked at.
    ensure!(
        requests > 0 && kills >= requests,
        "{kills} kills of {requests} requests"
    );
    let released = stage.releases.count();
    ensure!(
        released > kills,
        "{released} releases were seen after {kills} kills"
    );
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_killed_at_any_request_ends_with_one_key_in_one_secret() -> Result<()> {
    killed_at_every_request(Scenario::Create).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_killed_at_any_request_leaves_no_moment_without_a_key() -> Result<()> {
    killed_at_every_request(Scenario::Rotate).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reissue_killed_at_any_request_leaves_no_moment_without_a_key() -> Result<()> {
    killed_at_every_request(Scenario::Reissue).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspension_killed_at_any_request_ends_with_a_refused_key() -> Result<()> {
    killed_at_every_request(Scenario::Suspend).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_killed_at_any_request_frees_no_key_that_a_gate_accepts() -> Result<()> {
    killed_at_every_request(Scenario::Delete).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_brought_key_killed_at_any_request_ends_in_force() -> Result<()> {
    killed_at_every_request(Scenario::Bring).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_hash_is_dead_though_the_replacement_was_killed_at_any_request() -> Result<()> {
    killed_at_every_request(Scenario::Replace).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_of_a_brought_key_killed_at_any_request_frees_none_that_a_gate_accepts()
-> Result<()> {
    killed_at_every_request(Scenario::DeleteBrought).await
}

//! The gate's deadline for a service's answer, which a machine that stands still may miss.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;
use water_harness::Answer;
use water_kit::exactly;
use water_kit::gate::Overdue;

/// Time from a request to its 503 where the service has not answered.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Awaits an answer, and returns the time that it took, too.
pub async fn timed(answer: impl Future<Output = Answer>) -> (Answer, Duration) {
    let begun = Instant::now();
    (answer.await, begun.elapsed())
}

/// Returns an answer's status, or an error if it may be only the deadline's: 503 after so long.
pub fn decided((answer, took): &(Answer, Duration)) -> Result<u16, Overdue> {
    match answer.status {
        503 if *took >= DEADLINE => Err(Overdue(*took)),
        status => Ok(status),
    }
}

/// Checks that all answers are 200. Returns an error if all others were overdue, each by its own time.
pub fn all_served(answers: &[(Answer, Duration)]) -> Result<(), Overdue> {
    let mut statuses = answers.iter().map(decided);
    let is_wrong = |status: Result<u16, Overdue>| status.is_ok_and(|status| status != 200);
    assert!(!statuses.clone().any(is_wrong), "{answers:?}");
    statuses.try_for_each(|status| status.map(|_| ()))
}

/// Runs a scenario, and runs it again from its beginning if an answer was overdue. The third time is a failure.
pub async fn in_time(scenario: impl AsyncFn() -> Result<(), Overdue>) {
    exactly(async || -> Result<()> { Ok(scenario().await?) }).await;
}

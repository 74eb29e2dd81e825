//! Tests of programs that are started again.

use std::time::Duration;

use anyhow::{Result, ensure};
use water_harness::{Program, wait_until};

const SOON: Duration = Duration::from_secs(60);

/// Fails when it is asked to stop, and by itself as long as its log has fewer than three lines.
const FAILING: &str = r#"
trap 'exit 1' TERM
echo started
[ "$(wc --lines < /proc/$$/fd/1)" -lt 3 ] && exit 1
while :; do sleep 0.1; done"#;

#[tokio::test]
async fn a_program_that_restarts_does_so_after_each_failure_of_its_own() -> Result<()> {
    let program = Program::new("/bin/sh").args(["-c", FAILING]).restarts();
    let process = program.start()?;
    wait_until("three starts", SOON, async || {
        let log = process.log();
        ensure!(log.lines().count() == 3, "{log}");
        Ok(())
    })
    .await?;
    let stopped = process.stop(SOON).await?;
    assert_eq!(stopped.code(), Some(1), "it was asked to");
    // The log ends with the third start, whatever comes after.
    assert_eq!(process.log().lines().count(), 3);
    Ok(())
}

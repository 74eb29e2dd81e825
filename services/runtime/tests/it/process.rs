//! The end of a process, by signal and by the death of a background task.

use std::convert::Infallible;
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use water_runtime::shutdown::Stage;
use water_runtime::{BoxError, DrainOutcome, Process, program};

use crate::server::{LONG, SOON};

/// A signal reaches every process frame of this test binary: one test at a time.
static SIGNALS: Mutex<()> = Mutex::const_new(());

async fn drains(shutdown: water_runtime::Shutdown) -> Result<DrainOutcome, Infallible> {
    shutdown.reached(Stage::Draining).await;
    Ok(DrainOutcome::default())
}

#[tokio::test]
async fn a_signal_stops_the_process_after_its_delay_and_a_second_one_at_once() {
    let _alone = SIGNALS.lock().await;
    let mut process = Process::start(program!()).unwrap();
    let delay = Duration::from_millis(200);
    let server = drains(process.shutdown.clone());
    let begun = Instant::now();
    raise(Signal::SIGTERM).unwrap();
    process.finish(delay, server).await.unwrap();
    assert!(begun.elapsed() >= delay);
    assert_eq!(process.readiness.missing(), ["not stopping"]);

    let mut process = Process::start(program!()).unwrap();
    let server = drains(process.shutdown.clone());
    let stopping = process.shutdown.clone();
    raise(Signal::SIGINT).unwrap();
    let again = async {
        stopping.reached(Stage::Stopping).await;
        raise(Signal::SIGINT).unwrap();
    };
    let both = async { tokio::join!(process.finish(LONG, server), again) };
    let (ended, ()) = timeout(SOON, both).await.unwrap();
    ended.unwrap();
}

#[tokio::test]
async fn the_end_of_a_background_task_ends_the_process_with_an_error() {
    let _alone = SIGNALS.lock().await;
    let mut process = Process::start(program!()).unwrap();
    process.tasks.spawn("feed", async {});
    let server = drains(process.shutdown.clone());
    let error = process.finish(Duration::ZERO, server).await.unwrap_err();
    assert_eq!(error.to_string(), "the background task `feed` ended");
    assert!(!process.readiness.is_ready());
}

#[tokio::test]
async fn a_server_that_ends_by_itself_ends_the_process_with_an_error() {
    let _alone = SIGNALS.lock().await;
    let mut process = Process::start(program!()).unwrap();
    let early = async { Err::<DrainOutcome, BoxError>("planted".into()) };
    let error = process.finish(LONG, early).await.unwrap_err();
    assert_eq!(error.to_string(), "planted");
}

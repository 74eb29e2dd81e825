//! A pod's budget of connections: a setting, which no number of cores or requests exceeds.

use std::sync::Arc;
use std::thread::available_parallelism;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tokio::task::{JoinSet, spawn_blocking};
use water_kit::{Database, Running};

use crate::{ANALYSES, Lock};

/// Number of requests, more than any budget here.
const REQUESTS: usize = 24;

const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_reader'";

fn start(url: &str, settings: &[(&str, &str)]) -> Running {
    Running::start_with(url, settings, water_history::start)
}

/// Runs `start` as on a machine with one core.
fn on_one_core<T>(start: impl FnOnce() -> T) -> T {
    let this_thread = Pid::from_raw(0);
    let all = sched_getaffinity(this_thread).unwrap();
    let mut cores = (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap());
    let mut one = CpuSet::new();
    one.set(cores.next().unwrap()).unwrap();
    sched_setaffinity(this_thread, &one).unwrap();
    assert_eq!(available_parallelism().unwrap().get(), 1);
    let started = start();
    sched_setaffinity(this_thread, &all).unwrap();
    started
}

/// Returns the most sessions that the service had while more requests waited for a lock than it may have sessions.
/// `start` starts the service on the database of a URL.
async fn most_sessions(start: impl FnOnce(&str) -> Running) -> usize {
    let database = Database::alone().await;
    let service = Arc::new(start(&database.reader_url()).ready().await);
    let _lock = Lock::analyses(&database).await;
    let mut asking = JoinSet::new();
    for _ in 0..REQUESTS {
        let service = Arc::clone(&service);
        asking.spawn(async move { service.get(ANALYSES).await.status });
    }
    let mut most = 0;
    while !asking.is_empty() {
        let database = database.clone();
        let sessions = spawn_blocking(move || database.sql(SESSIONS)).await;
        most = most.max(sessions.unwrap().parse().unwrap());
        while let Some(status) = asking.try_join_next() {
            assert_eq!(status.unwrap(), 503);
        }
    }
    most
}

#[tokio::test]
async fn a_pod_opens_eight_connections_at_most_on_one_core_too() {
    let small = |url: &str| on_one_core(|| start(url, &[]));
    assert_eq!(most_sessions(small).await, 8);
}

#[tokio::test]
async fn a_pod_opens_as_many_connections_as_it_is_told() {
    let told = [("WATER_POSTGRES_CONNECTIONS", "3")];
    assert_eq!(most_sessions(|url| start(url, &told)).await, 3);
}

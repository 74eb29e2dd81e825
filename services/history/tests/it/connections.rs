//! A pod's budget of connections: it is a setting, and no number of cores or requests exceeds it.

use std::sync::Arc;
use std::thread::available_parallelism;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tokio::task::{JoinSet, spawn_blocking};
use water_harness::Postgres;

use crate::fixture::{Running, lock_analyses, migrated};

/// More than any budget here.
const REQUESTS: usize = 24;

const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_reader'";

fn start(url: &str, settings: &[(&str, &str)]) -> Running {
    Running::start_with(url, settings, water_history::start)
}

/// Starts something as on a machine with one core.
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

/// The most sessions that the service ever had while more requests waited for a lock than it may
/// have sessions. `start` starts the service on the database of a URL.
async fn most_sessions(start: impl FnOnce(&str) -> Running) -> usize {
    let postgres = Arc::new(Postgres::start().await.unwrap());
    let database = migrated(&postgres).await;
    let url = database.url_as("water_reader");
    let service = Arc::new(start(&url).ready().await);
    lock_analyses(&postgres, database.name()).await;
    let mut asking = JoinSet::new();
    for _ in 0..REQUESTS {
        let service = Arc::clone(&service);
        asking.spawn(async move { service.get("/api/v1/hydrorisk").await.status });
    }
    let mut most = 0;
    while !asking.is_empty() {
        let (server, name) = (Arc::clone(&postgres), database.name().to_owned());
        let sessions = spawn_blocking(move || server.sql(&name, SESSIONS)).await;
        most = most.max(sessions.unwrap().unwrap().parse().unwrap());
        while let Some(status) = asking.try_join_next() {
            assert_eq!(status.unwrap(), 503);
        }
    }
    most
}

#[tokio::test]
async fn a_pod_opens_eight_connections_at_most() {
    assert_eq!(most_sessions(|url| start(url, &[])).await, 8);
}

#[tokio::test]
async fn a_pod_on_one_core_opens_as_many_connections_as_on_more() {
    let small = |url: &str| on_one_core(|| start(url, &[]));
    assert_eq!(most_sessions(small).await, 8);
}

#[tokio::test]
async fn a_pod_opens_as_many_connections_as_it_is_told() {
    let told = [("WATER_POSTGRES_CONNECTIONS", "3")];
    assert_eq!(most_sessions(|url| start(url, &told)).await, 3);
}

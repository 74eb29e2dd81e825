//! A pod's budget of connections: it is a setting, and no number of cores or requests exceeds it.

use std::sync::Arc;

use tokio::task::{JoinSet, spawn_blocking};
use water_harness::Postgres;

use crate::fixture::{Running, lock_analyses, migrated};

/// More than any budget here.
const REQUESTS: usize = 24;

const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_reader'";

/// The most sessions that the service ever had while more requests waited for a lock than it may
/// have sessions.
async fn most_sessions(settings: &[(&str, &str)]) -> usize {
    let postgres = Arc::new(Postgres::start().await.unwrap());
    let database = migrated(&postgres).await;
    let url = database.url_as("water_reader");
    let service = Running::start_with(&url, settings, water_history::start);
    let service = Arc::new(service.ready().await);
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
async fn a_pod_opens_eight_connections_at_most_on_any_number_of_cores() {
    assert_eq!(most_sessions(&[]).await, 8);
}

#[tokio::test]
async fn a_pod_opens_as_many_connections_as_it_is_told() {
    let told = [("WATER_POSTGRES_CONNECTIONS", "3")];
    assert_eq!(most_sessions(&told).await, 3);
}

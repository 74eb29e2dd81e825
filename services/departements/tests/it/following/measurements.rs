//! Times until a load is served.

use std::time::Duration;

use anyhow::ensure;
use water_harness::wait_until;
use water_kit::{Database, SOON, stress};

use super::{change_in_silence, until_index};
use crate::start;

/// The longest wait of the better half: a machine that pauses delays one load, not most.
fn median(mut waits: Vec<Duration>) -> Duration {
    println!("served after {waits:?}");
    waits.sort();
    waits[waits.len() / 2]
}

#[tokio::test]
async fn a_load_that_announces_itself_is_served_at_once_and_another_within_two_seconds() {
    let database = Database::new().await;
    let mut loader = database.writer().await;
    loader.stress(1, &[stress("34", 0.25)]).await;
    let service = start(&database).ready().await;
    let listens = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    wait_until("the service to listen", SOON, async || {
        let listeners = database.sql(listens);
        ensure!(listeners == "1", "{listeners}");
        Ok(())
    })
    .await
    .unwrap();
    let mut waits = Vec::new();
    for index in [0.5, 1.0, 1.5, 2.0, 2.5] {
        loader.stress(1, &[stress("34", index)]).await;
        waits.push(until_index(&service, index).await);
    }
    // Without the announcement each would be served at the next check, a second after the one before.
    assert!(median(waits) <= Duration::from_millis(500));

    let mut waits = Vec::new();
    for index in [3.0, 3.5, 4.0] {
        change_in_silence(&database, index);
        waits.push(until_index(&service, index).await);
    }
    assert!(median(waits) <= Duration::from_secs(2));
}

//! How soon a load is served: within a second where it announces itself, within two where it is only
//! found by looking.

use std::time::Duration;

use anyhow::ensure;
use water_harness::{Postgres, wait_until};

use crate::fixture::{Running, day, load, migrated, ready, stress, writer};

/// Waits until the record of 34 has this index, at most this long.
async fn until_index(service: &Running, index: f64, within: Duration) {
    let served = async || {
        let answer = service.get("/api/v1/stress?dept=34").await;
        ensure!(answer.json()?["stressIndex"] == index, "{answer:?}");
        Ok(())
    };
    wait_until("the load to be served", within, served)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_load_that_announces_itself_is_served_within_a_second() {
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let mut writer = writer(&database).await;
    let mut index = async |index| {
        let rows = [stress("34", index)];
        writer.replace_stress(&rows, day(1), &load()).await.unwrap();
    };
    index(0.5).await;
    let service = ready(&database.url_as("water_reader")).await;
    for number in 1..=5 {
        index(f64::from(number)).await;
        until_index(&service, f64::from(number), Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn a_load_that_nobody_hears_of_is_served_within_two_seconds() {
    let postgres = Postgres::shared().await.unwrap();
    let database = migrated(postgres).await;
    let rows = [stress("34", 0.5)];
    writer(&database)
        .await
        .replace_stress(&rows, day(1), &load())
        .await
        .unwrap();
    let service = ready(&database.url_as("water_reader")).await;
    for number in 1..=3 {
        let silently = format!(
            "UPDATE water.stress SET stress_index = {number}; \
             UPDATE water.datasets SET version = version + 1 WHERE name = 'stress'"
        );
        postgres.sql(database.name(), &silently).unwrap();
        until_index(&service, f64::from(number), Duration::from_secs(2)).await;
    }
}

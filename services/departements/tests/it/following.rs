//! New loads: their changes in answers, and how soon these appear.

mod measurements;

use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;
use water_harness::wait_until;
use water_kit::{Database, Running, SOON, day, risk, stress};

use crate::{CSV, RISQUE, STRESS, start, until, with_data};

#[tokio::test]
async fn a_load_replaces_its_own_dataset_and_leaves_the_other_alone() {
    let (service, mut loader) = with_data().await;
    let (stresses, risks) = (service.get(STRESS).await, service.get(RISQUE).await);
    loader.stress(9, &[stress("34", 0.5)]).await;
    until(&service, STRESS, 9).await;
    let after = service.get(STRESS).await;
    assert_eq!(after.json().unwrap()["count"], 1);
    assert_ne!(after.header("etag"), stresses.header("etag"));
    assert_eq!(service.get("/api/v1/stress?dept=01").await.status, 404);
    let other = service.get(RISQUE).await;
    assert_eq!(other.header("etag"), risks.header("etag"));
}

#[tokio::test]
async fn a_load_changes_the_date_of_the_levels_and_of_the_records_that_it_changes_alone() {
    let (service, mut loader) = with_data().await;
    let before = service.get(STRESS).await;
    let body = before.json().unwrap();
    let same = body["data"].as_array().unwrap().iter();
    let mut records: Vec<_> = same
        .map(|record| stress(record["dept"].as_str().unwrap(), 3.0))
        .collect();
    loader.stress(9, &records).await;
    // The check that finds this later load finds the other one too.
    loader.risk(9, &[risk("34", 99.0)]).await;
    until(&service, RISQUE, 9).await;
    let after = service.get(STRESS).await;
    let same = after.text().unwrap().replace("2026-01-09", "2026-01-02");
    assert_eq!(same, before.text().unwrap());
    assert_eq!(after.json().unwrap()["updatedAt"], body["updatedAt"]);

    for record in &mut records {
        if record.departement.code == "34" {
            *record = stress("34", 0.5);
        }
    }
    loader.stress(10, &records).await;
    until(&service, STRESS, 10).await;
    for (dept, as_of) in [("34", day(10)), ("01", day(2))] {
        let one = format!("{STRESS}?dept={dept}");
        let answer = service.get(&one).await;
        assert_eq!(answer.json().unwrap()["updatedAt"], as_of.to_string());
        for target in [&one, STRESS] {
            let csv = service.request("GET", target, &[CSV]).await;
            let mut lines = csv.text().unwrap().lines();
            let line = lines.find(|line| line.starts_with(dept)).unwrap();
            assert!(line.ends_with(&format!(",{as_of}")), "{target}: {line}");
        }
    }
}

/// Waits until the record of 34 has this index, and returns the time taken.
async fn until_index(service: &Running, index: f64) -> Duration {
    let begun = Instant::now();
    let served = async || {
        let answer = service.get("/api/v1/stress?dept=34").await;
        ensure!(answer.json()?["stressIndex"] == index, "{answer:?}");
        Ok(())
    };
    wait_until("the load", SOON, served).await.unwrap();
    begun.elapsed()
}

/// Changes the record of 34 without the announcement that a load makes.
fn change_in_silence(database: &Database, index: f64) {
    database.sql(&format!(
        "UPDATE water.stress SET stress_index = {index}; \
         UPDATE water.datasets SET version = version + 1 WHERE name = 'stress'"
    ));
}

#[tokio::test]
async fn a_load_that_does_not_announce_itself_is_served_too() {
    let database = Database::new().await;
    let mut loader = database.writer().await;
    loader.stress(1, &[stress("34", 0.25)]).await;
    let service = start(&database).ready().await;
    change_in_silence(&database, 3.0);
    until_index(&service, 3.0).await;
}

#[tokio::test]
async fn a_stored_value_of_a_newer_version_stops_its_own_record_only() {
    let database = Database::new().await;
    let mut loader = database.writer().await;
    loader
        .stress(1, &[stress("01", 1.0), stress("34", 1.0)])
        .await;
    database.sql(
        "ALTER TABLE water.stress DROP CONSTRAINT stress_level_check; \
         UPDATE water.stress SET level = 'catastrophe' WHERE dept = '34'",
    );
    let service = start(&database).ready().await;
    assert_eq!(service.get("/api/v1/stress?dept=01").await.status, 200);
    assert_eq!(service.get("/api/v1/stress?dept=34").await.status, 404);
    assert_eq!(service.metric("water_dataset_records_skipped").await, "1");
}

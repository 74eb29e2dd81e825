//! Following the database: new loads, outages, and a start without it.

use anyhow::ensure;
use serde_json::Value;
use water_harness::{Postgres, wait_until};

use crate::fixture::{
    Running, SOON, day, load, migrated, ready, risk, start, stress, with_data, writer,
};

/// Waits until the list of `path` is as of `day`.
pub async fn until(service: &Running, path: &str, as_of: i64) {
    let seen = async || {
        let answer = service.get(path).await;
        ensure!(
            answer.json()?["updatedAt"] == day(as_of).to_string(),
            "{answer:?}"
        );
        Ok(())
    };
    wait_until("the new dataset", SOON, seen).await.unwrap();
}

#[tokio::test]
async fn a_new_load_is_served_with_new_tags() {
    let (service, mut writer) = with_data().await;
    let before = service.get("/api/v1/stress").await;
    writer
        .replace_stress(&[stress("34", 0.5)], day(9), &load())
        .await
        .unwrap();
    until(&service, "/api/v1/stress", 9).await;
    let after = service.get("/api/v1/stress").await;
    assert_eq!(after.json().unwrap()["count"], 1);
    assert_ne!(after.header("etag"), before.header("etag"));
}

#[tokio::test]
async fn a_load_of_the_other_dataset_leaves_the_tags_alone() {
    let (service, mut writer) = with_data().await;
    let before = service.get("/api/v1/stress").await;
    writer
        .replace_risk(&[risk("34", 99.0)], day(9), &load())
        .await
        .unwrap();
    until(&service, "/api/v1/risque", 9).await;
    assert_eq!(
        service.get("/api/v1/stress").await.header("etag"),
        before.header("etag")
    );
}

#[tokio::test]
async fn a_load_that_says_the_same_changes_neither_date_nor_tags() {
    let (service, mut writer) = with_data().await;
    let before = service.get("/api/v1/stress").await;
    let body = before.json().unwrap();
    let same = body["data"].as_array().unwrap().iter();
    let same: Vec<_> = same
        .map(|record| stress(record["dept"].as_str().unwrap(), 3.0))
        .collect();
    writer.replace_stress(&same, day(9), &load()).await.unwrap();
    // Seen together with this one, which comes later.
    writer
        .replace_risk(&[risk("34", 99.0)], day(9), &load())
        .await
        .unwrap();
    until(&service, "/api/v1/risque", 9).await;
    let after = service.get("/api/v1/stress").await;
    assert_eq!(after.body, before.body);
    assert_eq!(after.header("etag"), before.header("etag"));
}

#[tokio::test]
async fn removed_records_are_not_found_any_more() {
    let (service, mut writer) = with_data().await;
    writer
        .replace_stress(&[stress("34", 0.5)], day(9), &load())
        .await
        .unwrap();
    until(&service, "/api/v1/stress", 9).await;
    assert_eq!(service.get("/api/v1/stress?dept=01").await.status, 404);
    assert_eq!(service.get("/api/v1/risque?dept=01").await.status, 200);
}

#[tokio::test]
async fn a_reader_never_sees_two_loads_in_one_answer() {
    let (service, mut writer) = with_data().await;
    let loads = tokio::spawn(async move {
        for version in 10..40 {
            let codes = ["01", "2A", "34", "971"]
                .into_iter()
                .cycle()
                .take(1 + version % 4);
            let rows: Vec<_> = codes
                .map(|code| stress(code, version as f64 / 10.0))
                .collect();
            writer
                .replace_stress(&rows, day(version as i64), &load())
                .await
                .unwrap();
        }
    });
    let mut versions = 0;
    let mut last = Value::Null;
    while last != day(39).to_string() {
        let answer = service.get("/api/v1/stress").await.json().unwrap();
        consistent(&answer);
        versions += i32::from(answer["updatedAt"] != last);
        last = answer["updatedAt"].clone();
    }
    loads.await.unwrap();
    assert!(versions > 2, "the reader saw {versions} versions only");
}

/// All records are of the load that the envelope's date says.
fn consistent(answer: &Value) {
    let records = answer["data"].as_array().unwrap();
    assert_eq!(answer["count"], records.len());
    for version in 10..40_u8 {
        if answer["updatedAt"] == day(version.into()).to_string() {
            let index = f64::from(version) / 10.0;
            assert_eq!(records.len(), 1 + usize::from(version) % 4);
            assert!(
                records
                    .iter()
                    .all(|record| record["stressIndex"].as_f64() == Some(index)),
                "{answer}"
            );
        }
    }
}

#[tokio::test]
async fn an_outage_is_not_noticed_by_readers_and_its_end_is() {
    let postgres = Postgres::start().await.unwrap();
    let database = migrated(&postgres).await;
    let rows = [stress("34", 1.0)];
    writer(&database)
        .await
        .replace_stress(&rows, day(1), &load())
        .await
        .unwrap();
    let service = ready(&database.url_as("water_reader")).await;
    let before = service.get("/api/v1/stress").await;

    postgres.process().kill().unwrap();
    let during = service.get("/api/v1/stress").await;
    assert_eq!((during.status, &during.body), (200, &before.body));
    let counted = async || {
        let metrics = service.admin("/metrics").await;
        let failures = "\nwater_dataset_failures_total 0\n";
        ensure!(!metrics.text()?.contains(failures), "{metrics:?}");
        Ok(())
    };
    wait_until("a failure to be counted", SOON, counted)
        .await
        .unwrap();
    assert_eq!(service.admin("/ready").await.status, 200);

    postgres.process().start_again().unwrap();
    postgres.ready().await.unwrap();
    writer(&database)
        .await
        .replace_stress(&[stress("34", 2.0)], day(2), &load())
        .await
        .unwrap();
    until(&service, "/api/v1/stress", 2).await;
}

#[tokio::test]
async fn what_comes_back_under_the_same_version_is_read_again() {
    let postgres = Postgres::start().await.unwrap();
    let database = migrated(&postgres).await;
    let rows = [stress("34", 1.0)];
    writer(&database)
        .await
        .replace_stress(&rows, day(1), &load())
        .await
        .unwrap();
    let service = ready(&database.url_as("water_reader")).await;

    for restore in ["UPDATE water.stress SET stress_index = 4", "CHECKPOINT"] {
        postgres.sql(database.name(), restore).unwrap();
    }
    postgres.process().kill().unwrap();
    postgres.process().start_again().unwrap();
    let seen = async || {
        let answer = service.get("/api/v1/stress?dept=34").await;
        ensure!(answer.json()?["stressIndex"] == 4, "{answer:?}");
        Ok(())
    };
    wait_until("the restored record", SOON, seen).await.unwrap();
}

#[tokio::test]
async fn a_cold_pod_is_not_ready_before_it_has_read_the_database() {
    let postgres = Postgres::start().await.unwrap();
    let database = migrated(&postgres).await;
    postgres.process().kill().unwrap();
    let service = start(&database.url_as("water_reader"));
    let unready = service.admin("/ready").await;
    assert_eq!(
        (
            unready.status,
            unready.json().unwrap()["missing"][0].clone()
        ),
        (503, "datasets".into())
    );
    assert_eq!(service.admin("/live").await.status, 200);
    let answer = service.get("/api/v1/stress").await;
    assert_eq!(
        (answer.status, answer.json().unwrap()["code"].clone()),
        (503, "dependency_unavailable".into())
    );
    assert!(answer.header("retry-after").is_some());

    postgres.process().start_again().unwrap();
    let service = service.ready().await;
    assert_eq!(service.get("/api/v1/stress").await.status, 404);
}

//! Answers of `/sources`: the origin of every dataset, and the calling account's counts only.

use water_database::writer::{History, StressRow};
use water_domain::{Level, Timestamp};
use water_harness::Answer;
use water_kit::{Database, row, rows, stress};

use crate::{empty, start};

const PATH: &str = "/api/v1/sources";

#[tokio::test]
async fn a_dataset_has_its_source_link_licence_date_and_derived_levels() {
    let database = Database::new().await;
    let service = start(&database.reader_url()).ready().await;
    let without_data = service.get(PATH).await;
    assert_eq!(without_data.text().unwrap(), r#"{"data":[]}"#);
    let level = |level| StressRow {
        level,
        ..stress("34", 2.5)
    };
    let derived = StressRow {
        level: None,
        ..stress("75", 2.5)
    };
    let mut loader = database.writer().await;
    loader
        .stress(182, &[level(Some(Level::Alerte)), derived])
        .await;
    database.sql(
        "UPDATE water.loads SET source = 'An agency', licence = 'Licence Ouverte 2.0', \
         source_url = 'https://example.org/stress'",
    );
    let answer = service.get(PATH).await;
    let loaded = answer.json().unwrap()["data"][0]["loadedAt"].take();
    let loaded = loaded.as_str().unwrap();
    assert!(Timestamp::parse(loaded).is_ok());
    // In the order of the contract.
    let expected = concat!(
        r#"{"data":[{"dataset":"stress","source":"An agency","#,
        r#""sourceUrl":"https://example.org/stress","licence":"Licence Ouverte 2.0","#,
        r#""asOf":"2026-07-01T00:00:00.000Z","loadedAt":"…","records":2,"synthetic":true,"#,
        r#""derivedLevels":["75"],"keptLevels":[]}]}"#
    );
    assert_eq!(answer.text().unwrap(), expected.replace('…', loaded));
}

#[tokio::test]
async fn a_historys_count_is_the_calling_accounts_and_who_loaded_it_is_not_said() {
    let (service, mut loader) = empty().await;
    let all = [rows(3), vec![row("theirs", 0).account("other")]].concat();
    loader.history(History::Analyses, &all).await;
    let count = |answer: &Answer| answer.json().unwrap()["data"][0]["records"].take();
    let answer = service.get(PATH).await;
    for inside in ["a test", "nobody", "0707"] {
        assert!(!answer.text().unwrap().contains(inside), "{answer:?}");
    }
    assert_eq!(count(&answer), 3);
    assert_eq!(count(&service.get_as("other", PATH).await), 1);
    let nobody = service.get_as("nobody", PATH).await;
    assert_eq!(nobody.text().unwrap(), r#"{"data":[]}"#);
}

#[tokio::test]
async fn sources_are_checked_each_time_and_304_until_something_is_loaded() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(1)).await;
    let full = service.get(PATH).await;
    assert_eq!(full.header("cache-control"), Some("private, no-cache"));
    assert_eq!(full.header("content-type"), Some("application/json"));
    let known = [("If-None-Match", full.header("etag").unwrap())];
    let again = service.request("GET", PATH, &known).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    loader.history(History::Analyses, &rows(2)).await;
    assert_eq!(service.request("GET", PATH, &known).await.status, 200);
}

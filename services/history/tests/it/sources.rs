//! What `/sources` answers: the origin of every dataset, and the calling account's counts only.

use serde_json::{Value, json};
use water_database::writer::{History, StressRow};
use water_domain::{Level, Number, Timestamp, departement};
use water_harness::{Answer, Database, Postgres};

use crate::fixture::{Row, Running, empty, load, migrated, row, rows, start, writer};

const PATH: &str = "/api/v1/sources";

fn source<'a>(answer: &'a Value, dataset: &str) -> &'a Value {
    let sources = answer["data"].as_array().unwrap();
    let found = sources.iter().find(|source| source["dataset"] == dataset);
    found.unwrap_or(&Value::Null)
}

fn stress(code: &str, level: Option<Level>) -> StressRow {
    StressRow {
        departement: departement::parse(code).unwrap(),
        stress_index: Number::try_from(2.5).unwrap(),
        level,
    }
}

/// A service whose stress records come from a source with a licence; one level is derived.
async fn licensed() -> (Running, Database) {
    let postgres = Postgres::shared().await.unwrap();
    let database = migrated(postgres).await;
    let rows = [stress("34", Some(Level::Alerte)), stress("75", None)];
    let as_of = Timestamp::parse("2026-07-01T00:00:00Z").unwrap();
    writer(&database)
        .await
        .replace_stress(&rows, as_of, &water_kit::load())
        .await
        .unwrap();
    let told = "UPDATE water.loads SET source = 'An agency', licence = 'Licence Ouverte 2.0', \
                source_url = 'https://example.org/stress'";
    postgres.sql(database.name(), told).unwrap();
    let service = start(&database.url_as("water_reader")).ready().await;
    (service, database)
}

#[tokio::test]
async fn without_data_there_are_no_sources() {
    let (service, _) = empty().await;
    let answer = service.get(PATH).await;
    assert_eq!(
        (answer.status, answer.text().unwrap()),
        (200, r#"{"data":[]}"#)
    );
}

#[tokio::test]
async fn a_dataset_has_its_source_link_licence_date_and_derived_levels() {
    let (service, _) = licensed().await;
    let mut answer = service.get(PATH).await.json().unwrap();
    let loaded = answer["data"][0]["loadedAt"].take();
    assert!(Timestamp::parse(loaded.as_str().unwrap()).is_ok());
    assert_eq!(
        source(&answer, "stress"),
        &json!({
            "dataset": "stress",
            "source": "An agency",
            "sourceUrl": "https://example.org/stress",
            "licence": "Licence Ouverte 2.0",
            "asOf": "2026-07-01T00:00:00.000Z",
            "loadedAt": null,
            "records": 2,
            "synthetic": true,
            "derivedLevels": ["75"],
        })
    );
}

#[tokio::test]
async fn the_fields_come_in_the_order_of_the_contract() {
    let (service, _) = licensed().await;
    let answer = service.get(PATH).await;
    let text = answer.text().unwrap();
    let places = [
        "dataset",
        "source",
        "sourceUrl",
        "licence",
        "asOf",
        "loadedAt",
        "records",
        "synthetic",
        "derivedLevels",
    ]
    .map(|field| text.find(&format!("\"{field}\":")).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[tokio::test]
async fn neither_files_nor_loaders_nor_hashes_are_told() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(1)).await;
    let answer = service.get(PATH).await;
    for inside in ["a test", "nobody", "0707"] {
        assert!(!answer.text().unwrap().contains(inside), "{answer:?}");
    }
}

#[tokio::test]
async fn a_historys_count_is_the_calling_accounts() {
    let (service, mut writer) = empty().await;
    let other = Row {
        account: "other",
        ..row("theirs", 0)
    };
    let all = [rows(3), vec![other]].concat();
    load(&mut writer, History::Analyses, &all).await;
    let count = |answer: Answer| source(&answer.json().unwrap(), "analyses")["records"].clone();
    assert_eq!(count(service.get(PATH).await), 3);
    assert_eq!(count(service.get_as("other", PATH).await), 1);
    assert_eq!(count(service.get_as("nobody", PATH).await), 0);
}

#[tokio::test]
async fn it_is_checked_each_time_and_304_until_something_is_loaded() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(1)).await;
    let full = service.get(PATH).await;
    assert_eq!(full.header("cache-control"), Some("private, no-cache"));
    assert_eq!(full.header("content-type"), Some("application/json"));
    let known = [("If-None-Match", full.header("etag").unwrap())];
    let again = service.request("GET", PATH, &known).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    load(&mut writer, History::Analyses, &rows(2)).await;
    assert_eq!(service.request("GET", PATH, &known).await.status, 200);
}

#[tokio::test]
async fn it_needs_the_gates_signature() {
    let (service, _) = empty().await;
    assert_eq!(service.raw("GET", PATH, &[]).await.status, 401);
}

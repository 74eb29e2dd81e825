//! Bulk pages that are refused: what is wrong, and what to do.

use serde_json::Value;
use water_database::writer::History;
use water_harness::Postgres;

use crate::changes::since;
use crate::fixture::writer;
use crate::fixture::{Signature, bulk, empty, link, load, migrated, problem, rows, start, token};

const ALL: &str = "/api/v1/hydrorisk";

fn parameter(name: &str) -> (u16, Value, Value) {
    (400, "invalid_parameter".into(), name.into())
}

#[tokio::test]
async fn parameters_of_the_other_form_are_refused() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(9)).await;
    let page = bulk(&service, "/api/v1/hydrorisk?limit=3", "csv").await;
    let (next, token) = (link(&page, "next").unwrap(), token(&page));
    for (target, form, name) in [
        ("/api/v1/hydrorisk?offset=0", "csv", "offset"),
        ("/api/v1/hydrorisk?offset=0&limit=0", "ndjson", "offset"),
        (next.as_str(), "json", "cursor"),
        (since(&token).as_str(), "json", "changedSince"),
        ("/api/v1/hydrorisk?limit=0", "csv", "limit"),
        ("/api/v1/hydrorisk?limit=1.5", "ndjson", "limit"),
        ("/api/v1/hydrorisk?limit=1&limit=1", "csv", "limit"),
        (
            &format!("{next}&changedSince={token}"),
            "csv",
            "changedSince",
        ),
        (&format!("{next}&cursor="), "csv", "cursor"),
    ] {
        let answer = bulk(&service, target, form).await;
        assert_eq!(problem(&answer), parameter(name), "{form} {target}");
    }
}

#[tokio::test]
async fn texts_that_are_no_cursor_or_token_of_the_account_and_history_are_refused() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(9)).await;
    let page = bulk(&service, "/api/v1/hydrorisk?limit=3", "csv").await;
    let (next, token) = (link(&page, "next").unwrap(), token(&page));
    let cursor = next.split_once("cursor=").unwrap().1;
    let changed = |text: &str| format!("{}{}", &text[1..], &text[..1]);
    for (name, text) in [
        ("changedSince", "2026-07-01T00:00:00Z"),
        ("changedSince", "2026-07-01"),
        ("changedSince", "1"),
        ("changedSince", ""),
        ("changedSince", cursor),
        ("changedSince", &changed(&token)),
        ("cursor", &token),
        ("cursor", ""),
        ("cursor", &changed(cursor)),
        ("cursor", &cursor[..cursor.len() - 1]),
    ] {
        let answer = bulk(&service, &format!("{ALL}?{name}={text}"), "csv").await;
        assert_eq!(problem(&answer), parameter(name), "{name}={text}");
    }
    let audits = format!("/api/v1/conformite?changedSince={token}");
    let answer = bulk(&service, &audits, "csv").await;
    assert_eq!(problem(&answer), parameter("changedSince"));
    let signature = Signature {
        account: "other",
        ..Signature::default()
    };
    let identity = signature.value("GET", &next);
    let headers = [("X-Water-Format", "csv"), ("X-Water-Identity", &identity)];
    let answer = service.raw("GET", &next, &headers).await;
    assert_eq!(problem(&answer), parameter("cursor"));
}

#[tokio::test]
async fn a_purge_ends_walks_and_tokens_of_its_account() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(9)).await;
    let page = bulk(&service, "/api/v1/hydrorisk?limit=3", "csv").await;
    let (next, token) = (link(&page, "next").unwrap(), token(&page));
    let acme = "acme".parse().unwrap();
    writer.purge(&acme, "nobody", false).await.unwrap();
    let answer = bulk(&service, &next, "csv").await;
    assert_eq!(
        problem(&answer),
        (400, "cursor_expired".into(), "cursor".into())
    );
    let answer = bulk(&service, &since(&token), "ndjson").await;
    let expired = (400, "cursor_expired".into(), "changedSince".into());
    assert_eq!(problem(&answer), expired);
}

#[tokio::test]
async fn a_database_that_is_behind_the_token_is_503_until_it_has_caught_up() {
    let postgres = Postgres::shared().await.unwrap();
    let database = migrated(postgres).await;
    let service = start(&database.url_as("water_reader")).ready().await;
    load(&mut writer(&database).await, History::Analyses, &rows(9)).await;
    let page = bulk(&service, "/api/v1/hydrorisk?limit=3", "csv").await;
    let (next, token) = (link(&page, "next").unwrap(), token(&page));
    let version = |version: i64| {
        let sql = format!("UPDATE water.datasets SET version = {version} WHERE name = 'analyses'");
        postgres.sql(database.name(), &sql).unwrap();
    };
    version(0);
    for target in [&next, &since(&token)] {
        let answer = bulk(&service, target, "csv").await;
        let unavailable = (503, "dependency_unavailable".into(), Value::Null);
        assert_eq!(problem(&answer), unavailable);
        assert!(answer.header("retry-after").is_some());
    }
    version(1);
    for target in [&next, &since(&token)] {
        assert_eq!(bulk(&service, target, "csv").await.status, 200);
    }
}

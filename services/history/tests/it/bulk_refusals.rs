//! Refusals of bulk pages, with cause and remedy.

use serde_json::Value;
use water_database::writer::History;
use water_kit::{Signature, problem, rows};

use crate::changes::since;
use crate::{ANALYSES, bulk, empty, link, token};

fn parameter(name: &str) -> (u16, Value, Value) {
    (400, "invalid_parameter".into(), name.into())
}

#[tokio::test]
async fn parameters_of_another_form_account_history_or_kind_are_refused() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(9)).await;
    let page = bulk(&service, "/api/v1/hydrorisk?limit=3", "csv").await;
    let (next, token) = (link(&page, "next").unwrap(), token(&page));
    let cursor = next.split_once("cursor=").unwrap().1;
    let changed = format!("{}{}", &token[1..], &token[..1]);
    for (target, form, name) in [
        ("/api/v1/hydrorisk?offset=1", "csv", "offset"),
        ("/api/v1/hydrorisk?offset=", "csv", "offset"),
        ("/api/v1/hydrorisk?offset=-0", "ndjson", "offset"),
        ("/api/v1/hydrorisk?offset=0&offset=0", "csv", "offset"),
        ("/api/v1/hydrorisk?offset=1&limit=0", "ndjson", "offset"),
        ("/api/v1/hydrorisk?offset=0&limit=0", "ndjson", "limit"),
        (next.as_str(), "json", "cursor"),
        (since(&token).as_str(), "json", "changedSince"),
        ("/api/v1/hydrorisk?limit=0", "csv", "limit"),
        ("/api/v1/hydrorisk?limit=1&limit=1", "csv", "limit"),
        (
            &format!("{next}&changedSince={token}"),
            "csv",
            "changedSince",
        ),
        (&format!("{next}&cursor="), "csv", "cursor"),
        (&since("2026-07-01T00:00:00Z"), "csv", "changedSince"),
        (&since(""), "csv", "changedSince"),
        (&since(cursor), "csv", "changedSince"),
        (&since(&changed), "csv", "changedSince"),
        (&format!("{ANALYSES}?cursor={token}"), "csv", "cursor"),
        (
            &format!("/api/v1/conformite?changedSince={token}"),
            "csv",
            "changedSince",
        ),
    ] {
        let answer = bulk(&service, target, form).await;
        assert_eq!(problem(&answer), parameter(name), "{form} {target}");
    }
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
async fn an_offset_of_zero_is_as_good_as_none_in_every_form() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(9)).await;
    for form in ["csv", "ndjson"] {
        let first = "/api/v1/hydrorisk?limit=3";
        let second = link(&bulk(&service, first, form).await, "next").unwrap();
        for (target, zero) in [(first, "0"), (first, "00"), (second.as_str(), "0")] {
            let without = bulk(&service, target, form).await;
            let answer = bulk(&service, &format!("{target}&offset={zero}"), form).await;
            assert_eq!(answer.status, 200, "{form} {target} {zero}");
            assert_eq!(answer.body, without.body, "{form} {target} {zero}");
            let next = link(&answer, "next").unwrap();
            assert!(!next.contains("offset"), "{next}");
        }
    }
}

#[tokio::test]
async fn a_purge_ends_walks_and_tokens_of_its_account() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(9)).await;
    let page = bulk(&service, "/api/v1/hydrorisk?limit=3", "csv").await;
    let (next, token) = (link(&page, "next").unwrap(), token(&page));
    let acme = "acme".parse().unwrap();
    loader.purge(&acme, "nobody", false).await.unwrap();
    for (target, name) in [(next, "cursor"), (since(&token), "changedSince")] {
        let answer = bulk(&service, &target, "csv").await;
        let expired = (400, "cursor_expired".into(), name.into());
        assert_eq!(problem(&answer), expired);
        let detail = answer.json().unwrap()["detail"].to_string();
        let remedy = "drop what you hold, then begin a new walk";
        assert!(detail.contains(remedy), "{detail}");
    }
}

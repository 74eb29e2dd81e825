//! Other forms than JSON: who chooses them, what a service hears of it, and how large they may be.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::join_all;
use tokio::sync::Notify;
use tokio::time::Instant;
use water_harness::{Answer, wait_until};

use crate::recorder::{Behaviour, Recorder, ok, with};
use crate::site::{Key, SOON, Site, is, problem};

const HISTORY: &str = "/api/v1/hydrorisk";
const CSV: &str = "text/csv; charset=utf-8; header=present";

async fn get(site: &Site, key: &Key, target: &str, accept: &str) -> Answer {
    let bearer = key.bearer();
    let fields = [("Authorization", bearer.as_str()), ("Accept", accept)];
    site.request("GET", target, &fields).await
}

#[tokio::test]
async fn the_service_hears_which_form_the_client_prefers() {
    let site = Site::start().await;
    let key = site.key().await;
    for (target, accept, named) in [
        (HISTORY, "text/csv", &["csv"][..]),
        (HISTORY, "application/x-ndjson", &["ndjson"]),
        (HISTORY, "application/json;q=0.1, text/csv;q=0.2", &["csv"]),
        (HISTORY, "text/csv, application/json", &[]),
        (HISTORY, "*/*", &[]),
        (HISTORY, "text/html", &[]),
        ("/api/v1/stress?dept=34", "text/csv", &["csv"]),
        ("/api/v1/risque", "application/x-ndjson", &[]),
        ("/api/v1/sources", "text/csv", &[]),
    ] {
        let answer = get(&site, &key, target, accept).await;
        // The service answers JSON, as one of the version before does.
        assert_eq!(answer.status, 200, "{target} {accept}: {answer:?}");
        assert_eq!(
            answer.header("vary"),
            Some("Authorization, Accept, Accept-Encoding")
        );
        let seen = site.service.seen().pop().unwrap();
        assert_eq!(seen.values("x-water-format"), named, "{target} {accept}");
    }
}

#[tokio::test]
async fn a_client_cannot_name_the_form_to_the_service() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    for (accept, named) in [("*/*", &[][..]), ("text/csv", &["csv"])] {
        let fields = [
            ("Authorization", bearer.as_str()),
            ("Accept", accept),
            ("X-Water-Format", "ndjson"),
        ];
        site.request("GET", HISTORY, &fields).await;
        let seen = site.service.seen().pop().unwrap();
        assert_eq!(seen.values("x-water-format"), named);
    }
}

#[tokio::test]
async fn a_page_in_the_form_that_was_asked_for_goes_through_with_its_token() {
    let site = Site::start().await;
    let key = site.key().await;
    let fields = format!(
        "content-type: {CSV}\r\nx-changes-token: opaque\r\nlink: <{HISTORY}?cursor=a>; rel=\"next\"\r\n"
    );
    let page = "id\r\na-1\r\n";
    site.service
        .behave(Behaviour::Answer(with("200 OK", &fields, page)));
    let answer = get(&site, &key, HISTORY, "text/csv").await;
    assert_eq!((answer.status, answer.text().unwrap()), (200, page));
    assert_eq!(answer.header("content-type"), Some(CSV));
    assert_eq!(answer.header("x-changes-token"), Some("opaque"));
    assert!(answer.header("link").unwrap().contains("cursor=a"));

    // Nobody asked for CSV here, so it is no answer.
    let answer = get(&site, &key, HISTORY, "application/x-ndjson").await;
    assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
    let answer = site.get(HISTORY, &key).await;
    assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
}

#[tokio::test]
async fn the_parameters_of_a_walk_reach_the_service() {
    let site = Site::start().await;
    let key = site.key().await;
    let query = "limit=5000&cursor=a.b-c_d&changedSince=e";
    get(
        &site,
        &key,
        &format!("{HISTORY}?{query}&other=1"),
        "text/csv",
    )
    .await;
    let line = site.service.only().line;
    assert_eq!(line, format!("GET {HISTORY}?{query} HTTP/1.1"));
}

#[tokio::test]
async fn a_page_of_900_kib_comes_whole_and_a_larger_answer_than_1_mib_is_refused() {
    let site = Site::start().await;
    let key = site.key().await;
    let page = "0123456789abcde\n".repeat(900 * 64);
    site.service.behave(Behaviour::Answer(ok(CSV, &page)));
    for _ in 0..3 {
        let answer = get(&site, &key, HISTORY, "text/csv").await;
        assert_eq!((answer.status, answer.body.len()), (200, 900 * 1024));
        assert!(answer.body == page.as_bytes());
    }
    let large = "x".repeat(1024 * 1024 + 1);
    site.service.behave(Behaviour::Answer(ok(CSV, &large)));
    let answer = get(&site, &key, HISTORY, "text/csv").await;
    assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
}

#[tokio::test]
async fn as_many_pages_as_128_mib_hold_are_under_way_and_others_wait_a_second() {
    let history = Recorder::start().await;
    let address = history.address.to_string();
    let site = Site::start_with(&[("WATER_HISTORY_ADDRESS", &address)]).await;
    let key = site.publish(Key::new().on_plan("Unlimited")).await;
    let told = Arc::new(Notify::new());
    history.behave(Behaviour::Wait(Arc::clone(&told)));
    let pages = join_all((0..128).map(|_| get(&site, &key, HISTORY, "text/csv")));
    let others = async {
        let asked = async || -> Result<()> {
            ensure!(history.seen().len() == 128, "{}", history.seen().len());
            Ok(())
        };
        wait_until("128 pages under way", SOON, asked)
            .await
            .unwrap();
        let begun = Instant::now();
        let refused = get(&site, &key, HISTORY, "text/csv").await;
        assert_eq!(problem(&refused), is(503, "upstream_unavailable"));
        assert_eq!(refused.header("retry-after"), Some("2"));
        assert!(begun.elapsed() >= Duration::from_secs(1));
        assert_eq!(history.seen().len(), 128, "it was not asked");
        assert_eq!(site.get("/api/v1/stress", &key).await.status, 200);
        told.notify_waiters();
    };
    let (pages, ()) = tokio::join!(pages, others);
    assert!(pages.iter().all(|page| page.status == 200), "{pages:?}");
    history.behave(Behaviour::Answer(ok(CSV, "id\r\n")));
    let page = get(&site, &key, HISTORY, "text/csv").await;
    assert_eq!(page.status, 200, "there is room again");
}

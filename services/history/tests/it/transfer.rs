//! How pages travel: methods, paths, entity tags, codings, headers.

use std::io::Read;

use flate2::read::GzDecoder;
use water_database::writer::History;
use water_harness::Answer;

use crate::fixture::{Running, empty, load, row, rows};

const LONG: &str = "/api/v1/hydrorisk?limit=50";
const SHORT: &str = "/api/v1/hydrorisk?limit=1";

/// The service with 120 analyses.
async fn with_rows() -> Running {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(120)).await;
    service
}

async fn coded(service: &Running, target: &str, accept: &str) -> Answer {
    service
        .request("GET", target, &[("Accept-Encoding", accept)])
        .await
}

#[tokio::test]
async fn a_long_page_is_coded_when_asked_and_reads_the_same() {
    let service = with_rows().await;
    let plain = service.get(LONG).await;
    assert_eq!(
        (plain.header("content-encoding"), plain.body.len() > 1024),
        (None, true)
    );

    let gzip = coded(&service, LONG, "gzip").await;
    let mut read = Vec::new();
    GzDecoder::new(gzip.body.as_ref())
        .read_to_end(&mut read)
        .unwrap();
    assert_eq!(
        (gzip.header("content-encoding"), read.as_slice()),
        (Some("gzip"), plain.body.as_ref())
    );

    let br = coded(&service, LONG, "gzip;q=0.5, br").await;
    let mut read = Vec::new();
    brotli::BrotliDecompress(&mut br.body.as_ref(), &mut read).unwrap();
    assert_eq!(
        (br.header("content-encoding"), read.as_slice()),
        (Some("br"), plain.body.as_ref())
    );
}

#[tokio::test]
async fn a_known_page_is_304_until_the_history_changes() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(30)).await;
    for accept in ["identity", "gzip", "br"] {
        let full = coded(&service, LONG, accept).await;
        let tag = full.header("etag").unwrap().to_owned();
        let headers = [("Accept-Encoding", accept), ("If-None-Match", tag.as_str())];
        let known = service.request("GET", LONG, &headers).await;
        assert_eq!(
            (known.status, known.body.len(), known.header("etag")),
            (304, 0, Some(tag.as_str()))
        );
        assert_eq!(known.header("link"), full.header("link"));

        load(
            &mut writer,
            History::Analyses,
            &[row(format!("after {accept}"), 99_000)],
        )
        .await;
        assert_eq!(service.request("GET", LONG, &headers).await.status, 200);
    }
}

#[tokio::test]
async fn head_answers_as_get_without_a_body() {
    let service = with_rows().await;
    let same_id = ("X-Request-Id", "same-id-1");
    for target in [
        LONG,
        SHORT,
        "/api/v1/hydrorisk?limit=0",
        "/api/v1/none",
        "/api/v1/conformite",
    ] {
        for accept in ["identity", "br"] {
            let headers = [("Accept-Encoding", accept), same_id];
            let get = service.request("GET", target, &headers).await;
            let head = service.request("HEAD", target, &headers).await;
            let known = |answer: &Answer| {
                let mut headers = answer.headers.clone();
                headers.retain(|(name, _)| name != "date");
                (answer.status, headers)
            };
            assert_eq!(known(&head), known(&get));
            assert_eq!(
                head.header("content-length"),
                Some(get.body.len().to_string().as_str())
            );
        }
    }
}

#[tokio::test]
async fn a_page_is_private_and_checked_each_time() {
    let service = with_rows().await;
    let answer = service.get(LONG).await;
    assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
    assert_eq!(
        answer.header("vary"),
        Some("Authorization, Accept, Accept-Encoding")
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn only_the_exact_path_is_found() {
    let service = with_rows().await;
    for path in [
        "/api/v1/hydrorisk/",
        "//api/v1/hydrorisk",
        "/api/v1/%68ydrorisk",
        "/api/v1/Conformite",
        "/api/v1/stress",
    ] {
        let answer = service.get(path).await;
        assert_eq!(
            (answer.status, answer.json().unwrap()["code"].clone()),
            (404, "not_found".into()),
            "{path}"
        );
    }
}

//! How answers travel: methods, paths, entity tags, codings, headers.

use std::io::Read;

use flate2::read::GzDecoder;
use water_domain::departement;
use water_harness::{Answer, Postgres};

use crate::fixture::{Running, day, load, migrated, ready, stress, writer};

/// The service with a stress record for every département: a list far above 1 KiB.
async fn with_all() -> Running {
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let all: Vec<_> = departement::all()
        .iter()
        .map(|departement| stress(departement.code, 1.5))
        .collect();
    writer(&database)
        .await
        .replace_stress(&all, day(1), &load())
        .await
        .unwrap();
    ready(&database.url_as("water_reader")).await
}

async fn coded(service: &Running, target: &str, accept: &str) -> Answer {
    service
        .request("GET", target, &[("Accept-Encoding", accept)])
        .await
}

const LIST: &str = "/api/v1/stress";
const ONE: &str = "/api/v1/stress?dept=34";

#[tokio::test]
async fn a_long_body_is_coded_when_asked_and_reads_the_same() {
    let service = with_all().await;
    let plain = service.get(LIST).await;
    assert_eq!(
        (
            plain.header("content-encoding"),
            plain.json().unwrap()["count"].clone()
        ),
        (None, 101.into())
    );

    let gzip = coded(&service, LIST, "gzip").await;
    let mut read = Vec::new();
    GzDecoder::new(gzip.body.as_ref())
        .read_to_end(&mut read)
        .unwrap();
    assert_eq!(
        (gzip.header("content-encoding"), read.as_slice()),
        (Some("gzip"), plain.body.as_ref())
    );

    let br = coded(&service, LIST, "br, gzip").await;
    let mut read = Vec::new();
    brotli::BrotliDecompress(&mut br.body.as_ref(), &mut read).unwrap();
    assert_eq!(
        (br.header("content-encoding"), read.as_slice()),
        (Some("br"), plain.body.as_ref())
    );
    assert!(br.body.len() < plain.body.len() / 4);
}

#[tokio::test]
async fn csv_is_coded_as_json_is() {
    let service = with_all().await;
    let fields = [("X-Water-Format", "csv"), ("Accept-Encoding", "gzip")];
    let plain = service.request("GET", LIST, &fields[..1]).await;
    let gzip = service.request("GET", LIST, &fields).await;
    let mut read = Vec::new();
    GzDecoder::new(gzip.body.as_ref())
        .read_to_end(&mut read)
        .unwrap();
    assert_eq!(
        (gzip.header("content-encoding"), read.as_slice()),
        (Some("gzip"), plain.body.as_ref())
    );
    assert!(gzip.body.len() < plain.body.len() / 2);
}

#[tokio::test]
async fn a_known_tag_is_answered_304_without_a_body() {
    let service = with_all().await;
    for (target, accept) in [
        (LIST, "identity"),
        (LIST, "gzip"),
        (LIST, "br"),
        (ONE, "identity"),
        (ONE, "br"),
    ] {
        let full = coded(&service, target, accept).await;
        let tag = full.header("etag").unwrap();
        for condition in [
            tag.to_owned(),
            format!("W/{tag}"),
            format!("\"other\", {tag}"),
            "*".to_owned(),
        ] {
            let headers = [
                ("Accept-Encoding", accept),
                ("If-None-Match", condition.as_str()),
            ];
            let answer = service.request("GET", target, &headers).await;
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{condition}");
            for kept in ["etag", "cache-control", "vary"] {
                assert_eq!(answer.header(kept), full.header(kept));
            }
        }
    }
}

#[tokio::test]
async fn head_answers_as_get_without_a_body() {
    let service = with_all().await;
    for target in [
        LIST,
        ONE,
        "/api/v1/stress?dept=20",
        "/api/v1/stress?dept=x",
        "/api/v1/none",
    ] {
        for accept in ["identity", "br"] {
            let get = service
                .request(
                    "GET",
                    target,
                    &[("Accept-Encoding", accept), ("X-Request-Id", "same-id-1")],
                )
                .await;
            let head = service
                .request(
                    "HEAD",
                    target,
                    &[("Accept-Encoding", accept), ("X-Request-Id", "same-id-1")],
                )
                .await;
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
async fn every_success_says_how_it_may_be_kept() {
    let service = with_all().await;
    for target in [LIST, ONE] {
        let answer = service.get(target).await;
        assert_eq!(
            answer.header("cache-control"),
            Some("private, max-age=60, must-revalidate")
        );
        assert_eq!(
            answer.header("vary"),
            Some("Authorization, Accept, Accept-Encoding")
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
}

#[tokio::test]
async fn only_the_exact_path_is_found() {
    let service = with_all().await;
    let near = [
        "/api/v1/stress/",
        "//api/v1/stress",
        "/api/v1//stress",
        "/api/v1/./stress",
        "/api/v1/%73tress",
        "/api/v1/Stress",
        "/API/v1/stress",
        "/api/v1/stress;x=1",
        "/api/v1/stress%2f",
        "/api/v1",
        "/",
        "/api/v1/hydrorisk",
    ];
    for path in near {
        let answer = service.get(path).await;
        assert_eq!(
            (answer.status, answer.json().unwrap()["code"].clone()),
            (404, "not_found".into()),
            "{path}"
        );
    }
}

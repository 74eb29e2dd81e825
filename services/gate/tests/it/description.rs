//! `openapi.json` as a client gets it.

use crate::site::Site;

#[tokio::test]
async fn the_description_names_every_path_in_full() {
    let site = Site::start().await;
    let answer = site.request("GET", "/api/v1/openapi.json", &[]).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let document = answer.json().unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let paths: Vec<_> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let expected = [
        "/api/v1/stress",
        "/api/v1/risque",
        "/api/v1/hydrorisk",
        "/api/v1/conformite",
        "/api/v1/sources",
        "/api/v1/openapi.json",
    ];
    assert!(
        expected
            .iter()
            .all(|path| paths.iter().any(|known| known == path)),
        "{paths:?}"
    );
    assert_eq!(paths.len(), expected.len());
}

#[tokio::test]
async fn its_head_has_the_length_and_no_body() {
    let site = Site::start().await;
    let get = site.request("GET", "/api/v1/openapi.json", &[]).await;
    let head = site.request("HEAD", "/api/v1/openapi.json", &[]).await;
    assert_eq!(head.header("content-length"), get.header("content-length"));
    assert_eq!(
        head.header("content-length"),
        Some(get.body.len().to_string().as_str())
    );
}

#[tokio::test]
async fn it_is_coded_and_cached_as_other_answers_are() {
    let site = Site::start().await;
    let target = "/api/v1/openapi.json";
    let coded = site
        .request("GET", target, &[("Accept-Encoding", "br")])
        .await;
    assert_eq!(coded.header("content-encoding"), Some("br"));
    let tag = coded.header("etag").unwrap();
    let fields = [("Accept-Encoding", "br"), ("If-None-Match", tag)];
    assert_eq!(site.request("GET", target, &fields).await.status, 304);
}

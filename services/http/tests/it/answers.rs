//! Answers of a service, with every header.

use anyhow::Result;
use http::Method;
use serde_json::json;
use water_harness::Answer;

use crate::sample::{Sample, sign};

const PAGE: &str = "/api/v1/page";

/// Returns the headers of an answer without its time, in the order of their names.
fn headers(answer: &Answer) -> Vec<String> {
    let lines = answer
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"));
    let mut lines: Vec<_> = lines.filter(|line| !line.starts_with("date: ")).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn a_get_has_the_headers_of_the_contract_and_no_others() -> Result<()> {
    let mut sample = Sample::start().await?;
    let answer = sample
        .ask(
            Method::GET,
            "/api/v1/page?limit=5",
            &[("X-Request-Id", "request-1")],
        )
        .await?;
    assert_eq!(
        answer.json()?,
        json!({"account": "acme", "limit": 5, "offset": 0})
    );
    let expected = [
        "accept-ranges: none",
        "cache-control: private, no-cache",
        "content-length: 1063",
        "content-type: application/json",
        "vary: Authorization, Accept, Accept-Encoding",
        "x-content-type-options: nosniff",
        "x-request-id: request-1",
    ];
    let (tags, others): (Vec<_>, Vec<_>) = headers(&answer)
        .into_iter()
        .partition(|line| line.starts_with("etag: "));
    assert_eq!(
        (tags.len(), others),
        (1, expected.map(str::to_owned).to_vec())
    );
    Ok(())
}

#[tokio::test]
async fn a_head_has_the_headers_of_the_get_and_no_body() -> Result<()> {
    let mut sample = Sample::start().await?;
    for coding in ["identity", "gzip", "br"] {
        let asked = [("Accept-Encoding", coding), ("X-Request-Id", "request-1")];
        let get = sample.ask(Method::GET, PAGE, &asked).await?;
        let head = sample.ask(Method::HEAD, PAGE, &asked).await?;
        assert_eq!((head.status, headers(&head)), (get.status, headers(&get)));
        assert_eq!(
            get.header("content-length"),
            Some(get.body.len().to_string().as_str())
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_known_tag_is_304_for_get_and_head() -> Result<()> {
    let mut sample = Sample::start().await?;
    let tag = sample
        .ask(Method::GET, PAGE, &[])
        .await?
        .header("etag")
        .unwrap()
        .to_owned();
    for method in [Method::GET, Method::HEAD] {
        let answer = sample.ask(method, PAGE, &[("If-None-Match", &tag)]).await?;
        assert_eq!(
            (answer.status, answer.header("etag")),
            (304, Some(tag.as_str()))
        );
    }
    Ok(())
}

#[tokio::test]
async fn only_a_problem_is_french_and_varies_by_language() -> Result<()> {
    let mut sample = Sample::start().await?;
    let french = [("Accept-Language", "fr-FR,fr;q=0.9,en;q=0.8")];
    for (target, status, title) in [
        (
            "/api/v1/page?limit=0",
            400,
            "Un paramètre n’est pas valable",
        ),
        ("/no/such/path", 404, "Cette ressource n’existe pas"),
        ("/api/v1/store", 503, "Une dépendance est indisponible"),
    ] {
        let answer = sample.ask(Method::GET, target, &french).await?;
        assert_eq!(
            (answer.status, &answer.json()?["title"]),
            (status, &json!(title))
        );
        assert_eq!(answer.header("content-language"), Some("fr"));
        let vary = answer.header("vary").unwrap();
        assert!(vary.ends_with("Accept-Language"), "{vary}");
    }
    let page = sample.ask(Method::GET, PAGE, &french).await?;
    assert_eq!((page.status, page.header("content-language")), (200, None));
    let vary = page.header("vary");
    assert_eq!(vary, Some("Authorization, Accept, Accept-Encoding"));
    Ok(())
}

#[tokio::test]
async fn nobody_is_served_without_a_valid_identity() -> Result<()> {
    let mut sample = Sample::start().await?;
    let other = sign(&Method::GET, "/api/v1/page?offset=1");
    let (other, forged) = (other.to_str()?, other.to_str()?.replace("acme", "umbrella"));
    for headers in [
        &[][..],
        &[("X-Water-Identity", other)],
        &[("X-Water-Identity", &forged)],
    ] {
        for target in [PAGE, "/no/such/path"] {
            let answer = sample.ask_unsigned(target, headers).await?;
            assert_eq!(
                (answer.status, &answer.json()?["code"]),
                (401, &json!("invalid_identity"))
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_no_route_takes_is_404_or_405() -> Result<()> {
    let mut sample = Sample::start().await?;
    for path in [
        "/",
        "/api/v1/page/",
        "/api/v1//page",
        "/api/v1/PAGE",
        "/api/v1/%70age",
    ] {
        let answer = sample.ask(Method::GET, path, &[]).await?;
        assert_eq!(
            (answer.status, &answer.json()?["code"]),
            (404, &json!("not_found")),
            "{path}"
        );
    }
    for path in [PAGE, "/no/such/path"] {
        let answer = sample.ask(Method::DELETE, path, &[]).await?;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some("GET, HEAD")),
            "{path}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_bad_query_or_parameter_is_400_and_its_value_is_not_repeated() -> Result<()> {
    let mut sample = Sample::start().await?;
    let answer = sample.ask(Method::GET, "/api/v1/page?x=%ff", &[]).await?;
    assert_eq!(
        (answer.status, &answer.json()?["code"]),
        (400, &json!("invalid_query"))
    );
    let answer = sample
        .ask(Method::GET, "/api/v1/page?limit=%2Bsecret", &[])
        .await?;
    let body = answer.json()?;
    assert_eq!(
        (&body["code"], &body["parameter"]),
        (&json!("invalid_parameter"), &json!("limit"))
    );
    assert!(!answer.text()?.contains("secret"));
    Ok(())
}

#[tokio::test]
async fn a_bug_is_500_and_the_connection_goes_on() -> Result<()> {
    let mut sample = Sample::start().await?;
    let answer = sample.ask(Method::GET, "/api/v1/bug", &[]).await?;
    assert_eq!(
        (answer.status, &answer.json()?["code"]),
        (500, &json!("internal"))
    );
    assert!(!answer.text()?.contains("planted"));
    assert_eq!(sample.ask(Method::GET, PAGE, &[]).await?.status, 200);
    Ok(())
}

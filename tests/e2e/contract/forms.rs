//! Other forms than JSON: who gets them, and that they say the same.

use anyhow::{Context, Result};
use water_e2e::Cluster;
use water_harness::Answer;

use super::{assert_problem, get, history};

/// The answer to the account with long histories.
async fn accepting(cluster: &Cluster, target: &str, accept: &str) -> Result<Answer> {
    let key = &cluster.environment.api_key;
    let accept = [("Accept", accept)];
    cluster.water.get_with(target, key, &accept).await
}

fn kind(answer: &Answer) -> &str {
    let kind = answer.header("content-type").unwrap_or_default();
    kind.split(';').next().unwrap_or_default()
}

#[tokio::test]
async fn the_form_that_is_preferred_is_answered_and_json_otherwise() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (json, csv, ndjson) = ("application/json", "text/csv", "application/x-ndjson");
    for (target, accept, expected) in [
        ("/api/v1/stress", csv, csv),
        ("/api/v1/risque?dept=34", csv, csv),
        ("/api/v1/hydrorisk", csv, csv),
        ("/api/v1/conformite", ndjson, ndjson),
        ("/api/v1/conformite", "text/csv;q=0.5, */*;q=0.1", csv),
        ("/api/v1/stress", ndjson, json),
        ("/api/v1/stress", "text/csv, application/json", json),
        ("/api/v1/hydrorisk", "image/png", json),
        ("/api/v1/sources", csv, json),
    ] {
        let answer = accepting(&cluster, target, accept).await?;
        assert_eq!((answer.status, kind(&answer)), (200, expected), "{target}");
    }
    Ok(())
}

#[tokio::test]
async fn csv_has_a_line_for_each_record_with_the_cells_of_json() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let json = get(&cluster, "/api/v1/stress").await?;
    let csv = accepting(&cluster, "/api/v1/stress", "text/csv").await?;
    let mut lines = csv.text()?.split("\r\n");
    assert_eq!(lines.next(), Some("dept,name,stressIndex,level"));
    for record in json["data"].as_array().context("no data")? {
        let line = format!(
            "{},{},{},{}",
            record["dept"].as_str().context("dept")?,
            record["name"].as_str().context("name")?,
            record["stressIndex"],
            record["level"].as_str().context("level")?
        );
        assert_eq!(lines.next(), Some(line.as_str()));
    }
    assert_eq!((lines.next(), lines.next()), (Some(""), None));
    Ok(())
}

#[tokio::test]
async fn a_walk_sees_each_row_once_and_leaves_a_token() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let total = history(&cluster, "/api/v1/hydrorisk").await?.json()?["total"].clone();
    let (mut target, mut ids) = ("/api/v1/hydrorisk?limit=500".to_owned(), Vec::new());
    let mut tokens = Vec::new();
    loop {
        let page = accepting(&cluster, &target, "application/x-ndjson").await?;
        assert_eq!(page.status, 200, "{page:?}");
        tokens.extend(page.header("x-changes-token").map(str::to_owned));
        for line in page.text()?.lines() {
            let row: serde_json::Value = serde_json::from_str(line)?;
            ids.push(row["id"].as_str().context("no id")?.to_owned());
        }
        let links = page.header("link").context("no link")?;
        let next = links
            .split(", ")
            .find(|link| link.ends_with("rel=\"next\""));
        let Some(next) = next else { break };
        target = next[1..next.find('>').context("no target")?].to_owned();
    }
    assert_eq!(ids.len() as u64, total);
    assert!(ids.is_sorted_by(|before, after| before < after));
    let [token] = tokens.as_slice() else {
        panic!("a walk has one token, on its first page: {tokens:?}")
    };
    let since = format!("/api/v1/hydrorisk?changedSince={token}");
    let changes = accepting(&cluster, &since, "application/x-ndjson").await?;
    assert_eq!((changes.status, changes.text()?), (200, ""));
    Ok(())
}

#[tokio::test]
async fn parameters_of_another_form_are_refused() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for (query, accept, parameter) in [
        ("offset=1", "text/csv", "offset"),
        ("cursor=x", "text/csv", "cursor"),
        ("cursor=x", "*/*", "cursor"),
        ("changedSince=x", "*/*", "changedSince"),
        ("changedSince=2026-07-01", "text/csv", "changedSince"),
        ("limit=0", "text/csv", "limit"),
    ] {
        let target = format!("/api/v1/hydrorisk?{query}");
        let answer = accepting(&cluster, &target, accept).await?;
        assert_problem(&answer, 400, "invalid_parameter")?;
        assert_eq!(answer.json()?["parameter"], parameter, "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn each_form_has_a_tag_of_its_own_and_names_accept_in_vary() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for target in ["/api/v1/risque", "/api/v1/hydrorisk"] {
        let mut tags = Vec::new();
        for accept in ["application/json", "text/csv"] {
            let answer = accepting(&cluster, target, accept).await?;
            let vary = answer.header("vary").context("no Vary")?;
            assert!(vary.contains("Accept,"), "{vary}");
            tags.push(answer.header("etag").context("no ETag")?.to_owned());
        }
        assert_ne!(tags[0], tags[1], "{target}");
    }
    Ok(())
}

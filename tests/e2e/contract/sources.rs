//! Where the data comes from, and under which licence.

use anyhow::{Context, Result};
use serde_json::Value;
use water_e2e::{Cluster, ordered_fields};

use super::{ENDPOINTS, get, history};

const PATH: &str = "/api/v1/sources";

fn source<'a>(answer: &'a Value, dataset: &str) -> Result<&'a Value> {
    let mut sources = answer["data"].as_array().into_iter().flatten();
    let found = sources.find(|source| source["dataset"] == dataset);
    found.with_context(|| format!("no {dataset} in {answer}"))
}

#[tokio::test]
async fn every_dataset_that_is_served_has_a_source() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = get(&cluster, PATH).await?;
    for dataset in ["stress", "risk", "analyses", "audits"] {
        let source = source(&answer, dataset)?;
        assert!(source["loadedAt"].is_string(), "{source}");
        assert!(source["synthetic"].is_boolean(), "{source}");
        assert!(source["derivedLevels"].is_array(), "{source}");
    }
    for (dataset, list) in [("stress", "/api/v1/stress"), ("risk", "/api/v1/risque")] {
        let served = get(&cluster, list).await?["count"].clone();
        assert_eq!(source(&answer, dataset)?["records"], served);
    }
    Ok(())
}

#[tokio::test]
async fn a_source_has_its_fields_in_this_order() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster.water.get(PATH, &cluster.key().await?).await?;
    let text = answer.text()?;
    let first = text.split_once('[').context("no list")?.1;
    let end = first.find('}').context("no source")?;
    let fields = [
        "dataset",
        "source",
        "sourceUrl",
        "licence",
        "asOf",
        "loadedAt",
        "records",
        "synthetic",
        "derivedLevels",
    ];
    assert_eq!(ordered_fields(&first[..=end])?, fields);
    Ok(())
}

#[tokio::test]
async fn the_count_of_a_history_is_the_accounts_own() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let theirs = history(&cluster, PATH).await?.json()?;
    let total = history(&cluster, "/api/v1/hydrorisk?limit=1")
        .await?
        .json()?;
    assert_eq!(source(&theirs, "analyses")?["records"], total["total"]);
    let others = get(&cluster, PATH).await?;
    assert_eq!(source(&others, "analyses")?["records"], 0);
    Ok(())
}

#[tokio::test]
async fn every_answer_with_records_links_to_the_sources() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    for target in ENDPOINTS {
        let answer = cluster.water.get(target, &key).await?;
        let link = "</api/v1/sources>; rel=\"describedby\"";
        let links = answer.header("link").unwrap_or_default();
        assert_eq!(links.contains(link), target != PATH, "{target}: {links}");
    }
    Ok(())
}

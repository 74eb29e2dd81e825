//! What the HTTP contract decides where the specification is silent: each
//! decision is one test.

mod caching;
mod credentials;
mod forms;
mod limits;
mod parameters;
mod problems;
mod records;
mod sources;

use anyhow::Result;
use serde_json::Value;
use water_e2e::Cluster;
use water_harness::Answer;

const ENDPOINTS: [&str; 5] = [
    "/api/v1/stress",
    "/api/v1/risque",
    "/api/v1/hydrorisk",
    "/api/v1/conformite",
    "/api/v1/sources",
];
const HISTORIES: [&str; 2] = ["/api/v1/hydrorisk", "/api/v1/conformite"];

/// A refusal, by status and code; the rest of a problem is looked at where it matters.
fn assert_problem(answer: &Answer, status: u16, code: &str) -> Result<()> {
    assert_eq!(answer.status, status, "{answer:?}");
    let problem = answer.json()?;
    assert_eq!(problem["code"], code, "{problem}");
    Ok(())
}

/// The JSON of the answer to an account that no other test uses.
async fn get(cluster: &Cluster, target: &str) -> Result<Value> {
    let answer = cluster.water.get(target, &cluster.key().await?).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The answer to the account with long histories.
async fn history(cluster: &Cluster, target: &str) -> Result<Answer> {
    cluster
        .water
        .get(target, &cluster.environment.api_key)
        .await
}

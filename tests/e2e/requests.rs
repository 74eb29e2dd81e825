//! Requests that more than one test sends, and the answers that they expect.

use anyhow::Result;
use serde_json::Value;
use water_e2e::Cluster;
use water_harness::Answer;

/// Resources that need a key.
pub const ENDPOINTS: [&str; 5] = [
    "/api/v1/stress",
    "/api/v1/risque",
    "/api/v1/hydrorisk",
    "/api/v1/conformite",
    "/api/v1/sources",
];
/// Resources with a key that page through the account's own records.
pub const HISTORIES: [&str; 2] = ["/api/v1/hydrorisk", "/api/v1/conformite"];

/// Returns the JSON of an answer that has to be 200.
pub fn json_of(answer: &Answer) -> Result<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Returns JSON as an account without a history gets it.
pub async fn get(cluster: &Cluster, target: &str) -> Result<Value> {
    json_of(&cluster.water.get(target, &cluster.key().await?).await?)
}

/// Returns JSON as the account with more than 1 000 rows in each history gets it.
pub async fn get_history(cluster: &Cluster, target: &str) -> Result<Value> {
    let key = &cluster.environment.api_key;
    json_of(&cluster.water.get(target, key).await?)
}

/// Checks status, code and parameter of a problem, and that its other fields are those of every problem.
pub fn assert_problem(answer: &Answer, status: u16, code: &str, parameter: &str) -> Result<()> {
    assert_eq!(answer.status, status, "{answer:?}");
    let (problem, kind) = (answer.json()?, answer.header("content-type"));
    assert_eq!(kind, Some("application/problem+json"), "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(problem["status"], status, "{problem}");
    assert_eq!(problem["code"], code, "{problem}");
    let named = problem["parameter"].as_str().unwrap_or_default();
    assert_eq!(named, parameter, "{problem}");
    assert_eq!(problem["requestId"].as_str(), answer.header("x-request-id"));
    Ok(())
}

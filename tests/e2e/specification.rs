//! Each sentence of the specification is one test, named by its section.

mod access;
mod endpoints;
mod resources;

use anyhow::{Context, Result};
use serde_json::Value;
use water_e2e::Cluster;
use water_harness::Answer;

const ENDPOINTS: [&str; 4] = [
    "/api/v1/stress",
    "/api/v1/risque",
    "/api/v1/hydrorisk",
    "/api/v1/conformite",
];
const HISTORIES: [&str; 2] = ["/api/v1/hydrorisk", "/api/v1/conformite"];

/// The JSON of an answer that has to be 200.
fn json_of(answer: &Answer) -> Result<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn get(cluster: &Cluster, target: &str) -> Result<Value> {
    json_of(&cluster.water.get(target, &cluster.key().await?).await?)
}

/// From the account that has more than 1 000 rows in each history.
async fn get_history(cluster: &Cluster, target: &str) -> Result<Value> {
    json_of(
        &cluster
            .water
            .get(target, &cluster.environment.api_key)
            .await?,
    )
}

fn rows(envelope: &Value) -> Result<&Vec<Value>> {
    envelope["data"].as_array().context("data is a list")
}

fn is_timestamp(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    // `2026-07-02T00:00:00.000Z`
    text.len() == 24
        && chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.3fZ").is_ok()
}

fn is_between(value: &Value, least: f64, most: f64) -> bool {
    value
        .as_f64()
        .is_some_and(|number| (least..=most).contains(&number))
}

/// Answered as the specification's table of errors says.
fn assert_refused(cluster: &Cluster, answer: Answer, status: u16) -> Result<()> {
    assert_eq!(
        answer.status,
        status,
        "{answer:?}\n{}",
        cluster.kubectl.picture()
    );
    assert_eq!(answer.json()?["status"], status);
    Ok(())
}

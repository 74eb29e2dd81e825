//! A wrong file is refused as a whole, with the place of each problem.

use anyhow::{Context, Result};
use serde_json::Value;
use water_e2e::{Cluster, refusal};

#[tokio::test]
async fn a_wrong_file_is_refused_with_line_column_value_and_remedy() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.key().await?;
    let before = stress_indices(&cluster, &key).await?;
    let file = "dept,stressIndex\n34,5.7\n20,1\n";
    let arguments = ["load", "stress", "/data/wrong.csv", "--as-of", "2026-07-01"];
    let printed = refusal(cluster.ingest(&arguments, "wrong.csv", file).await)?;
    let message: Vec<_> = printed
        .lines()
        .filter(|line| !line.starts_with('{'))
        .collect();
    let expected = [
        "wrong.csv:2: stressIndex: 5.7 is outside 0..5",
        "wrong.csv:3: dept: 20: there is no such département: Corsica has been 2A (Corse-du-Sud) and 2B \
         (Haute-Corse) since 1976",
        "wrong.csv: nothing was loaded, for the problems above",
    ];
    assert_eq!(message, expected);
    assert_eq!(stress_indices(&cluster, &key).await?, before);
    Ok(())
}

/// What the file would have replaced. Not the levels: a test that loads those may have ended within
/// the second in which the pods follow it.
async fn stress_indices(cluster: &Cluster, key: &str) -> Result<Vec<(Value, Value)>> {
    let list = cluster.water.get("/api/v1/stress", key).await?.json()?;
    let records = list["data"].as_array().context("no data")?;
    let index = |record: &Value| (record["dept"].clone(), record["stressIndex"].clone());
    Ok(records.iter().map(index).collect())
}

//! Data: loaded by a Job, read back through the ingress; refused when it is wrong.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use water_e2e::{Cluster, refusal};

/// The service asks for changes each second.
const SOON: Duration = Duration::from_secs(60);

/// Real drought alert levels, as the national register gives them: see `data/SOURCE.md`.
const DAYS: [(&str, &str); 2] = [
    ("2026-06-29", include_str!("data/vigieau-2026-06-29.json")),
    (
        "2026-07-02",
        include_str!("../../services/ingest/data/vigieau-2026-07-02.json"),
    ),
];

/// Compares all levels with those of a day.
fn compare(stress: &Value, day: &Value) -> Result<()> {
    let records = stress["data"].as_array().context("no records")?;
    let levels = day.as_array().context("no levels")?;
    assert_eq!(levels.len(), 96);
    for entry in levels {
        let (code, level) = (&entry["code"], entry["niveauGraviteMax"].as_str());
        let record = records.iter().find(|record| record["dept"] == *code);
        let is = &record.with_context(|| format!("no record of {code}"))?["level"];
        let level = level.unwrap_or("normal");
        ensure!(is == level, "{code} is {is}, not {level}");
    }
    Ok(())
}

#[tokio::test]
async fn real_alert_levels_are_read_back_through_the_ingress_and_a_wrong_file_changes_nothing()
-> Result<()> {
    let cluster = Cluster::alone().await?;
    let key = cluster.key().await?;
    let stress = async || cluster.water.get("/api/v1/stress", &key).await?.json();
    for (day, text) in DAYS {
        let levels: Value = serde_json::from_str(text)?;
        // The first day is older than what is stored.
        let load = [
            "load",
            "vigieau",
            "/data/levels.json",
            "--as-of",
            day,
            "--force",
        ];
        cluster.ingest(&load, "levels.json", text).await?;
        let served = async || compare(&stress().await?, &levels);
        cluster.wait_until(day, SOON, served).await?;
    }
    // The newest day that changed anything, and not the time of loading. Each pod of the service reads it for itself.
    let newest = async || {
        let stress = stress().await?;
        let at = &stress["updatedAt"];
        ensure!(at == "2026-07-02T00:00:00.000Z", "{at}");
        Ok(stress)
    };
    let before = cluster.wait_until("the newest day", SOON, newest).await?;

    let file = "dept,stressIndex\n34,5.7\n20,1\n";
    let load = ["load", "stress", "/data/wrong.csv", "--as-of", "2026-07-03"];
    let printed = refusal(cluster.ingest(&load, "wrong.csv", file).await)?;
    let message = printed.lines().filter(|line| !line.starts_with('{'));
    let expected = [
        "wrong.csv:2: stressIndex: 5.7 is outside 0..5",
        "wrong.csv:3: dept: 20: there is no such département: Corsica has been 2A (Corse-du-Sud) and 2B \
         (Haute-Corse) since 1976",
        "wrong.csv: nothing was loaded, for the problems above",
    ];
    assert_eq!(message.collect::<Vec<_>>(), expected);
    assert_eq!(stress().await?, before);
    Ok(())
}

//! Real drought alert levels of three days, loaded as the national register
//! gives them.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use water_e2e::Cluster;

const FILE: &str = "vigieau_departements_2026-06-29_2026-07-02.csv";
/// The service asks for changes each second.
const SOON: Duration = Duration::from_secs(60);

/// For each day, the worst level by the code of the département; empty: no restriction.
type Days = BTreeMap<String, BTreeMap<String, (String, String)>>;

/// The levels are test input of the project and not part of it: `WATER_TEST_VIGIEAU` names their folder.
fn file() -> PathBuf {
    let shared = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    env::var_os("WATER_TEST_VIGIEAU")
        .map_or_else(shared, PathBuf::from)
        .join(FILE)
}

fn read(file: &Path) -> Result<Days> {
    let mut days = Days::new();
    let mut reader =
        csv::Reader::from_path(file).with_context(|| format!("open {}", file.display()))?;
    for row in reader.deserialize::<BTreeMap<String, String>>() {
        let mut row = row?;
        let mut take = |column: &str| {
            row.remove(column)
                .with_context(|| format!("no column {column}"))
        };
        let (day, code) = (take("date")?, take("code")?);
        days.entry(day)
            .or_default()
            .insert(code, (take("nom")?, take("niveauGraviteMax")?));
    }
    Ok(days)
}

/// `GET /api/departements` of the register, as far as it is read.
fn as_the_register_gives_it(levels: &BTreeMap<String, (String, String)>) -> Value {
    let entries = levels.iter().map(|(code, (name, level))| {
        let level = if level.is_empty() {
            Value::Null
        } else {
            level.as_str().into()
        };
        json!({ "code": code, "nom": name, "niveauGraviteMax": level })
    });
    entries.collect()
}

#[tokio::test]
async fn real_alert_levels_of_three_days_are_read_back_through_the_ingress() -> Result<()> {
    let file = file();
    if !file.exists() {
        println!(
            "not run: real alert levels, since {} does not exist",
            file.display()
        );
        return Ok(());
    }
    let cluster = Cluster::alone().await?;
    let key = cluster.key().await?;
    let days = read(&file)?;
    assert_eq!(days.len(), 3);
    for (day, levels) in &days {
        assert_eq!(levels.len(), 96, "{day}");
        let text = as_the_register_gives_it(levels).to_string();
        let load = ["load", "vigieau", "/data/levels.json", "--as-of", day];
        // Repeated on the same cluster, the first day is older than what is stored.
        cluster
            .ingest(&[&load[..], &["--force"]].concat(), "levels.json", &text)
            .await?;
        cluster
            .wait_until(&format!("the levels of {day}"), SOON, async || {
                let stress = cluster.water.get("/api/v1/stress", &key).await?.json()?;
                compare(&stress, levels)
            })
            .await?;
    }
    let stress = cluster.water.get("/api/v1/stress", &key).await?.json()?;
    // The newest day that changed anything, and not the time of loading.
    assert_eq!(stress["updatedAt"], "2026-07-02T00:00:00.000Z");
    Ok(())
}

fn compare(stress: &Value, levels: &BTreeMap<String, (String, String)>) -> Result<()> {
    let records = stress["data"]
        .as_array()
        .with_context(|| format!("no records: {stress}"))?;
    for (code, (_, level)) in levels {
        let level = if level.is_empty() { "normal" } else { level };
        let record = records
            .iter()
            .find(|record| record["dept"] == code.as_str());
        let is = &record.with_context(|| format!("no record of {code}"))?["level"];
        ensure!(is == level, "{code} is {is}, not {level}");
    }
    Ok(())
}

//! Clients that are generated from the description that the API serves, as their authors would: they walk a
//! history in NDJSON.

mod long;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, FixedOffset};
use serde_json::Value;
use water_e2e::Cluster;

/// A row of a history: its id, score and time.
type Row = (String, f64, DateTime<FixedOffset>);

#[tokio::test]
async fn a_client_generated_for_python_walks_a_history_in_ndjson() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let printed = run_python(&cluster, "walk.py")?;
    compare(&cluster, &printed).await
}

#[tokio::test]
async fn a_client_generated_for_typescript_walks_a_history_in_ndjson() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let folder = folder("typescript");
    let description = description(&cluster);
    let node = |script: &str, arguments: &[&str]| {
        let mut node = Command::new("node");
        run(&cluster, node.arg(script).args(arguments), &folder)
    };
    let generator = "node_modules/openapi-typescript/bin/cli.js";
    node(generator, &[&description, "--output", "generated/api.ts"])?;
    node("node_modules/typescript/bin/tsc", &[])?;
    let printed = node("generated/walk.js", &[])?;
    compare(&cluster, &printed).await
}

/// Generates the package for Python anew, and returns what a program prints that uses it.
fn run_python(cluster: &Cluster, program: &str) -> Result<String> {
    let folder = folder("python");
    run(
        cluster,
        Command::new(folder.join(".venv/bin/openapi-python-client"))
            .args(["generate", "--meta", "none", "--overwrite"])
            .args(["--config", "config.yml", "--output-path", "water_data"])
            .args(["--url", &description(cluster)]),
        &folder,
    )?;
    let python = folder.join(".venv/bin/python");
    run(cluster, Command::new(python).arg(program), &folder)
}

/// Returns the folder of a language's client.
fn folder(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .with_file_name("clients")
        .join(language)
}

fn description(cluster: &Cluster) -> String {
    format!("{}/api/v1/openapi.json", cluster.environment.url)
}

/// Runs a command in the client's folder and returns what it printed.
fn run(cluster: &Cluster, command: &mut Command, folder: &Path) -> Result<String> {
    // Never the command itself, whose variables hold the key.
    let program = command.get_program().to_owned();
    let output = command
        .current_dir(folder)
        .env("WATER_URL", &cluster.environment.url)
        .env("WATER_API_KEY", &cluster.environment.api_key)
        .output()
        .with_context(|| format!("cannot start {program:?}: run `cargo dev clients`"))?;
    ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Compares the rows that a client printed with those of one page, which has them all.
async fn compare(cluster: &Cluster, printed: &str) -> Result<()> {
    let target = "/api/v1/hydrorisk?format=ndjson&limit=5000";
    let key = &cluster.environment.api_key;
    let page = cluster.water.get(target, key).await?;
    let served: Result<Vec<Row>> = page.text()?.lines().map(served).collect();
    let (printed, changed) = printed.trim_end().rsplit_once('\n').context("no rows")?;
    let walked: Result<Vec<Row>> = printed.lines().map(walked).collect();
    let served = served?;
    assert!(served.len() > 1000, "pages of 500 rows do not follow");
    assert_eq!(walked?, served);
    assert_eq!(changed, "changed []");
    Ok(())
}

fn served(line: &str) -> Result<Row> {
    let row: Value = serde_json::from_str(line)?;
    let text = |field: &str| row[field].as_str().with_context(|| format!("no {field}"));
    let score = row["globalScore"].as_f64().context("no score")?;
    Ok((text("id")?.to_owned(), score, text("createdAt")?.parse()?))
}

fn walked(line: &str) -> Result<Row> {
    let mut fields = line.split(' ');
    let mut next = || {
        fields
            .next()
            .with_context(|| format!("a part of {line} is missing"))
    };
    Ok((next()?.to_owned(), next()?.parse()?, next()?.parse()?))
}

//! List of loads, for people and for programs.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::command::{Ingest, run};

/// Output of `words` on a terminal, which `script` makes.
fn on_a_terminal(ingest: &Ingest, words: &str) -> String {
    let command = format!("{} {words}", env!("CARGO_BIN_EXE_water-ingest"));
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .env("WATER_POSTGRES_URL", ingest.url_as("water_writer"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    shown
}

#[tokio::test]
async fn provenance_is_a_table_on_a_terminal_and_json_elsewhere() {
    let ingest = Ingest::new().await;
    ingest.run("demo --accounts 1 --rows-per-account 1");
    let shown = on_a_terminal(&ingest, "provenance --limit 2");
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    assert!(lines[0].starts_with("LOADED AT "), "{shown}");
    let register = "VigiEau, the national drought register, 2 July 2026";
    assert!(lines[1].ends_with(register), "{shown}");
    let label = "synthetic: water-ingest demo --seed 1";
    assert!(lines[2].ends_with(label), "{shown}");
    let told = ingest.run("provenance --limit 2").summary;
    assert_eq!(told[1]["synthetic"], json!(true));
}

#[tokio::test]
async fn licence_and_link_are_noted_with_the_load_also_of_rows_that_are_stored() {
    let ingest = Ingest::new().await;
    let words = "load vigieau - --as-of 2026-06-01 --allow-missing --source register";
    let rows = br#"[{"code":"34","niveauGraviteMax":null}]"#;
    let first = run(ingest.command(words), rows);
    assert_eq!(first.summary["outcome"], json!("loaded"));
    let mut load = ingest.command(words);
    load.args(["--licence", "Licence Ouverte 2.0"]);
    load.args(["--source-url", "https://www.data.gouv.fr/datasets/x"]);
    let loaded = run(load, rows);
    assert_eq!(loaded.code, Some(0), "{}", loaded.stderr);
    assert_eq!(loaded.summary["outcome"], json!("provenance_updated"));
    let told = &ingest.run("provenance").summary[0];
    assert_eq!(
        [&told["source"], &told["licence"], &told["sourceUrl"]],
        [
            "register",
            "Licence Ouverte 2.0",
            "https://www.data.gouv.fr/datasets/x"
        ]
    );
}

#[tokio::test]
async fn a_licence_without_the_name_of_its_source_is_a_usage_error() {
    let ingest = Ingest::new().await;
    for flag in [
        ["--licence", "Licence Ouverte 2.0"],
        ["--source-url", "https://data.example"],
    ] {
        let mut load = ingest.command("load vigieau - --as-of today");
        load.args(flag);
        let refused = run(load, b"");
        assert_eq!(refused.code, Some(64), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("--source <TEXT>"),
            "{}",
            refused.stderr
        );
    }
}

//! What was loaded, told to people and to programs.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::fixture::Fixture;

/// `words` on a terminal of its own, which `script` makes.
fn on_a_terminal(fixture: &Fixture, words: &str) -> String {
    let command = format!("{} {words}", env!("CARGO_BIN_EXE_water-ingest"));
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .env("WATER_POSTGRES_URL", fixture.own.url_as("water_writer"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    shown
}

#[tokio::test]
async fn provenance_is_a_table_on_a_terminal_and_json_elsewhere() {
    let fixture = Fixture::new().await;
    fixture.run("demo --accounts 1 --rows-per-account 1");
    let shown = on_a_terminal(&fixture, "provenance --limit 2");
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    assert!(lines[0].starts_with("LOADED AT "), "{shown}");
    let ending = "synthetic: water-ingest demo --seed 1";
    assert!(
        lines[1..].iter().all(|line| line.ends_with(ending)),
        "{shown}"
    );
    let told = fixture.run("provenance --limit 2").summary;
    assert_eq!(told[1]["synthetic"], json!(true));
}

//! The README's table of refusals: each message is what the command says, and none is missing.

mod files;

use std::collections::BTreeSet;
use std::path::Path;

use crate::command::{Ingest, command, run, say};

const README: &str = include_str!("../../README.md");

const STRESS: &str = "dept,stressIndex\n";

/// The first cell of each row of the tables of a section.
fn told(section: &str) -> BTreeSet<String> {
    let (_, text) = README.split_once(&format!("\n{section}\n")).unwrap();
    let text = text.split("\n#").next().unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split_once('`').unwrap().0.to_owned())
        .collect()
}

/// Runs each case and compares: what the command said, which must be one of its lines, and the README.
fn compare(section: &str, said: impl IntoIterator<Item = (String, String)>) {
    let mut messages = BTreeSet::new();
    for (message, stderr) in said {
        assert!(
            stderr.lines().any(|line| line == message),
            "{message}\nis not in\n{stderr}"
        );
        messages.insert(message);
    }
    let told = told(section);
    let missing: Vec<_> = messages.difference(&told).collect();
    let unknown: Vec<_> = told.difference(&messages).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "missing: {missing:#?}\nunknown: {unknown:#?}"
    );
}

/// Checks files in this folder, each named at the beginning of its message, and returns the messages with what was said.
fn checked(
    folder: &Path,
    files: impl IntoIterator<Item = (&'static str, Vec<u8>)>,
    code: i32,
) -> Vec<(String, String)> {
    let said = files.into_iter().map(|(message, content)| {
        let name = message.split(':').next().unwrap();
        let dataset = name.split('.').next().unwrap();
        std::fs::write(folder.join(name), content).unwrap();
        let mut check = command(&format!("check {dataset} {name}"));
        check.current_dir(folder);
        let run = run(check, b"");
        assert_eq!(run.code, Some(code), "{message}: {}", run.stderr);
        (message.to_owned(), run.stderr)
    });
    said.collect()
}

#[test]
fn each_refusal_of_a_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = checked(folder.path(), files::refused(), 2);
    let mut utf8 = command("check stress stress.csv --encoding windows-1252");
    utf8.current_dir(folder.path());
    std::fs::write(
        folder.path().join("stress.csv"),
        "dept,stressIndex,name\n34,1,Hérault\n",
    )
    .unwrap();
    let run = run(utf8, b"");
    assert_eq!(run.code, Some(2));
    let message = "stress.csv:1: the file is UTF-8: leave out --encoding windows-1252";
    said.push((message.to_owned(), run.stderr));
    compare("### A file", said);
}

#[test]
fn each_warning_of_a_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    compare("### Warnings", checked(folder.path(), files::accepted(), 0));
}

#[tokio::test]
async fn each_refusal_of_a_guard_is_told() {
    let ingest = Ingest::new().await;
    let mut said = Vec::new();
    let mut held = |words: &str, content: String, message: &str| {
        let run = ingest.run_with_stdin(words, content);
        assert_eq!(run.code, Some(3), "{message}: {}", run.stderr);
        said.push((message.to_owned(), run.stderr));
    };
    let load = |words: &str, content: &str| ingest.loads(words, content);
    let all = water_domain::departement::all().iter();
    let most: String = all
        .skip(1)
        .map(|departement| format!("{},1\n", departement.code))
        .collect();
    held(
        "load stress - --as-of 2026-06-01",
        format!("{STRESS}{most}"),
        "stress: nothing is stored yet, and the file lacks départements: 01: add --allow-missing if this is meant",
    );
    load(
        "stress - --as-of 2026-06-01 --allow-missing",
        &format!("{STRESS}01,1\n34,1\n75,1\n"),
    );
    held(
        "load stress - --as-of 2026-06-01",
        format!("{STRESS}34,1\n75,1\n"),
        "stress: the file would remove départements that it does not have: 01: add --allow-missing if this is meant",
    );
    held(
        "load stress - --as-of 2026-06-01",
        format!("{STRESS}01,5\n34,5\n75,1\n"),
        "stress: 2 of 3 measured records would move far, more than 50 percent: raise --max-changed if this is meant",
    );
    held(
        "load stress - --as-of 2026-05-01",
        format!("{STRESS}01,1\n34,1\n75,1\n"),
        "stress: as of 2026-05-01T00:00:00.000Z is older than the stored 2026-06-01T00:00:00.000Z: add --force if this is meant",
    );
    held(
        "load stress - --as-of 2026-06-01 --synthetic",
        format!("{STRESS}01,1\n34,1\n75,1\n"),
        "stress: synthetic data would replace measured data: add --force if this is meant",
    );
    let level = |code: &str| format!(r#"{{"code":"{code}","niveauGraviteMax":"crise"}}"#);
    held(
        "load vigieau - --as-of 2026-07-01",
        format!("[{}]", level("01")),
        "vigieau: no level of the register is stored yet, and the file has too few départements, 1 of at least 90: add --allow-missing if this is meant",
    );
    load(
        "vigieau - --as-of 2026-07-01 --allow-missing",
        &format!("[{},{}]", level("01"), level("34")),
    );
    held(
        "load vigieau - --as-of 2026-07-02",
        format!("[{}]", level("01")),
        "vigieau: the file leaves out départements that have a legal level: 34: add --allow-missing if this is meant",
    );
    held(
        "load vigieau - --as-of 2026-07-02",
        format!("[{},{}]", level("01"), level("34")).replace("\"crise\"", "null"),
        "vigieau: the level would fall to normal in 2 of 2 départements that are above it: add --allow-lifting if this is meant; without it they are loaded if they still end 12 hours on",
    );
    held(
        "load stress - --as-of 2026-07-02",
        "dept,stressIndex,level\n01,1,normal\n34,1,normal\n75,1,\n".to_owned(),
        "stress: the level would fall to normal in 2 of 2 départements that are above it: add --allow-lifting if this is meant",
    );
    held(
        "load stress - --as-of 2026-07-02",
        "dept,stressIndex,level\n01,1,alerte\n34,1,alerte\n75,1,\n".to_owned(),
        "stress: 2 of 2 measured levels would move far, more than 50 percent: raise --max-changed if this is meant",
    );
    compare("### Guards", said);
}

#[test]
fn each_wrong_usage_is_told() {
    let said = [
        (
            "load stress -",
            "--as-of is required: the date that the data describes, such as 2026-07-01, or today",
        ),
        (
            "load stress - --as-of 2999-01-01",
            "--as-of must be from the year 2000 on and at most a day ahead",
        ),
        (
            "load audits - --as-of today --allow-missing",
            "--allow-missing is of no use here: a history only adds and updates rows",
        ),
        (
            "load risk - --as-of today --allow-lifting",
            "--allow-lifting is of no use here: it is about alert levels, in vigieau and stress",
        ),
        (
            "load audits - --as-of today --max-changed 10",
            "--max-changed is of no use here: a history has no records that could move",
        ),
        (
            "check stress - --allow-null-words",
            "--allow-null-words is of no use here: it is about companyName",
        ),
        (
            "check risk - --allow-empty",
            "--allow-empty is of no use here: a file without rows would remove everything",
        ),
        (
            "check vigieau - --encoding windows-1252",
            "--encoding is of no use here: JSON is UTF-8",
        ),
        (
            "delete audits --account acme --file /dev/null",
            "there is no id to delete: write at least one",
        ),
        (
            "check stress http://data.example/stress.csv",
            "a file is fetched from an https:// address only: others are not encrypted",
        ),
        (
            "check stress https://u:p@data.example/stress.csv",
            "the address has credentials in it: set WATER_SOURCE_USERNAME and WATER_SOURCE_PASSWORD instead",
        ),
        (
            "check stress https:///stress.csv",
            "the address cannot be read: write https://host/path",
        ),
    ];
    let said = said.map(|(words, message)| {
        let run = say(words, "");
        assert_eq!(run.code, Some(64), "{words}: {}", run.stderr);
        (message.to_owned(), run.stderr)
    });
    compare("### Wrong usage", said);
}

#[test]
fn an_example_that_pipes_fails_with_the_program_before_the_pipe() {
    let examples = README.split("```").skip(1).step_by(2);
    let piped = examples.filter(|example| example.contains("| water-ingest"));
    let piped: Vec<_> = piped.collect();
    assert!(!piped.is_empty());
    for example in piped {
        assert!(example.contains("\nset -o pipefail\n"), "{example}");
    }
}

//! The README's table of refusals: each message is what the command says, and none is missing.

use std::collections::BTreeSet;

use crate::fixture::{Fixture, command, gzip, run};

const README: &str = include_str!("../../README.md");

const STRESS: &str = "dept,stressIndex\n";
const RISK: &str = "dept,flood,drought,overall,rating,updatedAt\n";
const ANALYSES: &str =
    "accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\n";

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

fn rows(header: &str, rows: &str) -> Vec<u8> {
    format!("{header}{rows}\n").into_bytes()
}

/// A row of an analysis with one value exchanged.
fn analysis(column: usize, value: &str) -> Vec<u8> {
    let mut cells = [
        "acme",
        "1",
        "Eaux",
        "36.00Z",
        "34",
        "1",
        "A",
        "2026-01-01T00:00:00Z",
    ];
    cells[column] = value;
    rows(ANALYSES, &cells.join(","))
}

/// Each message and a file that it is about, whose name is the message's begin.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let stress = |text: &str| rows(STRESS, text);
    let risk = |text: &str| rows(RISK, text);
    let long = "x".repeat(1_100_000);
    let truncated = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() - 4);
        bytes
    };
    vec![
        ("stress.csv:1: the file is empty", Vec::new()),
        ("stress.csv:1: the file has no rows", STRESS.into()),
        (
            "stress.csv:1: unknown column \"stress\": the columns are dept, stressIndex and optionally level, name, synthetic",
            "dept,stress\n34,1\n".into(),
        ),
        (
            "stress.csv:1: the column dept is there twice",
            "dept,dept,stressIndex\n34,34,1\n".into(),
        ),
        (
            "stress.csv:1: the column stressIndex is missing: the columns are dept, stressIndex and optionally level, name, synthetic",
            "dept\n34\n".into(),
        ),
        (
            "stress.csv:2: fields in this row: 1, in the header: 2",
            stress("34"),
        ),
        (
            "stress.csv:2: the row has more than 256 fields",
            stress(&"1,".repeat(300)),
        ),
        (
            "stress.csv:3: a quote is opened and never closed",
            stress("34,1\n35,\"1"),
        ),
        (
            "stress.csv:2: text follows a closing quote: double the quotes inside a quoted field",
            stress("34,\"1\"x"),
        ),
        (
            "stress.csv:2: a quote stands inside a field without quotes: quote the whole field and double that quote",
            stress("34,1\""),
        ),
        (
            "stress.csv:2: a carriage return is not followed by a line feed",
            stress("34,1\rx"),
        ),
        (
            "stress.csv:2: the row is longer than 1 MiB: is a quote not closed?",
            stress(&format!("34,\"{long}")),
        ),
        (
            "stress.csv:2: name: byte 0xE9 is not UTF-8 (is it Windows-1252?): save the file as UTF-8, or add --encoding windows-1252 if it is",
            b"dept,stressIndex,name\n34,1,H\xe9rault\n".into(),
        ),
        (
            "stress.csv:1: the file is UTF-16: save it as UTF-8",
            b"\xff\xfed\0e\0".into(),
        ),
        (
            "stress.csv:1: the file is a spreadsheet's workbook (.xlsx, .ods) or another zip: save the sheet as CSV UTF-8",
            b"PK\x03\x04rest".into(),
        ),
        (
            "stress.csv:1: the gzip data is damaged or cut off",
            truncated(gzip("dept,stressIndex\n34,1\n")),
        ),
        (
            "stress.ndjson:1: this is no JSON object (at byte 2 of the line)",
            "{x}\n".into(),
        ),
        (
            "stress.ndjson:2: the line is longer than 1 MiB",
            format!("{{}}\n{{\"{long}").into(),
        ),
        (
            "stress.ndjson:1: stressIndex: null is no value",
            r#"{"dept":"34","stressIndex":null}"#.into(),
        ),
        (
            "stress.ndjson:1: level: true and false are no values here",
            r#"{"dept":"34","stressIndex":1,"level":true}"#.into(),
        ),
        (
            "stress.ndjson:1: level: an array or an object is no value here",
            r#"{"dept":"34","stressIndex":1,"level":[]}"#.into(),
        ),
        (
            "stress.ndjson:1: level: this is no JSON string",
            r#"{"dept":"34","stressIndex":1,"level":"\ud800"}"#.into(),
        ),
        (
            "stress.ndjson:1: stressIndex: 3 is text: write a number without quotes",
            r#"{"dept":"34","stressIndex":"3"}"#.into(),
        ),
        (
            "stress.ndjson:1: dept: 34 is a number: write it as text, in quotes",
            r#"{"dept":34,"stressIndex":3}"#.into(),
        ),
        (
            "stress.csv:2: stressIndex: there is no value",
            stress("34,"),
        ),
        (
            "stress.csv:2: stressIndex: NULL is no value",
            stress("34,NULL"),
        ),
        (
            "stress.csv:2: stressIndex: -9999 stands for no value",
            stress("34,-9999.0"),
        ),
        ("stress.csv:2: stressIndex: x is no number", stress("34,x")),
        (
            "stress.csv:2: stressIndex: 3,5 is no number: a decimal comma is read only in files separated by ;",
            stress("34,\"3,5\""),
        ),
        (
            "stress.csv:2: stressIndex: 5.7 is outside 0..5",
            stress("34,5.7"),
        ),
        (
            "stress.csv:2: level: red: a level is one of normal, vigilance, alerte, alerte_renforcee, crise",
            "dept,stressIndex,level\n34,1,red\n".into(),
        ),
        (
            "stress.csv:2: synthetic: yes: write true or false, as text",
            "dept,stressIndex,synthetic\n34,1,yes\n".into(),
        ),
        (
            "stress.csv:2: dept: 20: there is no such département: Corsica has been 2A (Corse-du-Sud) and 2B (Haute-Corse) since 1976",
            stress("20,1"),
        ),
        (
            "stress.csv:2: dept: 975: there is no such département: 975 is Saint-Pierre-et-Miquelon, an overseas collectivité and not a département",
            stress("975,1"),
        ),
        (
            "stress.csv:2: dept: 99: there is no such département",
            stress("99,1"),
        ),
        (
            "stress.csv:2: dept: x: a département code is two digits, 2A, 2B, or three digits that begin with 97 or 98",
            stress("x,1"),
        ),
        (
            "stress.csv:3: dept: 34 was given in line 2 already",
            stress("34,1\n34,1"),
        ),
        (
            "risk.csv:2: flood: 101 is outside 0..100",
            risk("34,101,1,1,,"),
        ),
        (
            "risk.csv:2: rating: F: a risk rating is one of A, B, C, D, E",
            risk("34,1,1,1,F,"),
        ),
        (
            "risk.csv:2: updatedAt: 2026-07-01: a time is RFC 3339 with an offset, such as 2026-07-01T00:00:00Z",
            risk("34,1,1,1,,2026-07-01"),
        ),
        (
            "risk.csv:2: updatedAt: 1999-12-31T23:59:59.000Z is before the year 2000",
            risk("34,1,1,1,,1999-12-31T23:59:59Z"),
        ),
        (
            "risk.csv:2: updatedAt: 2999-01-01T00:00:00.000Z is more than a day ahead",
            risk("34,1,1,1,,2999-01-01T00:00:00Z"),
        ),
        (
            "analyses.csv:2: accountId: \"a b\": an account id is 1 to 63 letters, digits, '.', '_' or '-', and begins and ends with a letter or digit",
            analysis(0, "a b"),
        ),
        (
            "analyses.csv:2: id: it has the control character U+0000",
            analysis(1, "a\0b"),
        ),
        (
            "analyses.csv:2: id: it is longer than 128 characters",
            analysis(1, &"x".repeat(129)),
        ),
        (
            "analyses.csv:2: id: it begins or ends with white space",
            analysis(1, " 1"),
        ),
        ("analyses.csv:2: companyName: it is blank", analysis(2, " ")),
        (
            "analyses.csv:2: companyName: it has a line end: is a quote not closed?",
            analysis(2, "\"a\nb\""),
        ),
        (
            "analyses.csv:2: companyName: it is longer than 300 characters",
            analysis(2, &"x".repeat(301)),
        ),
        (
            "analyses.csv:2: sectorCode: a/b: a sector code is 1 to 16 letters, digits, '.', '_' or '-'",
            analysis(3, "a/b"),
        ),
        (
            "analyses.csv:2: rating: b: a rating is 1 to 8 upper-case letters, digits, '+' or '-', and begins with a letter",
            analysis(6, "b"),
        ),
        (
            "analyses.csv:3: id: the record of line 2 is there again with different content",
            [
                analysis(5, "1"),
                analysis(5, "2")[ANALYSES.len()..].to_vec(),
            ]
            .concat(),
        ),
        (
            "vigieau.json:1: this is no JSON array (at column 0 of the line)",
            "{}".into(),
        ),
        ("vigieau.json:1: the file has no départements", "[]".into()),
        (
            "vigieau.json:1: the file is longer than 16 MiB",
            " ".repeat((16 << 20) + 1).into(),
        ),
        (
            "vigieau.json:1: byte 0xE9 is not UTF-8 (is it Windows-1252?): save the file as UTF-8",
            b"[\"\xe9\"]".into(),
        ),
        (
            "vigieau.json:1: this is no département: code, nom and niveauGraviteMax must be text",
            r#"[{"code":34}]"#.into(),
        ),
        (
            "vigieau.json:1: code: 98: there is no such département",
            r#"[{"code":"98","niveauGraviteMax":null}]"#.into(),
        ),
        (
            "vigieau.json:1: niveauGraviteMax: the member is missing",
            r#"[{"code":"34"}]"#.into(),
        ),
    ]
}

#[test]
fn each_refusal_of_a_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let said = files().into_iter().map(|(message, content)| {
        let name = message.split(':').next().unwrap();
        let dataset = name.split('.').next().unwrap();
        std::fs::write(folder.path().join(name), content).unwrap();
        let mut check = command(&format!("check {dataset} {name}"));
        check.current_dir(folder.path());
        let run = run(check, b"");
        assert_eq!(run.code, Some(2), "{message}: {}", run.stderr);
        (message.to_owned(), run.stderr)
    });
    let mut said: Vec<_> = said.collect();
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

#[tokio::test]
async fn each_refusal_of_a_guard_is_told() {
    let fixture = Fixture::new().await;
    let mut said = Vec::new();
    let mut held = |words: &str, content: String, message: &str| {
        let run = fixture.run_with_stdin(words, content);
        assert_eq!(run.code, Some(3), "{message}: {}", run.stderr);
        said.push((message.to_owned(), run.stderr));
    };
    let load = |words: &str, content: &str| {
        let run = fixture.run_with_stdin(words, content);
        assert_eq!(run.code, Some(0), "{words}: {}", run.stderr);
    };
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
        "load stress - --as-of 2026-06-01 --allow-missing",
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
    load(
        "load vigieau - --as-of 2026-07-01",
        &format!("[{},{}]", level("01"), level("34")),
    );
    held(
        "load vigieau - --as-of 2026-07-02",
        format!("[{}]", level("01")),
        "vigieau: the file leaves out départements that have a legal level: 34: add --allow-missing if this is meant",
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
        let run = run(command(words), b"");
        assert_eq!(run.code, Some(64), "{words}: {}", run.stderr);
        (message.to_owned(), run.stderr)
    });
    compare("### Wrong usage", said);
}

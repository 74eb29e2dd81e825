//! What is refused, with which words and which exit status; the database is as it was.

use std::fs::File;
use std::io::Write;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use serde_json::json;
use water_harness::Port;

use crate::fixture::{Fixture, command, gzip, run};

#[tokio::test]
async fn a_good_file_is_loaded_and_summarised() {
    let fixture = Fixture::new().await;
    fixture.file(
        "stress.csv",
        "\u{feff}dept;stressIndex;level\r\n1;3,5;Alerte renforcée\r\n2a;0;\r\n",
    );
    let run = fixture.run("load stress stress.csv --as-of 2026-06-01 --allow-missing");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        run.summary,
        json!({
            "dataset": "stress", "file": "stress.csv", "outcome": "loaded", "asOf": "2026-06-01T00:00:00.000Z",
            "rows": 2, "inserted": 2, "updated": 0, "unchanged": 0, "removed": 0,
            "derived": 1, "kept": 0, "withoutRecord": [], "older": 0, "purged": 0, "problems": 0, "warnings": 0,
            "sha256": run.summary["sha256"], "synthetic": false, "dryRun": false,
        })
    );
    let json = serde_json::to_value(fixture.snapshot().await.stress.unwrap().records).unwrap();
    assert_eq!(
        json,
        json!([
            {"dept": "01", "name": "Ain", "stressIndex": 3.5, "level": "alerte_renforcee"},
            {"dept": "2A", "name": "Corse-du-Sud", "stressIndex": 0, "level": "normal"},
        ])
    );
}

#[tokio::test]
async fn standard_input_gzip_and_ndjson_are_read_too() {
    let fixture = Fixture::new().await;
    let rows = "{\"dept\":\"01\",\"stressIndex\":3.5}\n{\"dept\":\"75\",\"stressIndex\":1}\n";
    let first = fixture.run_with_stdin(
        "load stress - --as-of 2026-06-01 --allow-missing",
        gzip(rows),
    );
    assert_eq!(
        (
            first.code,
            &first.summary["inserted"],
            &first.summary["file"]
        ),
        (Some(0), &json!(2), &json!("stdin"))
    );
    let second = fixture.run_with_stdin("load stress - --as-of 2026-06-01", rows);
    assert_eq!(
        (second.code, &second.summary["outcome"]),
        (Some(0), &json!("unchanged"))
    );
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_ends_with_2() {
    let fixture = Fixture::new().await;
    let before = fixture.dump();
    fixture.file("stress.csv", "dept,stressIndex\n01,1\n34,5.7\n20,x\n");
    let run = fixture.run("load stress stress.csv --as-of 2026-06-01");
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.stderr,
        "stress.csv:3: stressIndex: 5.7 is outside 0..5\n\
         stress.csv:4: dept: 20: there is no such département: Corsica has been 2A (Corse-du-Sud) and 2B \
         (Haute-Corse) since 1976\n\
         stress.csv:4: stressIndex: x is no number\n\
         stress.csv: nothing was loaded, for the problems above\n"
    );
    assert_eq!(
        (&run.summary["outcome"], &run.summary["problems"]),
        (&json!("refused"), &json!(3))
    );
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn damaged_gzip_is_bad_data() {
    let fixture = Fixture::new().await;
    let mut packed = gzip("dept,stressIndex\n34,1\n");
    packed.truncate(packed.len() - 4);
    let run = fixture.run_with_stdin("load stress - --as-of 2026-06-01", packed);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.stderr,
        "stdin:1: the gzip data is damaged or cut off\nstdin: nothing was loaded, for the problems above\n"
    );
}

#[tokio::test]
async fn a_guard_ends_with_3_and_says_how_to_mean_it() {
    let fixture = Fixture::new().await;
    fixture.file("all.csv", "dept,stressIndex\n01,1\n34,1\n");
    fixture.file("one.csv", "dept,stressIndex\n34,1\n");
    assert_eq!(
        fixture
            .run("load stress all.csv --as-of 2026-06-01 --allow-missing")
            .code,
        Some(0)
    );
    let fewer = fixture.run("load stress one.csv --as-of 2026-06-01");
    assert_eq!(
        (fewer.code, &fewer.summary["outcome"]),
        (Some(3), &json!("refused"))
    );
    assert_eq!(
        fewer.stderr,
        "stress: the file would remove départements that it does not have: 01: add --allow-missing if this is meant\n"
    );
    fixture.file("first.csv", "dept,flood,drought,overall\n34,1,1,1\n");
    let first = fixture.run("load risk first.csv --as-of 2026-05-01");
    assert_eq!(first.code, Some(3));
    assert!(
        first
            .stderr
            .starts_with("risk: nothing is stored yet, and the file lacks départements: 01, 02, "),
        "{}",
        first.stderr
    );
    let older = fixture.run("load stress all.csv --as-of 2026-05-01");
    assert_eq!(older.code, Some(3));
    assert_eq!(
        older.stderr,
        "stress: as of 2026-05-01T00:00:00.000Z is older than the stored 2026-06-01T00:00:00.000Z: \
         add --force if this is meant\n"
    );
    let meant = fixture.run("load stress one.csv --as-of 2026-05-01 --allow-missing --force");
    assert_eq!(
        (meant.code, &meant.summary["removed"]),
        (Some(0), &json!(1))
    );
}

#[tokio::test]
async fn a_dry_run_reports_and_writes_nothing() {
    let fixture = Fixture::new().await;
    let before = fixture.dump();
    let run = fixture.run_with_stdin(
        "load stress - --as-of 2026-06-01 --dry-run --allow-missing",
        "dept,stressIndex\n34,1\n",
    );
    assert_eq!(
        (run.code, &run.summary["outcome"], &run.summary["inserted"]),
        (Some(0), &json!("checked"), &json!(1))
    );
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn a_date_is_required_and_must_be_plausible() {
    let fixture = Fixture::new().await;
    fixture.file("stress.csv", "dept,stressIndex\n34,1\n");
    let none = fixture.run("load stress stress.csv");
    assert_eq!(
        (none.code, none.stderr.as_str()),
        (
            Some(64),
            "--as-of is required: the date that the data describes, such as 2026-07-01, or today\n"
        )
    );
    let ahead = fixture.run("load stress stress.csv --as-of 2999-01-01");
    assert_eq!(
        (ahead.code, ahead.stderr.as_str()),
        (
            Some(64),
            "--as-of must be from the year 2000 on and at most a day ahead\n"
        )
    );
}

#[tokio::test]
async fn a_missing_file_and_a_server_that_is_away_end_with_1() {
    let fixture = Fixture::new().await;
    let missing = fixture.run("load analyses nowhere.csv --as-of 2026-06-01");
    assert_eq!(missing.code, Some(1));
    assert_eq!(
        missing.stderr,
        "reading nowhere.csv: No such file or directory (os error 2)\n"
    );
    let port = Port::reserve().unwrap();
    let mut away = command("load analyses - --as-of 2026-06-01");
    away.env(
        "WATER_POSTGRES_URL",
        format!(
            "postgresql://water_writer:secret@127.0.0.1:{}/water",
            port.number()
        ),
    );
    let away = run(away, b"");
    assert_eq!(away.code, Some(1));
    assert!(
        away.stderr
            .starts_with("connecting to PostgreSQL: PostgreSQL cannot be reached"),
        "{}",
        away.stderr
    );
    assert!(!away.stderr.contains("secret"));
}

#[tokio::test]
async fn a_missing_or_bad_url_ends_with_64_and_is_not_repeated() {
    let missing = run(command("provenance"), b"");
    assert_eq!(missing.code, Some(64));
    assert_eq!(
        missing.stderr,
        "WATER_POSTGRES_URL is not set. Set it to the PostgreSQL URL, such as \
         postgresql://water_writer:password@host/water?sslmode=verify-full.\n"
    );
    let mut bad = command("provenance");
    bad.env("WATER_POSTGRES_URL", "water:secret@host");
    let bad = run(bad, b"");
    assert_eq!((bad.code, bad.stderr.contains("secret")), (Some(64), false));
    assert!(
        bad.stderr
            .starts_with("the PostgreSQL URL cannot be read: write "),
        "{}",
        bad.stderr
    );
}

#[tokio::test]
async fn a_file_that_was_not_read_to_its_end_has_no_digest_in_the_summary() {
    let fixture = Fixture::new().await;
    let rows = "34,\"1\n".repeat(100_000);
    let run = fixture.run_with_stdin(
        "load stress - --as-of 2026-06-01",
        format!("dept,stressIndex\n34,\"1\"x\n{rows}"),
    );
    assert_eq!(run.code, Some(2));
    assert_eq!(run.summary.get("sha256"), None);
}

#[tokio::test]
async fn a_pipe_that_delivers_byte_by_byte_is_read_like_a_file() {
    let fixture = Fixture::new().await;
    // A pipe of packets: each write is one read, however late its reader comes.
    let (reader, writer) = pipe2(OFlag::O_DIRECT | OFlag::O_CLOEXEC).unwrap();
    let mut command = fixture.command("load stress - --as-of 2026-06-01 --allow-missing");
    let child = command.stdin(reader).spawn().unwrap();
    // Else this test would be a reader too, and wait for ever for a command that ended early.
    drop(command);
    let mut stdin = File::from(writer);
    let mut bytes = "\u{feff}dept;stressIndex\n34;1,5\n".bytes();
    let written = bytes.try_for_each(|byte| stdin.write_all(&[byte]));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    written.unwrap();
    assert_eq!(fixture.sql("SELECT stress_index FROM water.stress"), "1.5");
}

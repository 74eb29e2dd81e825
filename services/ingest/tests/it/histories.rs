//! Analyses and audits: upserted, each row checked, repeated ones found.

use serde_json::json;
use water_database::history;
use water_domain::{AccountId, Page};

use crate::fixture::{Fixture, command, run};

const ANALYSES: &str =
    "accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\n";

fn acme() -> AccountId {
    "acme".parse().unwrap()
}

fn first_page() -> Page {
    Page::parse(None, None).unwrap()
}

#[tokio::test]
async fn analyses_are_upserted_and_read_back_as_the_api_answers_them() {
    let fixture = Fixture::new().await;
    let row = "acme,a-1,\"Eaux, \"\"Sud\"\"\",36.00Z,2a,12.50,B+,2026-01-01T01:00:00.0019+01:00\n";
    let first = fixture.run_with_stdin(
        "load analyses - --as-of 2026-01-01",
        format!("{ANALYSES}{row}"),
    );
    assert_eq!(
        (first.code, &first.summary["inserted"]),
        (Some(0), &json!(1))
    );
    let changed = format!("{ANALYSES}{}", row.replace("12.50", "99"));
    let second = fixture.run_with_stdin("load analyses - --as-of 2026-01-01", changed);
    assert_eq!(
        (second.code, &second.summary["updated"]),
        (Some(0), &json!(1))
    );
    let slice = history::analyses(&fixture.reader, &acme(), first_page())
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_value(slice.rows).unwrap(),
        json!([{
            "id": "a-1", "companyName": "Eaux, \"Sud\"", "sectorCode": "36.00Z", "deptCode": "2A",
            "globalScore": 99, "rating": "B+", "createdAt": "2026-01-01T00:00:00.001Z"
        }])
    );
}

#[tokio::test]
async fn audits_have_their_own_columns_and_may_be_ndjson() {
    let fixture = Fixture::new().await;
    let row = json!({
        "accountId": "acme", "id": "u-1", "companyName": "Eaux", "sectorCode": "36.00Z", "deptCode": "34",
        "score": 7.25, "globalRating": "AA", "createdAt": "2026-01-01T00:00:00Z"
    });
    let run = fixture.run_with_stdin("load audits - --as-of 2026-01-01", row.to_string());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let slice = history::audits(&fixture.reader, &acme(), first_page())
        .await
        .unwrap();
    assert_eq!((slice.total, slice.rows[0].score.get()), (1, 7.25));
}

#[tokio::test]
async fn a_record_repeated_with_different_content_is_refused_with_both_lines() {
    let fixture = Fixture::new().await;
    let before = fixture.dump();
    let rows = "acme,1,Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n\
                acme,1,Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n\
                acme,1,Eaux,36.00Z,34,2,A,2026-01-01T00:00:00Z\n";
    fixture.file("analyses.csv", format!("{ANALYSES}{rows}"));
    let run = fixture.run("load analyses analyses.csv --as-of 2026-01-01");
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.stderr,
        "analyses.csv:4: id: the record of line 2 is there again with different content\n\
         analyses.csv: nothing was loaded, for the problems above\n"
    );
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn one_bad_row_at_the_end_of_many_loads_none() {
    let fixture = Fixture::new().await;
    let good: String = (0..5000)
        .map(|n| format!("acme,{n},Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n"))
        .collect();
    fixture.file(
        "analyses.csv",
        format!("{ANALYSES}{good}acme,x,Eaux,36.00Z,34,1,a,2026-01-01T00:00:00Z\n"),
    );
    let run = fixture.run("load analyses analyses.csv --as-of 2026-01-01");
    assert_eq!((run.code, &run.summary["rows"]), (Some(2), &json!(5001)));
    assert_eq!(
        run.stderr,
        "analyses.csv:5002: rating: a: a rating is 1 to 8 upper-case letters, digits, '+' or '-', \
         and begins with a letter\n\
         analyses.csv: nothing was loaded, for the problems above\n"
    );
    assert_eq!(fixture.sql("SELECT count(*) FROM water.analyses"), "0");
}

#[tokio::test]
async fn a_purge_removes_the_account_and_says_how_many_rows_went() {
    let fixture = Fixture::new().await;
    let rows = "acme,1,Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\nother,1,Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n";
    fixture.run_with_stdin(
        "load analyses - --as-of 2026-01-01",
        format!("{ANALYSES}{rows}"),
    );
    let run = fixture.run("purge --account acme");
    assert_eq!(run.code, Some(0));
    assert_eq!(
        run.summary,
        json!({"account": "acme", "analyses": 1, "audits": 0, "dryRun": false})
    );
    assert_eq!(
        fixture.sql("SELECT DISTINCT account_id FROM water.analyses"),
        "other"
    );
}

#[tokio::test]
async fn an_older_file_does_not_revert_a_row_and_says_so() {
    let fixture = Fixture::new().await;
    let row = |score| format!("{ANALYSES}acme,1,Eaux,36.00Z,34,{score},A,2026-01-01T00:00:00Z\n");
    fixture.run_with_stdin("load analyses - --as-of 2026-07-02", row(2));
    let run = fixture.run_with_stdin("load analyses - --as-of 2026-07-01", row(1));
    assert_eq!(
        (run.code, run.stderr.as_str(), &run.summary["older"]),
        (
            Some(0),
            "stdin: rows that a file of a later date had, and which stay as they are: 1\n",
            &json!(1)
        )
    );
    assert_eq!(run.summary["outcome"], json!("unchanged"));
    assert_eq!(fixture.sql("SELECT score FROM water.analyses"), "2");
}

#[tokio::test]
async fn a_purged_account_does_not_come_back_before_its_purge_is_lifted() {
    let fixture = Fixture::new().await;
    let rows = format!("{ANALYSES}acme,1,Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n");
    let load = || fixture.run_with_stdin("load analyses - --as-of 2026-07-01", &rows);
    load();
    fixture.run("purge --account acme");
    let skipped = load();
    assert_eq!(
        (
            skipped.code,
            skipped.stderr.as_str(),
            &skipped.summary["purged"]
        ),
        (
            Some(0),
            "stdin: rows of purged accounts, which were skipped: 1\n",
            &json!(1)
        )
    );
    let lifted = fixture.run("purge --account acme --lift");
    assert_eq!(lifted.summary, json!({"account": "acme", "lifted": true}));
    assert_eq!(load().summary["inserted"], json!(1));
}

#[tokio::test]
async fn a_flag_that_does_not_apply_is_wrong_usage() {
    for (words, flag) in [
        (
            "load analyses - --as-of 2026-07-01 --allow-missing",
            "--allow-missing",
        ),
        (
            "load analyses - --as-of 2026-07-01 --max-changed 10",
            "--max-changed",
        ),
        (
            "load stress - --as-of 2026-07-01 --allow-null-words",
            "--allow-null-words",
        ),
        (
            "load risk - --as-of 2026-07-01 --allow-empty",
            "--allow-empty",
        ),
        (
            "load vigieau - --as-of 2026-07-01 --encoding windows-1252",
            "--encoding",
        ),
    ] {
        let run = run(command(words), b"");
        let start = format!("{flag} is of no use here: ");
        assert_eq!(run.code, Some(64));
        assert!(run.stderr.starts_with(&start), "{}", run.stderr);
    }
    let none = run(command("load analyses -"), b"");
    assert_eq!(
        (none.code, none.stderr.as_str()),
        (
            Some(64),
            "--as-of is required: the date that the data describes, such as 2026-07-01, or today\n"
        )
    );
}

#[tokio::test]
async fn a_company_may_be_called_none_when_it_is_said() {
    let fixture = Fixture::new().await;
    let rows = format!("{ANALYSES}acme,1,None,36.00Z,34,1,A,2026-01-01T00:00:00Z\n");
    let refused = fixture.run_with_stdin("load analyses - --as-of 2026-07-01", &rows);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .starts_with("stdin:2: companyName: None is no value\n"),
        "{}",
        refused.stderr
    );
    let words = "load analyses - --as-of 2026-07-01 --allow-null-words";
    assert_eq!(fixture.run_with_stdin(words, &rows).code, Some(0));
}

#[tokio::test]
async fn a_quiet_day_is_a_header_without_rows_when_it_is_said() {
    let fixture = Fixture::new().await;
    let refused = fixture.run_with_stdin("load analyses - --as-of 2026-07-01", ANALYSES);
    assert_eq!(refused.code, Some(2));
    let words = "load analyses - --as-of 2026-07-01 --allow-empty";
    let quiet = fixture.run_with_stdin(words, ANALYSES);
    assert_eq!(
        (quiet.code, quiet.stderr.as_str(), &quiet.summary["outcome"]),
        (Some(0), "", &json!("unchanged"))
    );
    // An export that failed writes nothing at all.
    let nothing = fixture.run_with_stdin(words, "");
    assert_eq!(nothing.code, Some(2));
    assert!(
        nothing.stderr.starts_with("stdin:1: the file is empty\n"),
        "{}",
        nothing.stderr
    );
}

#[tokio::test]
async fn windows_1252_is_read_when_it_is_asked_for() {
    let fixture = Fixture::new().await;
    let rows = b"acme,1,Soci\xe9t\xe9 \x80,36.00Z,34,1,A,2026-01-01T00:00:00Z\n";
    let file = [ANALYSES.as_bytes(), rows].concat();
    let refused = fixture.run_with_stdin("load analyses - --as-of 2026-07-01", &file);
    assert_eq!(refused.code, Some(2));
    let words = "load analyses - --as-of 2026-07-01 --encoding windows-1252";
    let run = fixture.run_with_stdin(words, &file);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        fixture.sql("SELECT company_name FROM water.analyses"),
        "Société €"
    );
}

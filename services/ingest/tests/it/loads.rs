//! Loads that succeed, are refused, or are permitted by a flag: the summary, the messages and the exit status.

use serde_json::{Value, json};
use water_database::{departements, history};
use water_domain::Page;
use water_harness::Port;

use crate::command::{ANALYSES, Ingest, analysis, command, gzip, run, say};

#[tokio::test]
async fn a_good_file_is_loaded_summarised_and_read_back() {
    let ingest = Ingest::new().await;
    ingest.file(
        "stress.csv",
        "\u{feff}dept;stressIndex;level\r\n1;3,5;Alerte renforcée\r\n2a;0;\r\n",
    );
    let run = ingest.loads("stress stress.csv --as-of 2026-06-01 --allow-missing", "");
    assert_eq!(run.stderr, "");
    assert_eq!(
        run.summary,
        json!({
            "dataset": "stress", "file": "stress.csv", "outcome": "loaded", "asOf": "2026-06-01T00:00:00.000Z",
            "rows": 2, "inserted": 2, "updated": 0, "unchanged": 0, "removed": 0,
            "derived": 1, "kept": 0, "withoutRecord": [], "older": 0, "purged": 0, "problems": 0, "warnings": 0,
            "sha256": run.summary["sha256"], "synthetic": false, "dryRun": false,
        })
    );
    let stored = departements::snapshot(&ingest.reader()).await.unwrap();
    assert_eq!(
        serde_json::to_value(stored.stress.unwrap().records).unwrap(),
        json!([
            {"dept": "01", "name": "Ain", "stressIndex": 3.5, "level": "alerte_renforcee",
             "levelSource": "file", "levelAsOf": "2026-06-01T00:00:00.000Z"},
            {"dept": "2A", "name": "Corse-du-Sud", "stressIndex": 0, "level": "normal",
             "levelSource": "derived", "levelAsOf": "2026-06-01T00:00:00.000Z"},
        ])
    );
    // The same from standard input, packed, as NDJSON.
    let rows = "{\"dept\":\"01\",\"stressIndex\":3.5}\n{\"dept\":\"2A\",\"stressIndex\":0}\n";
    let again = ingest.loads("stress - --as-of 2026-06-01", gzip(rows));
    let said = ["file", "outcome"].map(|name| &again.summary[name]);
    assert_eq!(said, ["stdin", "provenance_updated"]);
    let again = ingest.loads("stress - --as-of 2026-06-01", gzip(rows));
    assert_eq!(again.summary["outcome"], json!("unchanged"));
}

#[tokio::test]
async fn a_history_that_psql_copies_out_is_the_history_that_was_loaded() {
    let ingest = Ingest::new().await;
    let rows: String = (0..3).map(|id| analysis(id, 1)).collect();
    let words = "analyses - --as-of 2026-01-01";
    ingest.loads(words, format!("{ANALYSES}{rows}"));
    for (offset, time) in [
        ("+00:00", "2026-01-01 00:00:00+00"),
        ("+05:30", "2026-01-01 05:30:00+05:30"),
    ] {
        let copied = ingest.sql(&format!(
            "SET TIME ZONE INTERVAL '{offset}' HOUR TO MINUTE;\n\
             \\copy (SELECT account_id AS \"accountId\", id, company_name AS \"companyName\", \
             sector_code AS \"sectorCode\", dept_code AS \"deptCode\", score AS \"globalScore\", rating, \
             created_at AS \"createdAt\" FROM water.analyses) TO STDOUT CSV HEADER"
        ));
        assert!(copied.contains(time), "{copied}");
        let again = ingest.loads(words, format!("{copied}\n"));
        let counts = ["unchanged", "updated"].map(|name| &again.summary[name]);
        assert_eq!(counts, [&json!(3), &json!(0)], "{offset}");
    }
}

#[tokio::test]
async fn both_histories_are_upserted_and_read_back_as_the_api_answers_them() {
    let ingest = Ingest::new().await;
    let row = "acme,a-1,\"Eaux, \"\"Sud\"\"\",36.00Z,2a,12.50,B+,2026-01-01T01:00:00.0019+01:00\n";
    let words = "analyses - --as-of 2026-01-01";
    let first = ingest.loads(words, format!("{ANALYSES}{row}"));
    assert_eq!(first.summary["inserted"], json!(1));
    let changed = row.replace("12.50", "99");
    let second = ingest.loads(words, format!("{ANALYSES}{changed}"));
    assert_eq!(second.summary["updated"], json!(1));
    let audit = json!({
        "accountId": "acme", "id": "u-1", "companyName": "Eaux", "sectorCode": "36.00Z", "deptCode": "34",
        "score": 7.25, "globalRating": "AA", "createdAt": "2026-01-01T00:00:00Z"
    });
    ingest.loads("audits - --as-of 2026-01-01", audit.to_string());

    let (acme, page) = ("acme".parse().unwrap(), Page::parse(None, None).unwrap());
    let reader = ingest.reader();
    let analyses = history::analyses(&reader, &acme, page).await.unwrap();
    assert_eq!(
        serde_json::to_value(analyses.rows).unwrap(),
        json!([{
            "id": "a-1", "companyName": "Eaux, \"Sud\"", "sectorCode": "36.00Z", "deptCode": "2A",
            "globalScore": 99, "rating": "B+", "createdAt": "2026-01-01T00:00:00.001Z"
        }])
    );
    let audits = history::audits(&reader, &acme, page).await.unwrap();
    assert_eq!((audits.total, audits.rows[0].score.get()), (1, 7.25));
}

#[tokio::test]
async fn one_bad_row_at_the_end_of_many_loads_none() {
    let ingest = Ingest::new().await;
    let rows: String = (0..5000).map(|id| analysis(id, 1)).collect();
    let bad = analysis("x", 1).replace(",A,", ",a,");
    ingest.file("analyses.csv", format!("{ANALYSES}{rows}{bad}"));
    let run = ingest.run("load analyses analyses.csv --as-of 2026-01-01");
    assert_eq!((run.code, &run.summary["rows"]), (Some(2), &json!(5001)));
    assert_eq!(
        run.stderr,
        "analyses.csv:5002: rating: a: a rating is 1 to 8 upper-case letters, digits, '+' or '-', \
         and begins with a letter\n\
         analyses.csv: nothing was loaded, for the problems above\n"
    );
    assert_eq!(ingest.sql("SELECT count(*) FROM water.analyses"), "0");
}

#[tokio::test]
async fn rows_that_are_older_or_of_a_purged_account_are_left_out_and_counted() {
    let ingest = Ingest::new().await;
    let file = |score| format!("{ANALYSES}{}", analysis(1, score));
    ingest.loads("analyses - --as-of 2026-07-02", file(2));
    let older = ingest.loads("analyses - --as-of 2026-07-01", file(1));
    assert_eq!(
        older.stderr,
        "stdin: rows that a file of a later date had, or that were deleted since: they stay as they are: 1\n"
    );
    let counted = |run: &Value| ["outcome", "older", "purged"].map(|name| run[name].clone());
    let expected = [json!("provenance_updated"), json!(1), json!(0)];
    assert_eq!(counted(&older.summary), expected);

    let purged = ingest.run("purge --account acme");
    let expected = json!({"account": "acme", "analyses": 1, "audits": 0, "dryRun": false});
    assert_eq!((purged.code, purged.summary), (Some(0), expected));
    let skipped = ingest.loads("analyses - --as-of 2026-07-02", file(2));
    let said = "stdin: rows of purged accounts, which were skipped: 1\n";
    assert_eq!(skipped.stderr, said);
    assert_eq!(skipped.summary["purged"], json!(1));
    let lifted = ingest.run("purge --account acme --lift");
    assert_eq!(lifted.summary, json!({"account": "acme", "lifted": true}));
    let back = ingest.loads("analyses - --as-of 2026-07-02", file(2));
    assert_eq!(back.summary["inserted"], json!(1));
}

/// The texts of the refusals are compared with the README.
#[tokio::test]
async fn a_flag_permits_what_is_refused_without_it() {
    let ingest = Ingest::new().await;
    let refused = |words: &str, file: &[u8], code: i32| {
        let run = ingest.run_with_stdin(&format!("load {words}"), file);
        assert_eq!(run.code, Some(code), "{words}: {}", run.stderr);
        let outcome = run.summary["outcome"].as_str();
        assert_eq!(outcome, Some("refused"), "{words}");
    };
    let rows = |text: &str| format!("dept,stressIndex\n{text}").into_bytes();
    let named = |name: &[u8]| {
        let (start, end) = (
            format!("{ANALYSES}acme,1,"),
            ",36.00Z,34,1,A,2026-01-01T00:00:00Z\n",
        );
        [start.as_bytes(), name, end.as_bytes()].concat()
    };
    for (words, file, code, flag) in [
        (
            "stress - --as-of 2026-06-01",
            rows("01,1\n34,1\n"),
            3,
            "--allow-missing",
        ),
        (
            "stress - --as-of 2026-06-02",
            rows("01,5\n34,5\n"),
            3,
            "--max-changed 100",
        ),
        (
            "stress - --as-of 2026-06-01",
            rows("01,5\n34,5\n"),
            3,
            "--force",
        ),
        (
            "analyses - --as-of 2026-07-01",
            named(b"None"),
            2,
            "--allow-null-words",
        ),
        (
            "analyses - --as-of 2026-07-01",
            ANALYSES.into(),
            2,
            "--allow-empty",
        ),
        (
            "analyses - --as-of 2026-07-01",
            named(b"Soci\xe9t\xe9 \x80"),
            2,
            "--encoding windows-1252",
        ),
    ] {
        refused(words, &file, code);
        ingest.loads(&format!("{words} {flag}"), &file);
    }
    let name = "SELECT company_name FROM water.analyses";
    assert_eq!(ingest.sql(name), "Société €");
    // An export that failed writes nothing at all, not even a header.
    refused("analyses - --as-of 2026-07-01 --allow-empty", b"", 2);
}

#[test]
fn a_missing_file_and_a_server_that_is_away_end_with_1() {
    let missing = say("check analyses nowhere.csv", "");
    assert_eq!(missing.code, Some(1));
    let said = "reading nowhere.csv: No such file or directory (os error 2)\n";
    assert_eq!(missing.stderr, said);
    let port = Port::reserve().unwrap();
    let url = format!("postgresql://water_writer:secret@{}/water", port.address());
    let mut away = command("load analyses - --as-of 2026-06-01");
    away.env("WATER_POSTGRES_URL", url);
    let away = run(away, b"");
    assert_eq!(away.code, Some(1));
    let said = "connecting to PostgreSQL: PostgreSQL cannot be reached";
    assert!(away.stderr.starts_with(said), "{}", away.stderr);
    assert!(!away.stderr.contains("secret"));
}

#[test]
fn a_missing_or_bad_url_ends_with_64_and_is_not_repeated() {
    let missing = say("provenance", "");
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
    let said = "the PostgreSQL URL cannot be read: write ";
    assert!(bad.stderr.starts_with(said), "{}", bad.stderr);
}

//! Data stored in addition to the rows, compared with them.

use serde_json::json;
use water_kit::Database;

use crate::command::{Ingest, command, run};

#[tokio::test]
async fn loaded_data_agrees_with_itself() {
    let ingest = Ingest::new().await;
    assert_eq!(ingest.run("verify").code, Some(0));
    ingest.run("demo --accounts 3 --rows-per-account 200");
    ingest.run("purge --account demo-2");
    // Deleted, and loaded again.
    ingest.run("delete analyses --account demo-1 analyses-0000001 --as-of 2025-12-31");
    ingest.run("demo --accounts 3 --rows-per-account 200");
    let run = ingest.run("verify");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        run.summary,
        json!({
            "outcome": "verified",
            "checks": [
                {"check": "analyses: totals of accounts", "compared": 2, "wrong": 0},
                {"check": "analyses: anchors of pages", "compared": 8, "wrong": 0},
                {"check": "analyses: versions of rows", "compared": 400, "wrong": 0},
                {"check": "analyses: deletions of rows", "compared": 1, "wrong": 0},
                {"check": "analyses: accounts without a purge in force", "compared": 2, "wrong": 0},
                {"check": "audits: totals of accounts", "compared": 2, "wrong": 0},
                {"check": "audits: anchors of pages", "compared": 8, "wrong": 0},
                {"check": "audits: versions of rows", "compared": 400, "wrong": 0},
                {"check": "audits: deletions of rows", "compared": 0, "wrong": 0},
                {"check": "audits: accounts without a purge in force", "compared": 2, "wrong": 0},
                {"check": "stress: copies of alert levels", "compared": 101, "wrong": 0},
            ]
        })
    );
}

#[tokio::test]
async fn whatever_does_not_agree_is_reported_and_names_no_account() {
    for (damage, told) in [
        (
            "UPDATE water.analyses_accounts SET total = total + 1 WHERE account_id = 'demo-1'",
            "analyses: totals of accounts: 1 of 2 are wrong",
        ),
        (
            "DELETE FROM water.audits_accounts WHERE account_id = 'demo-1'",
            "audits: totals of accounts: 1 of 2 are wrong",
        ),
        (
            "DELETE FROM water.analyses_anchors WHERE ordinal = 64 AND account_id = 'demo-2'",
            "analyses: anchors of pages: 1 of 8 are wrong",
        ),
        (
            "UPDATE water.audits_anchors SET id = id || 'x' WHERE ordinal = 128",
            "audits: anchors of pages: 2 of 8 are wrong",
        ),
        (
            "UPDATE water.analyses SET version = 99 WHERE id = 'analyses-0000001'",
            "analyses: versions of rows: 2 of 400 are wrong",
        ),
        (
            "INSERT INTO water.audits_deletions SELECT account_id, id, version, now() FROM water.audits LIMIT 1",
            "audits: deletions of rows: 1 of 1 are wrong",
        ),
        (
            "INSERT INTO water.purges (account_sha256, purged_by, analyses, audits) \
             VALUES (sha256('demo-1'), 'a test', 0, 0)",
            "analyses: accounts without a purge in force: 1 of 2 are wrong\n\
             audits: accounts without a purge in force: 1 of 2 are wrong",
        ),
        (
            "UPDATE water.stress SET level = 'normal' WHERE dept IN ('34', '971')",
            "stress: copies of alert levels: 1 of 101 are wrong",
        ),
        (
            "UPDATE water.levels SET level = 'crise' WHERE dept = '34'",
            "stress: copies of alert levels: 1 of 101 are wrong",
        ),
    ] {
        let ingest = Ingest::on(Database::filled("verified", demo).await);
        ingest.sql(damage);
        let run = ingest.run("verify");
        let outcome = &run.summary["outcome"];
        assert_eq!((run.code, outcome), (Some(2), &json!("inconsistent")));
        let last = "the stored data does not agree with itself, in the places above";
        assert_eq!(run.stderr, format!("{told}\n{last}\n"));
        assert!(!run.summary.to_string().contains("demo-"));
    }
}

/// Two accounts' histories, and a level derived from its index.
async fn demo(database: &Database) {
    let mut demo = command("demo --accounts 2 --rows-per-account 200");
    demo.env("WATER_POSTGRES_URL", database.url_as("water_writer"));
    assert_eq!(run(demo, b"").code, Some(0));
    database.sql("UPDATE water.stress SET stress_index = 0.5, level = 'normal' WHERE dept = '971'");
    let mut verify = command("verify");
    verify.env("WATER_POSTGRES_URL", database.url_as("water_writer"));
    assert_eq!(run(verify, b"").code, Some(0));
}

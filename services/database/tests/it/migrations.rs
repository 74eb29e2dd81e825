//! Migrations run as the owner, once, and give each role its rights and no more.

use std::time::Duration;

use anyhow::ensure;
use water_database::history;
use water_database::migrations::{self, MigrationError};
use water_harness::{Postgres, wait_until};

use crate::fixture::{Fixture, account, day, load, page, stress};
use crate::former::{BACK_TO_V1, BACK_TO_V2};

#[tokio::test]
async fn a_second_migration_changes_nothing() {
    let fixture = Fixture::new().await;
    let applied = migrations::migrate(&fixture.own.url_as("water_owner"), None)
        .await
        .unwrap();
    assert_eq!(applied, Vec::<String>::new());
}

#[tokio::test]
async fn two_migrations_that_race_both_succeed() {
    let fixture = Fixture::new().await;
    fixture.sql("DROP SCHEMA water CASCADE");
    let url = fixture.own.url_as("water_owner");
    let (one, other) = tokio::join!(
        migrations::migrate(&url, None),
        migrations::migrate(&url, None)
    );
    assert_eq!(one.unwrap().len() + other.unwrap().len(), 4);
}

#[tokio::test]
async fn an_older_build_leaves_newer_migrations_alone() {
    let fixture = Fixture::new().await;
    fixture.sql("INSERT INTO water.migrations VALUES (999, 'newer', '2030-01-01T00:00:00Z', '1')");
    let applied = migrations::migrate(&fixture.own.url_as("water_owner"), None)
        .await
        .unwrap();
    assert_eq!(applied, Vec::<String>::new());
}

#[tokio::test]
async fn a_missing_role_is_named_with_the_remedy() {
    let server = Postgres::start().await.unwrap();
    let database = server.create_database().unwrap();
    let error = migrations::migrate(&database.url(), None)
        .await
        .unwrap_err();
    assert!(matches!(error, MigrationError::MissingRole(_)));
    assert_eq!(
        error.to_string(),
        "the role water_reader does not exist: an administrator must first run the script \
         that `water-ingest bootstrap-sql` prints"
    );
}

#[tokio::test]
async fn the_reader_may_not_write_and_the_writer_may_not_change_the_schema() {
    let fixture = Fixture::new().await;
    let denied = |role: &str, sql: &str| {
        let sql = format!("SET ROLE {role}; {sql}");
        fixture
            .postgres
            .sql(fixture.own.name(), &sql)
            .unwrap_err()
            .to_string()
    };
    for sql in [
        "DELETE FROM water.stress",
        "UPDATE water.datasets SET version = 9",
        "SELECT FROM water.loads",
        "SELECT FROM water.purges",
        "DELETE FROM water.analyses_deletions",
    ] {
        assert!(
            denied("water_reader", sql).contains("permission denied"),
            "{sql}"
        );
    }
    for sql in [
        "DROP TABLE water.stress",
        "DELETE FROM water.loads",
        "DELETE FROM water.datasets",
        "DELETE FROM water.migrations",
        "INSERT INTO water.migrations VALUES (999, 'forged', '2030-01-01T00:00:00Z', '1')",
        "DELETE FROM water.purges",
    ] {
        let answer = denied("water_writer", sql);
        assert!(
            answer.contains("permission denied") || answer.contains("must be owner"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_schema_that_lacks_a_migration_below_its_newest_is_refused() {
    let fixture = Fixture::new().await;
    fixture.sql("DELETE FROM water.migrations WHERE version = 1");
    let error = migrations::migrate(&fixture.own.url_as("water_owner"), None)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the database lacks the migration V1__datasets_and_histories, although it has newer ones: \
         restore the schema from a backup or apply it by hand"
    );
}

#[tokio::test]
async fn a_later_table_has_the_usual_rights_without_a_word() {
    let fixture = Fixture::new().await;
    let as_role = |role: &str, sql: &str| {
        let sql = format!("SET ROLE {role}; {sql}");
        fixture.postgres.sql(fixture.own.name(), &sql)
    };
    as_role("water_owner", "CREATE TABLE water.later (number int)").unwrap();
    as_role("water_writer", "INSERT INTO water.later VALUES (1)").unwrap();
    assert_eq!(
        as_role("water_reader", "SELECT number FROM water.later").unwrap(),
        "1"
    );
    assert!(as_role("water_reader", "DELETE FROM water.later").is_err());
}

/// All that is applied to the first version.
const AFTER_V1: [&str; 3] = [
    "V2__levels_confirmations_and_purges",
    "V3__versions_deletions_and_sources",
    "V4__changes_in_order",
];

#[tokio::test]
async fn a_migration_waits_for_a_long_load_without_holding_up_readers() {
    let fixture = Fixture::new().await;
    fixture.sql(BACK_TO_V2);
    fixture.sql(BACK_TO_V1);
    // The guard's own transaction is idle all the while.
    let name = fixture.own.name();
    fixture.sql(&format!(
        "ALTER ROLE water_owner IN DATABASE {name} SET idle_in_transaction_session_timeout = '500ms'"
    ));
    let load = fixture.hold("LOCK TABLE water.analyses IN ROW EXCLUSIVE MODE");
    let load = load.await;
    let url = fixture.own.url_as("water_owner");
    let migrating = tokio::spawn(async move { migrations::migrate(&url, None).await });
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let seen = async |count: &str| {
        wait_until(
            "the migration's lock",
            Duration::from_secs(10),
            async || {
                let waits = fixture.sql(waiting);
                ensure!(waits == count, "{waits}");
                Ok(())
            },
        )
        .await
        .unwrap();
    };
    // It waits, gives way to the readers behind it, and tries again.
    for count in ["1", "0", "1"] {
        seen(count).await;
        let acme = account("acme");
        history::analyses(&fixture.reader, &acme, page(20, 0))
            .await
            .unwrap();
    }
    load.batch_execute("COMMIT").await.unwrap();
    assert_eq!(migrating.await.unwrap().unwrap(), AFTER_V1);
}

#[tokio::test]
async fn legal_levels_of_the_version_before_are_taken_over() {
    let mut fixture = Fixture::new().await;
    fixture.sql(BACK_TO_V2);
    fixture.sql(BACK_TO_V1);
    fixture.sql(
        "INSERT INTO water.stress VALUES ('01', 1, 'crise', false), ('34', 1, 'vigilance', true); \
         UPDATE water.datasets SET as_of = '2026-01-03T00:00:00Z' WHERE name = 'vigieau'",
    );
    migrations::migrate(&fixture.own.url_as("water_owner"), None)
        .await
        .unwrap();
    let stored = "SELECT dept, level, as_of = '2026-01-03T00:00:00Z', synthetic FROM water.levels";
    assert_eq!(fixture.sql(stored), "01|crise|t|f");
    let rows = [stress("01", 1.0, None)];
    fixture
        .writer
        .replace_stress(&rows, day(9), &load())
        .await
        .unwrap();
    assert_eq!(fixture.sql("SELECT level FROM water.stress"), "crise");
}

//! Migrations run as the owner, once, and give each role its rights and no more.

use anyhow::ensure;
use water_database::history;
use water_database::migrations::{self, MigrationError};
use water_database::writer::History::{Analyses, Audits};
use water_domain::{Fault, Level};
use water_harness::{Postgres, wait_until};

use crate::SOON;
use crate::fixture::{Fixture, Row, account, day, page, risk, row, stress};

#[tokio::test]
async fn fault_29_two_migrations_that_race_both_succeed() {
    let fixture = Fixture::new().await;
    fixture.sql("DROP SCHEMA water CASCADE");
    let url = fixture.own.url_as("water_owner");
    let (one, other) = tokio::join!(
        migrations::migrate(&url, None),
        migrations::migrate(&url, None)
    );
    assert_eq!(one.unwrap().len() + other.unwrap().len(), ALL.len());
}

#[tokio::test]
async fn an_older_build_leaves_newer_migrations_alone() {
    let fixture = Fixture::new().await;
    fixture.sql("INSERT INTO water.migrations VALUES (999, 'newer', '2030-01-01T00:00:00Z', '1')");
    assert_eq!(fixture.migrate().await, [""; 0]);
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

/// All migrations.
const ALL: [&str; 8] = [
    "V1__datasets_and_histories",
    "V2__levels_confirmations_and_purges",
    "V3__versions_deletions_and_sources",
    "V4__changes_in_order",
    "V5__refused_liftings",
    "V6__version_ids",
    "V7__deletions_describe_a_moment",
    "V8__sources_of_accounts_and_dates_of_records",
];

/// Statements that take the schema back by one version each and keep the data, the latest first.
const BACK: [&str; 7] = [
    "DELETE FROM water.migrations WHERE version > 7; DROP FUNCTION water.date_record CASCADE; \
     DELETE FROM water.refused_liftings; ALTER TABLE water.refused_liftings DROP COLUMN dept, \
     DROP CONSTRAINT refused_liftings_levels_sha256_key, ADD PRIMARY KEY (levels_sha256); \
     ALTER TABLE water.stress DROP COLUMN updated_at; \
     DROP VIEW water.kept_levels; ALTER TABLE water.loads DROP COLUMN kept_levels; \
     ALTER TABLE water.analyses_accounts DROP COLUMN as_of, DROP COLUMN loaded_at, DROP COLUMN source, \
     DROP COLUMN source_url, DROP COLUMN licence, DROP COLUMN synthetic; \
     ALTER TABLE water.audits_accounts DROP COLUMN as_of, DROP COLUMN loaded_at, DROP COLUMN source, \
     DROP COLUMN source_url, DROP COLUMN licence, DROP COLUMN synthetic",
    "DELETE FROM water.migrations WHERE version > 6; \
     ALTER TABLE water.analyses_deletions DROP COLUMN as_of; \
     ALTER TABLE water.audits_deletions DROP COLUMN as_of",
    "DELETE FROM water.migrations WHERE version > 5; \
     DROP FUNCTION water.identify_version CASCADE; DROP TABLE water.versions",
    "DELETE FROM water.migrations WHERE version > 4; \
     DROP TABLE water.refused_liftings; ALTER TABLE water.levels DROP COLUMN register",
    "DELETE FROM water.migrations WHERE version > 3; \
     DROP INDEX water.analyses_changes, water.audits_changes",
    "DELETE FROM water.migrations WHERE version > 2; \
     DROP INDEX water.loads_by_dataset, water.purges_by_account; \
     DROP VIEW water.sources, water.last_purges; \
     ALTER TABLE water.loads DROP COLUMN licence, DROP COLUMN source_url; \
     DROP TABLE water.analyses_deletions, water.audits_deletions; \
     DROP FUNCTION water.stamp_version CASCADE; \
     ALTER TABLE water.analyses DROP COLUMN version; ALTER TABLE water.audits DROP COLUMN version",
    "DELETE FROM water.migrations WHERE version > 1; DROP TABLE water.levels, water.purges; \
     ALTER TABLE water.analyses DROP COLUMN as_of; ALTER TABLE water.audits DROP COLUMN as_of",
];

/// Queries of this version's services. Tests next to the statements compare them with the file.
const READER: &str = include_str!("kept/reader.sql");

/// Statements of the loader of the version before.
const WRITER: &str = include_str!("kept/writer.sql");

/// Every column with its type and default, and every index.
const SCHEMA: &str = "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default) \
    FROM information_schema.columns WHERE table_schema = 'water' \
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'water' ORDER BY 1";

impl Fixture {
    /// Takes the schema this many versions back.
    fn go_back(&self, versions: usize) {
        for back in &BACK[..versions] {
            self.sql(back);
        }
    }

    async fn migrate(&self) -> Vec<String> {
        let url = self.own.url_as("water_owner");
        migrations::migrate(&url, None).await.unwrap()
    }
}

#[tokio::test]
async fn each_earlier_schema_becomes_this_one_and_its_data_is_read() {
    for versions in 0..=BACK.len() {
        let mut fixture = Fixture::new().await;
        let schema = fixture.sql(SCHEMA);
        let crise = stress("34", 3.5, Some(Level::Crise));
        fixture.stress(&[crise, stress("75", 1.0, None)], 1).await;
        fixture.risk(&[risk("34", 50.0)], 1).await;
        let rows: Vec<Row> = (0..100).map(|id| row("acme", id, day(id))).collect();
        fixture.load(Analyses, &rows).await;
        fixture.load(Audits, &rows[..70]).await;
        fixture.delete(&["99"]).await;
        fixture.go_back(versions);
        assert_eq!(fixture.migrate().await, ALL[ALL.len() - versions..]);
        assert_eq!(fixture.sql(SCHEMA), schema);

        let read = fixture.sql(&format!("SET ROLE water_reader; {READER}"));
        // An account has a source from its next file on; deletions are remembered since the third version.
        let sources = if versions == 0 {
            ["|t|{}|99|{}", "|t|{}|70|{}"]
        } else {
            [""; 2]
        };
        let deletion = if versions < 6 { "2|99|||||" } else { "" };
        for shown in [
            "34|3.5|crise|file|2026-01-02",
            "50|50|50|C",
            "99|98|Société Test",
            "70|69|Société Test",
            "0|0|Société Test",
            "|t|{75}|2|{}",
            sources[0],
            sources[1],
            deletion,
        ] {
            assert!(read.contains(shown), "{versions}: {shown} is not in {read}");
        }
        let (known, rows) = fixture.all().await;
        assert_eq!((rows.len(), fixture.since(known).await.1), (99, vec![]));
    }
}

#[tokio::test]
async fn a_load_by_the_version_before_dates_the_records_that_it_changes_and_no_others() {
    let mut fixture = Fixture::new().await;
    let index = ["34", "75"].map(|code| stress(code, 1.0, None));
    fixture.stress(&index, 1).await;
    fixture.sql(&format!("SET ROLE water_writer; {WRITER}"));
    let dates = fixture.sql("SELECT dept, updated_at::date FROM water.stress ORDER BY dept");
    assert_eq!(dates, "34|2026-01-06\n75|2026-01-02\n93|2026-01-06");
}

#[tokio::test]
async fn a_migration_waits_for_a_long_load_without_holding_up_readers() {
    let fixture = Fixture::new().await;
    fixture.go_back(BACK.len());
    // The guard's transaction is idle all the while.
    let name = fixture.own.name();
    fixture.sql(&format!(
        "ALTER ROLE water_owner IN DATABASE {name} SET idle_in_transaction_session_timeout = '500ms'"
    ));
    let load = fixture.hold("LOCK TABLE water.analyses IN ROW EXCLUSIVE MODE");
    let load = load.await;
    let url = fixture.own.url_as("water_owner");
    let migrating = tokio::spawn(async move { migrations::migrate(&url, None).await });
    let waiting = |shown: &str| {
        fixture.sql(&format!(
            "SELECT {shown} FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ))
    };
    let seen = async |count: &str| {
        wait_until("the migration's lock", SOON, async || {
            let waits = waiting("count(*)");
            ensure!(waits == count, "{waits}");
            Ok(())
        })
        .await
        .unwrap();
    };
    // On a busy machine the timeout of 2 s may end a read behind which the migration gave way. It did not if it still
    // waits as it did before the read.
    let read = async || {
        let mut tries = 1;
        loop {
            let (since, acme) = (waiting("waitstart"), account("acme"));
            match history::analyses(&fixture.reader, &acme, page(20, 0)).await {
                Err(error) if error.is_transient() && tries < 3 => {
                    let now = waiting("waitstart");
                    assert!(now.is_empty() || now != since, "{error:?}");
                }
                read => return read.unwrap(),
            }
            tries += 1;
        }
    };
    // The migration waits, gives way to the readers behind it, and tries again.
    for count in ["1", "0", "1"] {
        seen(count).await;
        read().await;
    }
    load.batch_execute("COMMIT").await.unwrap();
    assert_eq!(migrating.await.unwrap().unwrap(), ALL[1..]);
}

#[tokio::test]
async fn legal_levels_of_the_first_schema_are_taken_over() {
    let mut fixture = Fixture::new().await;
    fixture.go_back(BACK.len());
    fixture.sql(
        "INSERT INTO water.stress VALUES ('01', 1, 'crise', false), ('34', 1, 'vigilance', true); \
         UPDATE water.datasets SET as_of = '2026-01-03T00:00:00Z' WHERE name = 'vigieau'",
    );
    fixture.migrate().await;
    let stored = "SELECT dept, level, as_of = '2026-01-03T00:00:00Z', synthetic FROM water.levels";
    assert_eq!(fixture.sql(stored), "01|crise|t|f");
    let rows = [stress("01", 1.0, None)];
    fixture.stress(&rows, 9).await;
    assert_eq!(fixture.sql("SELECT level FROM water.stress"), "crise");
}

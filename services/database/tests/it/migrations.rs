//! Migrations run as the owner, once, and give each role its rights and no more.

use water_database::migrations::{self, MigrationError};
use water_harness::Postgres;

use crate::fixture::Fixture;

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
    assert_eq!(one.unwrap().len() + other.unwrap().len(), 1);
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
    ] {
        let answer = denied("water_writer", sql);
        assert!(
            answer.contains("permission denied") || answer.contains("must be owner"),
            "{answer}"
        );
    }
}

//! What an error says, and whether trying again may help.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::net::TcpListener;
use tokio::time::timeout;
use water_database::{Database, departements, migrations};
use water_domain::Fault;
use water_harness::{Port, Postgres};

use crate::fixture::Fixture;

/// The error of reading the versions, with all its causes in one text.
async fn failure(url: &str) -> (bool, String) {
    let database = Database::connect(url, None).unwrap();
    let error = departements::versions(&database).await.unwrap_err();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
        error.source()
    });
    (
        error.is_transient(),
        causes
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": "),
    )
}

#[tokio::test]
async fn a_server_that_is_away_is_transient_and_its_url_is_not_told() {
    let port = Port::reserve().unwrap();
    let (transient, message) = failure(&format!(
        "postgresql://water_reader:secret@127.0.0.1:{}/water",
        port.number()
    ))
    .await;
    assert!(transient, "{message}");
    assert!(
        message.starts_with("connecting to PostgreSQL: PostgreSQL cannot be reached"),
        "{message}"
    );
    assert!(!message.contains("secret"), "{message}");
}

#[tokio::test]
async fn a_database_that_is_not_migrated_yet_is_transient() {
    let database = Postgres::shared().await.unwrap().create_database().unwrap();
    let (transient, message) = failure(&database.url()).await;
    assert!(transient, "{message}");
    assert_eq!(
        message,
        "reading the versions of the datasets: PostgreSQL answered 42P01: relation \"water.datasets\" does not exist"
    );
}

#[tokio::test]
async fn a_missing_right_is_not_transient() {
    let fixture = Fixture::new().await;
    fixture.sql("REVOKE SELECT ON water.datasets FROM water_reader");
    let (transient, message) = failure(&fixture.own.url_as("water_reader")).await;
    assert!(!transient, "{message}");
}

#[tokio::test]
async fn a_query_that_waits_too_long_is_transient() {
    let fixture = Fixture::new().await;
    let mut owner = tokio_postgres::connect(&fixture.own.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    let connection = tokio::spawn(owner.1);
    let lock = owner.0.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE water.datasets")
        .await
        .unwrap();
    let (transient, message) = failure(&fixture.own.url_as("water_reader")).await;
    assert!(transient && message.contains("57014"), "{message}");
    drop(lock);
    drop(owner.0);
    connection.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_value_written_past_the_ingest_is_a_bug_and_not_served() {
    let fixture = Fixture::new().await;
    fixture.sql("INSERT INTO water.stress VALUES ('99', 1, 'crise', false)");
    fixture.sql("UPDATE water.datasets SET updated_at = now() WHERE name = 'stress'");
    let error = departements::snapshot(&fixture.reader).await.unwrap_err();
    assert!(!error.is_transient());
    assert_eq!(error.to_string(), "reading a stress record");
}

#[tokio::test]
async fn a_restarted_server_is_read_again() {
    let server = Postgres::start().await.unwrap();
    let own = server.create_database().unwrap();
    server.sql(own.name(), migrations::ROLES_SQL).unwrap();
    migrations::migrate(&own.url(), None).await.unwrap();
    let database = Database::connect(&own.url_as("water_reader"), None).unwrap();
    departements::versions(&database).await.unwrap();
    // SIGINT is PostgreSQL's fast shutdown: it does not wait for its clients.
    server.process().signal(Signal::SIGINT).unwrap();
    server
        .process()
        .ended(Duration::from_secs(20))
        .await
        .unwrap();
    let away = departements::versions(&database).await.unwrap_err();
    assert!(away.is_transient());
    server.process().start_again().unwrap();
    server.ready().await.unwrap();
    departements::versions(&database).await.unwrap();
}

#[tokio::test]
async fn a_server_that_never_answers_is_not_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgresql://u@{}/water", silent.local_addr().unwrap());
    let (transient, message) = timeout(Duration::from_secs(4), failure(&url))
        .await
        .unwrap();
    assert!(transient, "{message}");
}

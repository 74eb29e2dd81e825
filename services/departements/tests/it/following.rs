//! How the database is followed: a silent server, a listening connection that ends, and values of
//! a newer version.

use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;
use water_harness::{Postgres, wait_until};

use crate::fixture::{SOON, day, load, migrated, ready, risk, start, stress, writer};
use crate::reloads::until;

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_noticed_and_needs_no_restart_of_the_service() {
    let postgres = Postgres::start().await.unwrap();
    let database = migrated(&postgres).await;
    postgres.process().signal(Signal::SIGSTOP).unwrap();
    let service = start(&database.url_as("water_reader"));
    let counted = async || {
        let metrics = service.admin("/metrics").await;
        let none = "\nwater_dataset_failures_total 0\n";
        ensure!(!metrics.text()?.contains(none), "{metrics:?}");
        Ok(())
    };
    wait_until("a failure to be counted", Duration::from_secs(5), counted)
        .await
        .unwrap();
    let unready = service.admin("/ready").await;
    assert_eq!(
        (
            unready.status,
            unready.json().unwrap()["missing"][0].clone()
        ),
        (503, "datasets".into())
    );
    postgres.process().signal(Signal::SIGCONT).unwrap();
    let back = async || {
        ensure!(service.admin("/ready").await.status == 200, "not ready");
        Ok(())
    };
    wait_until("the service to be ready", Duration::from_secs(5), back)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_listening_connection_that_ends_serves_nothing_anew() {
    let postgres = Postgres::shared().await.unwrap();
    let database = migrated(postgres).await;
    let mut writer = writer(&database).await;
    let risks = [risk("34", 1.0)];
    writer.replace_risk(&risks, day(1), &load()).await.unwrap();
    let service = ready(&database.url_as("water_reader")).await;
    let listening = async || {
        let sql = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' \
                   AND datname = current_database() AND pid <> pg_backend_pid()";
        let pid = postgres.sql(database.name(), sql)?;
        ensure!(!pid.is_empty(), "nobody listens");
        Ok(pid)
    };
    let first = wait_until("the service to listen", SOON, listening)
        .await
        .unwrap();
    postgres
        .sql(
            database.name(),
            &format!("SELECT pg_terminate_backend({first})"),
        )
        .unwrap();
    let again = async || {
        let pid = listening().await?;
        ensure!(pid != first, "the old session");
        Ok(())
    };
    wait_until("the service to listen again", SOON, again)
        .await
        .unwrap();
    let risks = [risk("34", 2.0)];
    writer.replace_risk(&risks, day(2), &load()).await.unwrap();
    until(&service, "/api/v1/risque", 2).await;
    let metrics = service.admin("/metrics").await;
    assert!(
        metrics
            .text()
            .unwrap()
            .contains("\nwater_dataset_reads_total 2\n"),
        "{metrics:?}"
    );
}

#[tokio::test]
async fn a_stored_value_of_a_newer_version_stops_its_own_record_only() {
    let postgres = Postgres::shared().await.unwrap();
    let database = migrated(postgres).await;
    let rows = [stress("01", 1.0), stress("34", 1.0)];
    let mut writer = writer(&database).await;
    writer.replace_stress(&rows, day(1), &load()).await.unwrap();
    let newer = "ALTER TABLE water.stress DROP CONSTRAINT stress_level_check; \
                 UPDATE water.stress SET level = 'catastrophe' WHERE dept = '34'";
    postgres.sql(database.name(), newer).unwrap();
    let service = ready(&database.url_as("water_reader")).await;
    assert_eq!(service.get("/api/v1/stress?dept=01").await.status, 200);
    assert_eq!(service.get("/api/v1/stress?dept=34").await.status, 404);
    let metrics = service.admin("/metrics").await;
    assert!(
        metrics
            .text()
            .unwrap()
            .contains("\nwater_dataset_records_skipped 1\n"),
        "{metrics:?}"
    );
}

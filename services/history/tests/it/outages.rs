//! PostgreSQL away, slow, or back: 503 quickly, never another answer, and no restart needed.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;
use tokio::time::{Instant, timeout};
use water_database::writer::History;
use water_harness::{Answer, Database, Postgres, wait_until};

use crate::fixture::{Running, SOON, load, lock_analyses, migrated, rows, start, writer};

/// A server of the test's own, with three analyses, and the service on it.
async fn own() -> (Postgres, Database, Running) {
    let postgres = Postgres::start().await.unwrap();
    let database = migrated(&postgres).await;
    load(&mut writer(&database).await, History::Analyses, &rows(3)).await;
    // The harness' server commits without waiting for the disk: this survives a kill.
    postgres.sql("postgres", "CHECKPOINT").unwrap();
    let service = start(&database.url_as("water_reader")).ready().await;
    (postgres, database, service)
}

fn unavailable(answer: &Answer) {
    let body = answer.json().unwrap();
    assert_eq!(
        (answer.status, &body["code"]),
        (503, &"dependency_unavailable".into()),
        "{answer:?}"
    );
    assert!(
        answer
            .header("retry-after")
            .is_some_and(|seconds| seconds.parse::<u32>().is_ok())
    );
    for inside in ["ostgre", "SQL", "127.0.0.1", "refused"] {
        assert!(!answer.text().unwrap().contains(inside), "{answer:?}");
    }
}

#[tokio::test]
async fn an_outage_is_503_at_once_and_its_end_is_noticed() {
    let (postgres, _, service) = own().await;
    let before = service.get("/api/v1/hydrorisk").await;
    postgres.process().kill().unwrap();
    // Sessions of a killed server live until they notice.
    let away = async || {
        let started = Instant::now();
        let answer = service.get("/api/v1/hydrorisk").await;
        ensure!(answer.status == 503, "{answer:?}");
        Ok((answer, started.elapsed()))
    };
    let mut times = Vec::new();
    for _ in 0..3 {
        let (answer, took) = wait_until("the outage", SOON, away).await.unwrap();
        unavailable(&answer);
        times.push(took);
    }
    // The others may have waited for a busy machine.
    let fastest = times.iter().min();
    assert!(fastest < Some(&Duration::from_secs(2)), "{times:?}");
    assert_eq!(service.admin("/ready").await.status, 200);

    postgres.process().start_again().unwrap();
    postgres.ready().await.unwrap();
    let back = async || {
        let answer = service.get("/api/v1/hydrorisk").await;
        ensure!(answer.body == before.body, "{answer:?}");
        Ok(())
    };
    wait_until("the history", SOON, back).await.unwrap();
}

#[tokio::test]
async fn a_query_whose_asker_left_is_cancelled() {
    let (postgres, database, service) = own().await;
    let (name, postgres) = (database.name().to_owned(), Arc::new(postgres));
    lock_analyses(&postgres, &name).await;
    let asking = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                  AND usename = 'water_reader'";
    let waiting = |count: &'static str| {
        let (postgres, name) = (Arc::clone(&postgres), name.clone());
        async move || {
            let waiting = postgres.sql(&name, asking)?;
            ensure!(waiting == count, "{waiting} queries wait");
            Ok(())
        }
    };
    let service = Arc::new(service);
    let asker = Arc::clone(&service);
    let request = tokio::spawn(async move { asker.get("/api/v1/hydrorisk").await });
    wait_until("a query that waits", SOON, waiting("1"))
        .await
        .unwrap();
    request.abort();
    wait_until("the query's end", SOON, waiting("0"))
        .await
        .unwrap();
    let told = async || {
        let log = postgres.process().log();
        let (left, overdue) = ("connection to client lost", "statement timeout");
        ensure!(log.contains(left) && !log.contains(overdue), "{log}");
        Ok(())
    };
    wait_until("the server to say why", SOON, told)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_503() {
    let (postgres, database, service) = own().await;
    let (name, postgres) = (database.name().to_owned(), Arc::new(postgres));
    lock_analyses(&postgres, &name).await;

    let answer = timeout(SOON, service.get("/api/v1/hydrorisk")).await;
    unavailable(&answer.expect("an answer while the statement waits"));
    assert_eq!(service.get("/api/v1/conformite").await.status, 200);
    postgres
        .sql(
            &name,
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE mode = 'AccessExclusiveLock'",
        )
        .unwrap();
    let back = async || {
        let answer = service.get("/api/v1/hydrorisk").await;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    };
    wait_until("the history", SOON, back).await.unwrap();
}

#[tokio::test]
async fn a_cold_pod_is_not_ready_before_it_has_read_the_database() {
    let postgres = Postgres::start().await.unwrap();
    let database = migrated(&postgres).await;
    postgres.process().kill().unwrap();
    let service = start(&database.url_as("water_reader"));
    let ready = service.admin("/ready").await;
    assert_eq!(
        (ready.status, ready.json().unwrap()["missing"][0].clone()),
        (503, "database".into())
    );
    assert_eq!(service.admin("/live").await.status, 200);
    unavailable(&service.get("/api/v1/conformite").await);

    postgres.process().start_again().unwrap();
    let service = service.ready().await;
    assert_eq!(service.get("/api/v1/conformite").await.status, 200);
}

#[tokio::test]
async fn a_database_that_is_not_migrated_is_503_until_it_is() {
    let postgres = Postgres::start().await.unwrap();
    let database = migrated(&postgres).await;
    postgres
        .sql(database.name(), "ALTER SCHEMA water RENAME TO later")
        .unwrap();
    let service = start(&database.url_as("water_reader"));
    unavailable(&service.get("/api/v1/hydrorisk").await);
    assert_eq!(service.admin("/ready").await.status, 503);
    postgres
        .sql(database.name(), "ALTER SCHEMA later RENAME TO water")
        .unwrap();
    assert_eq!(
        service.ready().await.get("/api/v1/hydrorisk").await.status,
        200
    );
}

#[tokio::test]
async fn a_server_without_a_free_connection_is_503() {
    let (postgres, database, _) = own().await;
    postgres
        .sql(
            database.name(),
            "ALTER ROLE water_reader CONNECTION LIMIT 0",
        )
        .unwrap();
    let service = start(&database.url_as("water_reader"));
    unavailable(&service.get("/api/v1/hydrorisk").await);
}

#[tokio::test]
async fn a_role_that_may_not_log_in_is_503() {
    let (postgres, database, _) = own().await;
    postgres
        .sql(database.name(), "ALTER ROLE water_reader NOLOGIN")
        .unwrap();
    let service = start(&database.url_as("water_reader"));
    unavailable(&service.get("/api/v1/hydrorisk").await);
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_503_in_time() {
    let (postgres, database, _) = own().await;
    postgres.process().signal(Signal::SIGSTOP).unwrap();
    let service = start(&database.url_as("water_reader"));
    let answer = timeout(Duration::from_secs(4), service.get("/api/v1/hydrorisk")).await;
    unavailable(&answer.expect("an answer within the pool's timeout of 2 s, and a bit"));
    postgres.process().signal(Signal::SIGCONT).unwrap();
    service.ready().await;
}

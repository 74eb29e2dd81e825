//! PostgreSQL down at the start, and clients that leave while it works for them.

use std::sync::Arc;

use anyhow::ensure;
use water_harness::wait_until;
use water_kit::{Database, SOON, problem};

use crate::{ANALYSES, AUDITS, Lock, start};

#[tokio::test]
async fn a_query_whose_asker_left_is_cancelled() {
    let database = Database::alone().await;
    let service = Arc::new(start(&database.reader_url()).ready().await);
    let lock = Lock::analyses(&database).await;
    let asker = Arc::clone(&service);
    let request = tokio::spawn(async move { asker.get(ANALYSES).await });
    lock.has("NOT granted", "1").await;
    request.abort();
    lock.has("NOT granted", "0").await;
    let said = async || {
        let log = database.server.process().log();
        let (left, overdue) = ("connection to client lost", "statement timeout");
        ensure!(log.contains(left) && !log.contains(overdue), "{log}");
        Ok(())
    };
    wait_until("the server to say why", SOON, said)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_cold_pod_is_not_ready_before_it_has_read_the_database() {
    let database = Database::alone().await;
    database.server.kill().await.unwrap();
    let service = start(&database.reader_url());
    let ready = service.admin("/ready").await;
    let missing = ready.json().unwrap()["missing"][0].clone();
    assert_eq!((ready.status, missing), (503, "database".into()));
    assert_eq!(service.admin("/live").await.status, 200);
    let (status, code, _) = problem(&service.get(AUDITS).await);
    assert_eq!((status, code), (503, "dependency_unavailable".into()));
    database.server.start_again().await.unwrap();
    let service = service.ready().await;
    assert_eq!(service.get(AUDITS).await.status, 200);
}

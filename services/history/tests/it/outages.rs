//! PostgreSQL down at the start, and clients that leave while it works for them.

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::Instant;
use water_harness::wait_until;
use water_kit::{Database, Running, SOON, problem};

use crate::{ANALYSES, AUDITS, Lock, start};

/// The session that waits for the lock.
const WAITING: &str =
    "SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'water.analyses'::regclass LIMIT 1";

/// Timeout of a statement, which ends a query that nobody has left, too.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Asks for a page that waits for the lock, and leaves. Returns whether the server ended the query for that, and not
/// because of its timeout.
async fn is_cancelled(database: &Database, service: &Running) -> bool {
    let waiting = async || {
        let session = database.sql(WAITING);
        ensure!(!session.is_empty(), "no query waits");
        Ok(format!("[{session}]"))
    };
    let asked = Instant::now();
    let session = tokio::select! {
        answer = service.get(ANALYSES) => {
            let (status, taken) = (answer.status, asked.elapsed());
            assert!(status == 503 && taken >= TIMEOUT, "{status} after {taken:?}");
            return false;
        }
        session = wait_until("the query to wait", SOON, waiting) => session.unwrap(),
    };
    let ended = async || {
        let log = database.server.process().log();
        let mut of_session = log.lines().filter(|line| line.contains(&session));
        let end = of_session.find_map(|line| {
            let is_overdue = line.contains("statement timeout");
            (is_overdue || line.contains("connection to client lost")).then_some(!is_overdue)
        });
        end.context(log)
    };
    wait_until("the server to say why", SOON, ended)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_query_whose_asker_left_is_cancelled() {
    let database = Database::alone().await;
    let service = start(&database.reader_url()).ready().await;
    let _lock = Lock::analyses(&database).await;
    // On a busy machine the timeout may come first: another query is left then.
    let mut overdue = 0;
    while !is_cancelled(&database, &service).await {
        overdue += 1;
        assert!(overdue < 5, "each query went on until its timeout");
    }
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

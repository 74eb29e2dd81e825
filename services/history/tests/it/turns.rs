//! Bulk pages of an account, one at a time: others wait, and JSON does not.

use std::cell::Cell;
use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;
use water_database::writer::History;
use water_harness::wait_until;
use water_kit::{Database, SOON, Signature, problem, rows};

use crate::{ANALYSES, AUDITS, Lock, bulk, start};

#[tokio::test]
async fn a_second_bulk_page_of_an_account_waits_a_second_and_others_are_served() {
    let database = Database::new().await;
    let service = start(&database.reader_url()).ready().await;
    let mut loader = database.writer().await;
    loader.history(History::Analyses, &rows(9)).await;
    let lock = Lock::analyses(&database).await;
    let is_over = Cell::new(false);
    // PostgreSQL ends a page that waits for 2 s, and its turn ends with it: the next one takes its place.
    let first = async {
        while !is_over.get() {
            bulk(&service, ANALYSES, "csv").await;
        }
    };
    let rest = async {
        // On a busy machine the first page may end too early, and the second is served.
        let refused = async || {
            lock.has("NOT granted", "1").await;
            let asked = Instant::now();
            let second = bulk(&service, AUDITS, "csv").await;
            ensure!(second.status == 503, "{second:?}");
            Ok((second, asked.elapsed()))
        };
        let refused = wait_until("a page that waits in vain", SOON, refused).await;
        let (second, waited) = refused.unwrap();
        assert_eq!(problem(&second).0, 503);
        assert_eq!(second.header("retry-after"), Some("2"));
        assert!(waited >= Duration::from_millis(900), "{waited:?}");
        let signature = Signature {
            account: "other",
            ..Signature::default()
        };
        // On a busy machine one may wait longer for a connection than the service does.
        let others = async || {
            let json = service.get(AUDITS).await;
            ensure!(json.status == 200, "{json:?}");
            let identity = signature.value("GET", AUDITS);
            let headers = [("X-Water-Format", "csv"), ("X-Water-Identity", &identity)];
            let other = service.raw("GET", AUDITS, &headers).await;
            ensure!(other.status == 200, "{other:?}");
            Ok(())
        };
        wait_until("the others", SOON, others).await.unwrap();
        is_over.set(true);
        drop(lock);
    };
    tokio::join!(first, rest);
    assert_eq!(bulk(&service, ANALYSES, "csv").await.status, 200);
}

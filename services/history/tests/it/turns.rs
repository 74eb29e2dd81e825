//! One bulk page of an account at a time: others wait, and JSON does not.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;
use water_database::writer::History;
use water_harness::{Postgres, wait_until};

use crate::fixture::{SOON, Signature, bulk, load, migrated, problem, rows, start, writer};

const ALL: &str = "/api/v1/hydrorisk";

#[tokio::test]
async fn a_second_bulk_page_of_an_account_waits_a_second_and_others_are_served() {
    let postgres = Postgres::shared().await.unwrap();
    let database = migrated(postgres).await;
    let service = start(&database.url_as("water_reader")).ready().await;
    load(&mut writer(&database).await, History::Analyses, &rows(9)).await;
    let name = database.name().to_owned();
    std::thread::spawn(move || {
        let lock = "BEGIN; LOCK water.analyses IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)";
        // It ends with an error, when it is told to.
        postgres.sql(&name, lock)
    });
    let locks = async |granted: &str| {
        let sql = format!(
            "SELECT count(*) FROM pg_locks WHERE {granted} AND relation = 'water.analyses'::regclass \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        );
        wait_until("a lock", SOON, async || {
            let locks = postgres.sql(database.name(), &sql)?;
            ensure!(locks == "1", "{locks} locks");
            Ok(())
        })
        .await
        .unwrap();
    };
    locks("granted").await;
    let first = bulk(&service, ALL, "csv");
    let rest = async {
        locks("NOT granted").await;
        let asked = Instant::now();
        let second = bulk(&service, "/api/v1/conformite", "csv").await;
        assert_eq!(problem(&second).0, 503);
        assert_eq!(second.header("retry-after"), Some("2"));
        assert!(asked.elapsed() >= Duration::from_millis(900));
        assert_eq!(service.get("/api/v1/conformite").await.status, 200);
        let signature = Signature {
            account: "other",
            ..Signature::default()
        };
        let target = "/api/v1/conformite";
        let identity = signature.value("GET", target);
        let headers = [("X-Water-Format", "csv"), ("X-Water-Identity", &identity)];
        assert_eq!(service.raw("GET", target, &headers).await.status, 200);
        let end = "SELECT pg_terminate_backend(pid) FROM pg_locks \
                   WHERE granted AND mode = 'AccessExclusiveLock' AND relation = 'water.analyses'::regclass";
        postgres.sql(database.name(), end).unwrap();
    };
    tokio::join!(first, rest);
    assert_eq!(bulk(&service, ALL, "csv").await.status, 200);
}

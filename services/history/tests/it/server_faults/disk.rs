//! PostgreSQL's disks full: the data's fails loads only, the write-ahead log's stops the server.

use nix::sys::signal::Signal;
use std::time::Duration;

use anyhow::ensure;
use water_database::Writer;
use water_database::writer::{Batch, History, HistoryRow, LoadError};
use water_domain::{Fault, Number, Timestamp};
use water_harness::{Disks, Postgres, wait_until};

use super::site::Site;
use crate::fixture::{SOON, writer};

async fn site() -> (Disks, Site) {
    let sizes = [("data", 160 << 20), ("wal", 96 << 20)];
    let disks = Disks::mount(&sizes).await.unwrap();
    let site = Site::on(Postgres::start_on(&disks).await.unwrap()).await;
    (disks, site)
}

/// Audits, which no reader here asks for: some 20 MB.
async fn load_much(writer: &mut Writer) -> Result<(), LoadError> {
    let mut staging = writer.stage(History::Audits).await?;
    let at = Timestamp::parse("2026-07-01T00:00:00Z").unwrap();
    for part in 0..20 {
        let mut batch = Batch::default();
        for number in 0..3_000 {
            batch.push(&HistoryRow {
                line: 2 + part * 3_000 + number,
                account_id: "acme",
                id: &format!("{part}-{number}"),
                company_name: &"Eaux ".repeat(50),
                sector_code: "36.00Z",
                dept_code: "34",
                score: Number::try_from(1.0).unwrap(),
                rating: "A",
                created_at: at,
            });
        }
        staging.push(batch).await?;
    }
    staging.finish(at, &water_kit::load()).await.map(drop)
}

#[tokio::test]
async fn a_full_data_disk_fails_loads_and_no_read() {
    let (disks, site) = site().await;
    let readers = site.readers().await;
    let mut writer = writer(&site.database).await;
    disks.fill("data").unwrap();
    match load_much(&mut writer).await {
        Err(LoadError::Database(error)) => assert!(error.is_transient(), "{error:?}"),
        other => panic!("a load on a full disk: {other:?}"),
    }
    site.until_served().await;
    disks.free("data").unwrap();
    load_much(&mut writer).await.unwrap();
    readers.stop().await.assert_uninterrupted();
}

#[tokio::test]
async fn a_full_disk_of_the_log_stops_the_server_until_there_is_space_and_it_is_restarted() {
    let (disks, site) = site().await;
    let readers = site.readers().await;
    let mut writer = writer(&site.database).await;
    disks.fill("wal").unwrap();
    load_much(&mut writer).await.unwrap_err();
    site.until_refused().await;
    disks.free("wal").unwrap();
    let server = site.postgres.process();
    // It may have given up by itself, or be about to.
    if server.exit_status().unwrap().is_none() {
        let _ = server.signal(Signal::SIGQUIT);
    }
    let ended = async || {
        ensure!(server.exit_status()?.is_some(), "it runs");
        Ok(())
    };
    wait_until("the server to end", SOON, ended).await.unwrap();
    server.start_again().unwrap();
    site.postgres.ready().await.unwrap();
    site.until_served().await;
    readers.stop().await.assert_in_time();
    let mut writer = self::writer(&site.database).await;
    let again = wait_until("a load", Duration::from_secs(20), async || {
        Ok(load_much(&mut writer).await?)
    });
    again.await.unwrap();
}

//! Full disks of PostgreSQL: the data's fails loads only, the write-ahead log's stops the server.

use nix::sys::signal::Signal;

use anyhow::ensure;
use water_database::writer::{History, LoadError};
use water_domain::Fault;
use water_harness::{Disks, Postgres, wait_until};
use water_kit::{Loader, Row, SOON, batch, day, load, row};

use super::site::Site;

async fn site() -> (Disks, Site) {
    let sizes = [("data", 160 << 20), ("wal", 96 << 20)];
    let disks = Disks::mount(&sizes).await.unwrap();
    let site = Site::on(Postgres::start_on(&disks).await.unwrap()).await;
    (disks, site)
}

/// Parts of a load that fits into no segment of the write-ahead log, each of which has 16 MiB.
const MORE_THAN_A_SEGMENT: u64 = 20;

/// Loads audits, which no reader here requests: about 1 MB a part.
async fn load_parts(loader: &mut Loader, parts: u64) -> Result<(), LoadError> {
    let company = &*"Eaux ".repeat(50).leak();
    let mut staging = loader.stage(History::Audits).await?;
    for part in 0..parts {
        let numbers = part * 3_000..(part + 1) * 3_000;
        let rows: Vec<Row> = numbers.map(|id| row(id, 0).company(company)).collect();
        staging.push(batch(&rows, 2 + part * 3_000)).await?;
    }
    staging.finish(day(182), &load()).await.map(drop)
}

#[tokio::test]
async fn fault_28_a_full_data_disk_fails_loads_and_no_read() {
    let (disks, site) = site().await;
    let readers = site.readers().await;
    let mut loader = site.database.writer().await;
    disks.fill("data").unwrap();
    match load_parts(&mut loader, 2).await {
        Err(LoadError::Database(error)) => assert!(error.is_transient(), "{error:?}"),
        other => panic!("a load on a full disk: {other:?}"),
    }
    site.until_served().await;
    disks.free("data").unwrap();
    load_parts(&mut loader, 2).await.unwrap();
    readers.stop().await.assert_uninterrupted();
}

#[tokio::test]
async fn fault_28_a_full_disk_of_the_log_stops_the_server_until_there_is_space_and_it_is_restarted()
{
    let (disks, site) = site().await;
    let readers = site.readers().await;
    let mut loader = site.database.writer().await;
    disks.fill("wal").unwrap();
    let failed = load_parts(&mut loader, MORE_THAN_A_SEGMENT).await;
    failed.unwrap_err();
    site.until_refused().await;
    disks.free("wal").unwrap();
    let server = site.database.server.process();
    // The server may have stopped by itself, or be about to.
    if server.exit_status().unwrap().is_none() {
        let _ = server.signal(Signal::SIGQUIT);
    }
    let ended = async || {
        ensure!(server.exit_status()?.is_some(), "it runs");
        Ok(())
    };
    wait_until("the server to end", SOON, ended).await.unwrap();
    site.database.server.start_again().await.unwrap();
    site.until_served().await;
    readers.stop().await.assert_in_time();
    let mut loader = site.database.writer().await;
    let again = async || Ok(load_parts(&mut loader, 2).await?);
    wait_until("a load", SOON, again).await.unwrap();
}

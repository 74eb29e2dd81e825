//! Tokens and cursors after the database went back to an earlier state: restored from a dump, recovered to a point in time, or a
//! promoted replica.

use std::process::Stdio;
use std::sync::Arc;

use anyhow::ensure;
use water_database::writer::History;
use water_harness::wait_until;
use water_kit::{Database, Loader, Running, SOON, problem, row, rows};

use crate::bulk::{ids, walk};
use crate::changes::since;
use crate::replica::Site;
use crate::{ANALYSES, bulk, link, start, token};

async fn service_on(database: &Database) -> Running {
    start(&database.reader_url()).ready().await
}

async fn add(loader: &mut Loader, id: &str) {
    let added = [row(id, 9_000)];
    loader.history(History::Analyses, &added).await;
}

/// The ways on from a page of a walk.
struct Walk {
    /// Target of the changes since.
    changes: String,
    /// Target of the next page.
    next: String,
}

async fn begin(service: &Running) -> Walk {
    begin_at(service, &format!("{ANALYSES}?limit=1")).await
}

async fn begin_at(service: &Running, target: &str) -> Walk {
    let page = bulk(service, target, "csv").await;
    Walk {
        changes: since(&token(&page)),
        next: link(&page, "next").unwrap(),
    }
}

/// Checks that neither the token nor the cursor of a walk is good any more.
async fn check_expired(service: &Running, walk: &Walk) {
    for target in [&walk.changes, &walk.next] {
        let answer = bulk(service, target, "csv").await;
        let (status, code, _) = problem(&answer);
        assert_eq!(
            (status, code.as_str()),
            (400, Some("cursor_expired")),
            "{target}"
        );
    }
}

/// Checks that a walk goes on, and that its changes are the newest row.
async fn check_goes_on(service: &Running, walk: &Walk, newest: &str) {
    assert_eq!(ids(&bulk(service, &walk.changes, "csv").await), [newest]);
    assert_eq!(ids(&bulk(service, &walk.next, "csv").await).len(), 1);
}

/// A walk from before the restored state goes on; one of a lost load does not, before and after another load gets
/// its number.
async fn only_what_was_lost_has_expired(restored: &Database, kept: &Walk, lost: &Walk) {
    let service = service_on(restored).await;
    check_expired(&service, lost).await;
    add(&mut restored.writer().await, "r-10").await;
    check_expired(&service, lost).await;
    check_goes_on(&service, kept, "r-10").await;
}

fn dump(database: &Database) -> Vec<u8> {
    let mut dump = database.server.command("pg_dump");
    let dump = dump
        .arg(database.url_as("postgres"))
        .stderr(Stdio::inherit());
    let dump = dump.output().unwrap();
    assert!(dump.status.success());
    dump.stdout
}

/// Restores a dump of one database into another of the same server.
fn restore(dump: &[u8], database: &Database) -> Database {
    let name = format!("{}_restored", database.name());
    database.sql(&format!("CREATE DATABASE {name} OWNER water_owner"));
    let restored = Database::existing(Arc::clone(&database.server), &name);
    restored
        .server
        .psql(&name, std::str::from_utf8(dump).unwrap(), &[])
        .unwrap();
    restored
}

#[tokio::test]
async fn a_restored_dump_expires_the_tokens_of_loads_that_it_lacks() {
    let database = Database::new().await;
    let service = service_on(&database).await;
    let mut loader = database.writer().await;
    loader.history(History::Analyses, &rows(3)).await;
    let kept = begin(&service).await;
    let dump = dump(&database);
    add(&mut loader, "r-9").await;
    let lost = begin(&service).await;
    let restored = restore(&dump, &database);
    only_what_was_lost_has_expired(&restored, &kept, &lost).await;
}

#[tokio::test]
async fn a_restored_dump_expires_walks_that_began_before_a_load_that_it_lacks_and_met_it() {
    let database = Database::new().await;
    let service = service_on(&database).await;
    let mut loader = database.writer().await;
    let nothing = token(&bulk(&service, ANALYSES, "csv").await);
    loader.history(History::Analyses, &rows(5)).await;
    let all = begin(&service).await;
    let changes = begin_at(&service, &format!("{}&limit=1", since(&nothing))).await;
    let dump = dump(&database);
    // Later pages of all rows have both, those of the changes leave out the one that they would have had.
    let lost = [row("r0001", 9_000), row("r0009", 9_000)];
    loader.history(History::Analyses, &lost).await;
    let (mut met, mut lost) = (Vec::new(), Vec::new());
    for begun in [&all, &changes] {
        let pages = walk(&service, &begun.next, "csv").await;
        met.push(pages.iter().flat_map(ids).collect::<Vec<_>>());
        lost.push(Walk {
            changes: since(&token(pages.last().unwrap())),
            next: link(&pages[0], "next").unwrap(),
        });
    }
    let expected = [
        vec!["r0001", "r0002", "r0003", "r0004", "r0009"],
        vec!["r0002", "r0003", "r0004"],
    ];
    assert_eq!(met, expected);
    for walk in &lost {
        assert_eq!(bulk(&service, &walk.changes, "csv").await.status, 200);
        assert_eq!(bulk(&service, &walk.next, "csv").await.status, 200);
    }

    let restored = restore(&dump, &database);
    let service = service_on(&restored).await;
    for walk in &lost {
        check_expired(&service, walk).await;
    }
    add(&mut restored.writer().await, "r-10").await;
    for (walk, kept) in lost.iter().zip([&all, &changes]) {
        check_expired(&service, walk).await;
        check_goes_on(&service, kept, "r-10").await;
    }
}

#[tokio::test]
async fn a_recovery_to_a_point_in_time_expires_the_tokens_of_later_loads() {
    let database = Database::alone().await;
    let service = service_on(&database).await;
    let mut loader = database.writer().await;
    loader.history(History::Analyses, &rows(3)).await;
    let backup = database.server.base_backup().unwrap();
    add(&mut loader, "r-8").await;
    let kept = begin(&service).await;
    database.server.name_moment("before").unwrap();
    add(&mut loader, "r-9").await;
    let lost = begin(&service).await;
    let recovered = database.server.recover(backup, "before").await.unwrap();
    let recovered = Database::existing(Arc::new(recovered), database.name());
    only_what_was_lost_has_expired(&recovered, &kept, &lost).await;
}

#[tokio::test]
async fn a_new_epoch_expires_every_token() {
    let database = Database::new().await;
    let service = service_on(&database).await;
    let mut loader = database.writer().await;
    loader.history(History::Analyses, &rows(3)).await;
    let earlier = begin(&service).await;
    let begun = loader.begin_epoch().await.unwrap();
    assert_eq!(begun[2..], [("analyses", 2), ("audits", 1)]);
    check_expired(&service, &earlier).await;
    let later = begin(&service).await;
    add(&mut loader, "r-9").await;
    check_goes_on(&service, &later, "r-9").await;
}

/// Promotes the replica, and returns its database.
fn promote(site: Site) -> Database {
    let promoted = Database::existing(site.replica, site.database.name());
    assert_eq!(promoted.sql("SELECT pg_promote()"), "t");
    promoted
}

#[tokio::test]
async fn a_promoted_replica_that_lost_a_load_expires_its_tokens() {
    let mut site = Site::start().await;
    let service = service_on(&site.database).await;
    let kept = begin(&service).await;
    let disconnected = "ALTER SYSTEM SET primary_conninfo = ''; SELECT pg_reload_conf()";
    site.replica.sql("postgres", disconnected).unwrap();
    wait_until("the end of the replication", SOON, async || {
        let receivers = "SELECT count(*) FROM pg_stat_wal_receiver";
        ensure!(site.replica.sql("postgres", receivers)? == "0");
        Ok(())
    })
    .await
    .unwrap();
    add(&mut site.loader, "r-9").await;
    let lost = begin(&service).await;
    site.database.server.kill().await.unwrap();
    only_what_was_lost_has_expired(&promote(site), &kept, &lost).await;
}

#[tokio::test]
async fn a_promoted_replica_that_lost_nothing_expires_no_token() {
    let mut site = Site::start().await;
    let service = service_on(&site.database).await;
    add(&mut site.loader, "r-9").await;
    let latest = begin(&service).await;
    site.caught_up().await;
    site.database.server.kill().await.unwrap();
    let promoted = promote(site);
    add(&mut promoted.writer().await, "r-10").await;
    let service = service_on(&promoted).await;
    check_goes_on(&service, &latest, "r-10").await;
}

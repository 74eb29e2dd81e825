//! Redis goes back to an earlier state on the same server. Nothing in Redis shows it: only who has seen the later
//! state can tell.

use water_keystore::{Position, WriteError, Writer};

use crate::site::*;

/// A directory that has lost its last change, its writer, and the position at which it was seen.
async fn went_back(site: &Site) -> (Writer, Position) {
    let writer = site.ready().await;
    let seen = site.publish(&writer, hash(1)).await;
    site.change_meta("meta.seq = meta.seq - 1").await;
    (writer.after(seen), seen)
}

async fn needs_rebuild(site: &Site) -> bool {
    site.directory().observe().await.unwrap().needs_rebuild()
}

/// The change was refused, and whoever comes next rebuilds.
async fn is_refused<T>(site: &Site, outcome: Result<T, WriteError>) {
    assert!(matches!(outcome.err(), Some(WriteError::WentBack)));
    assert!(needs_rebuild(site).await);
}

#[tokio::test]
async fn no_declaration_is_written_to_a_directory_that_went_back() {
    let site = Site::new().await;
    let (writer, _) = went_back(&site).await;
    let declared = site.declare(&writer, holding(hash(2))).await;
    is_refused(&site, declared).await;
    assert!(
        !site
            .directory()
            .stored()
            .await
            .unwrap()
            .contains_key(&hash(2))
    );
    site.claim().await;
    assert!(needs_rebuild(&site).await);
}

#[tokio::test]
async fn no_plan_is_written_to_it_and_nothing_forgotten() {
    let site = Site::new().await;
    let (writer, _) = went_back(&site).await;
    let plans = [plan("Free", Some(limits(1, 1)))];
    is_refused(&site, writer.set_plans(&plans).await).await;
    let (writer, _) = went_back(&site).await;
    is_refused(&site, writer.forget_old().await).await;
}

#[tokio::test]
async fn a_directory_that_stands_where_it_was_seen_or_later_is_written() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let seen = site.publish(&writer, hash(1)).await;
    let writer = writer.after(seen);
    let later = site.publish(&writer, hash(2)).await;
    assert!(later > seen);
    site.publish(&writer, hash(3)).await;
    writer.rebuild(|| contents([hash(1)])).await.unwrap();
    site.publish(&writer, hash(4)).await;
}

#[tokio::test]
async fn a_doubt_marks_a_directory_that_went_back_and_no_other() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let seen = site.publish(&writer, hash(1)).await;
    let directory = site.directory();
    directory.doubt(UID, writer.term(), seen).await.unwrap();
    directory
        .doubt("another", writer.term(), seen)
        .await
        .unwrap();
    assert!(!needs_rebuild(&site).await);
    let (writer, seen) = went_back(&site).await;
    directory
        .doubt("another", writer.term(), seen)
        .await
        .unwrap();
    assert!(!needs_rebuild(&site).await);
    directory.doubt(UID, writer.term(), seen).await.unwrap();
    assert!(needs_rebuild(&site).await);
}

#[tokio::test]
async fn what_a_later_leader_has_claimed_is_not_doubted() {
    let site = Site::new().await;
    let (writer, seen) = went_back(&site).await;
    site.claim().await;
    site.directory()
        .doubt(UID, writer.term(), seen)
        .await
        .unwrap();
    assert!(!needs_rebuild(&site).await);
}

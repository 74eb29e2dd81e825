//! Redis goes back to an earlier state on the same server. Nothing in Redis shows it: only a client that saw the later
//! state can detect it.

use water_keystore::{Position, WriteError, Writer};

use crate::site::*;

/// A directory that has lost its last change, its writer, and the position at which it was seen.
async fn went_back(site: &Site) -> (Writer, Position) {
    let writer = site.ready().await;
    let seen = site.publish(&writer, hash(1)).await;
    site.change_meta("meta.seq = meta.seq - 1").await;
    (writer.after(seen), seen)
}

#[tokio::test]
async fn nothing_is_written_to_a_directory_that_went_back_and_whoever_comes_next_rebuilds() {
    let site = Site::new().await;
    let plans = [plan("Free", Some(limits(1, 1)))];
    for change in ["declare", "set plans", "forget"] {
        let (writer, _) = went_back(&site).await;
        let refused = match change {
            "declare" => site.declare(&writer, holding(hash(2))).await.err(),
            "set plans" => writer.set_plans(&plans).await.err(),
            _ => writer.forget_old().await.err(),
        };
        assert!(matches!(refused, Some(WriteError::WentBack)), "{change}");
        assert!(site.needs_rebuild().await, "{change}");
        assert!(!site.stored().await.contains_key(&hash(2)));
        let plans = site.read(async |directory| directory.plans().await);
        assert_eq!(plans.await, []);
        site.claim().await;
        assert!(site.needs_rebuild().await, "{change}");
    }
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
    let directory = site.directory();
    let doubt = async |owner, term, seen| {
        let doubt = async || directory.doubt(owner, term, seen).await;
        patiently(doubt).await.unwrap();
        site.needs_rebuild().await
    };
    let writer = site.ready().await;
    let seen = site.publish(&writer, hash(1)).await;
    assert!(!doubt(UID, writer.term(), seen).await);
    let (writer, seen) = went_back(&site).await;
    assert!(!doubt("another", writer.term(), seen).await);
    let later = site.claim().await;
    assert!(
        !doubt(UID, writer.term(), seen).await,
        "a later leader's to judge"
    );
    assert!(doubt(UID, later.term(), seen).await);
}

//! Effects on a gate of each thing that the feed and `meta` can say, without a server.

use super::*;
use crate::directory::meta::Counts;
use crate::directory::snapshot::LoadedShard;
use water_domain::KeyHash;
use water_domain::key::Shard;

fn copy_at(seq: u64) -> Snapshot {
    let shards = Shard::all().map(|_| LoadedShard::new(Vec::new())).collect();
    Snapshot::new(7, seq, shards, Vec::new())
}

fn seen(seq: u64) -> Observation {
    let meta = Meta {
        schema: 1,
        owner: "uid".into(),
        api: "api".into(),
        term: 1,
        generation: 7,
        complete: true,
        counts: Counts::default(),
        seq,
        replid: "server".into(),
    };
    Observation {
        meta: Some(meta),
        replid: "server".into(),
        is_replica: false,
        is_unguarded: false,
    }
}

fn put(seq: u64) -> FeedEntry {
    let hash = KeyHash::from_bytes([seq as u8; 32]);
    FeedEntry {
        id: format!("{seq}-0"),
        seq,
        event: Event::Put(hash, vec![0]),
    }
}

fn followed(from: u64, meta: u64, entries: &[u64]) -> Result<Option<u64>, FeedFailure> {
    let entries = entries.iter().map(|seq| put(*seq)).collect();
    let round = FeedRead {
        seen: seen(meta),
        entries,
    };
    follow(&copy_at(from), round).map(|next| next.map(|copy| copy.seq))
}

#[test]
fn changes_without_a_gap_are_applied() {
    assert!(matches!(followed(5, 5, &[]), Ok(None)));
    assert!(matches!(followed(5, 7, &[6, 7]), Ok(Some(7))));
}

#[test]
fn meta_was_read_first_so_the_feed_may_be_ahead_of_it() {
    assert!(matches!(followed(5, 5, &[6]), Ok(Some(6))));
}

#[test]
fn a_gap_a_repetition_and_a_step_back_are_not_applied() {
    for entries in [&[7][..], &[6, 8], &[5], &[6, 6], &[4]] {
        assert!(
            matches!(followed(5, 5, entries), Err(FeedFailure::Gap { .. })),
            "{entries:?}"
        );
    }
    assert!(matches!(
        followed(5, 4, &[]),
        Err(FeedFailure::Gap { from: 5, to: 4 })
    ));
}

#[test]
fn meta_ahead_of_the_feed_means_that_entries_are_lost() {
    assert!(matches!(
        followed(5, 6, &[]),
        Err(FeedFailure::Behind { feed: 5, meta: 6 })
    ));
}

#[test]
fn a_directory_that_is_missing_unfinished_unverified_rebuilt_or_of_another_schema_is_not_followed()
{
    let with = |change: fn(&mut Meta)| {
        let mut seen = seen(5);
        change(seen.meta.as_mut().unwrap());
        follow(
            &copy_at(5),
            FeedRead {
                seen,
                entries: Vec::new(),
            },
        )
        .unwrap_err()
    };
    let later = with(|meta| meta.schema = 2);
    assert_eq!(
        later.to_string(),
        "the key directory has schema 2, and this version reads 1"
    );
    assert!(matches!(
        with(|meta| meta.complete = false),
        FeedFailure::Incomplete
    ));
    assert!(matches!(
        with(|meta| meta.replid = "other".into()),
        FeedFailure::Unverified
    ));
    assert!(matches!(
        with(|meta| meta.generation = 8),
        FeedFailure::Rebuilt
    ));
    let nothing = Observation {
        meta: None,
        ..seen(5)
    };
    let round = FeedRead {
        seen: nothing,
        entries: Vec::new(),
    };
    assert!(matches!(
        follow(&copy_at(5), round),
        Err(FeedFailure::Missing)
    ));
}

#[test]
fn undecodable_records_are_counted_while_they_are_there() {
    let mut copy = copy_at(0);
    let hash = KeyHash::from_bytes([1; 32]);
    copy.apply(1, Event::Put(hash, vec![0]));
    assert_eq!(
        (copy.keys, copy.undecodable, copy.record(&hash)),
        (1, 1, None)
    );
    copy.apply(2, Event::Delete(hash));
    assert_eq!((copy.keys, copy.undecodable), (0, 0));
}

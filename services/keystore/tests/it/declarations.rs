//! What a declaration makes of an owner's keys, and what it leaves alone.

use std::collections::{BTreeMap, BTreeSet};

use water_keystore::{Declaration, HashRefusal, Origin, WriteError};

use crate::site::*;

#[tokio::test]
async fn a_key_that_comes_and_one_that_goes_each_take_the_next_seq() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let first = site.publish(&writer, hash(1)).await;
    let second = site.revoke(&writer, hash(1)).await;
    assert_eq!(second.seq, first.seq + 1);
    let meta = site.directory().observe().await.unwrap().meta.unwrap();
    assert_eq!((meta.seq, meta.generation), (second.seq, second.generation));
    let counts = meta.counts;
    assert_eq!(
        (counts.records, counts.owners, counts.held, counts.revoked),
        (0, 0, 1, 1)
    );
}

#[tokio::test]
async fn what_stands_already_is_not_written_again_and_keeps_its_number() {
    let site = Site::new().await;
    let writer = site.ready().await;
    for declaration in [holding(hash(1)), revoking(hash(1)), withdrawing(hash(2))] {
        let first = site.declare(&writer, declaration.clone()).await.unwrap();
        let again = site.declare(&writer, declaration).await.unwrap();
        assert_eq!(again, first);
    }
}

#[tokio::test]
async fn a_declaration_leaves_exactly_what_it_names() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let owner = owner_named("acme-prod");
    let with = |numbers: &[u32]| {
        let records = numbers.iter().map(|number| (hash(*number), record()));
        declaration(owner.clone(), records)
    };
    site.write(&writer, with(&[1, 2, 3])).await;
    let last = site.declare(&writer, with(&[3, 4])).await.unwrap();

    let hashes = BTreeSet::from([hash(3), hash(4)]);
    let held = site.owner_snapshot(&owner, &[]).await;
    assert_eq!(held.number, last.number);
    assert_eq!(held.records.into_keys().collect::<BTreeSet<_>>(), hashes);
    assert_eq!(site.directory().counts().await.unwrap().held, 1);
    let stored = site.directory().stored().await.unwrap();
    assert_eq!(stored.into_keys().collect::<BTreeSet<_>>(), hashes);
    let snapshot = site
        .owner_snapshot(&owner, &[hash(1), hash(2), hash(9)])
        .await;
    assert_eq!(
        snapshot.records.into_keys().collect::<BTreeSet<_>>(),
        hashes
    );
    let barred = snapshot.barred.into_keys().collect::<Vec<_>>();
    assert_eq!(
        barred,
        BTreeSet::from([hash(1), hash(2)])
            .into_iter()
            .collect::<Vec<_>>()
    );
    assert_eq!(snapshot.position, Some(last.applied));
}

#[tokio::test]
async fn a_declaration_that_was_decided_before_another_one_changes_nothing() {
    let site = Site::new().await;
    let writer = site.ready().await;
    // Both were decided on an empty directory; the first is delayed on its way.
    let delayed = holding(hash(1));
    let first = writer.declare(&revoking(hash(1))).await.unwrap();
    let refused = writer.declare(&delayed).await.unwrap_err();
    assert!(matches!(refused, WriteError::Outdated { number } if number == first.number));

    let withdrawn = Declaration {
        number: first.number,
        ..withdrawing(hash(1))
    };
    let second = writer.declare(&withdrawn).await.unwrap();
    assert_eq!(second.number, first.number, "nothing was left to withdraw");
    let (stored, snapshot) = (
        site.directory().stored().await.unwrap(),
        site.owner_snapshot(&owner_of(hash(1)), &[]).await,
    );
    assert!(stored.is_empty() && snapshot.number == first.number);
}

#[tokio::test]
async fn a_number_that_was_used_once_never_comes_back() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let published = site.declare(&writer, holding(hash(1))).await.unwrap();
    let withdrawn = site.declare(&writer, withdrawing(hash(1))).await.unwrap();
    writer.rebuild(|| contents([hash(1)])).await.unwrap();
    let rebuilt = site.owner_snapshot(&owner_of(hash(1)), &[]).await.number;
    assert!(published.number < withdrawn.number && withdrawn.number < rebuilt);
    for number in [0, published.number, withdrawn.number] {
        let delayed = Declaration {
            number,
            ..revoking(hash(1))
        };
        let refused = writer.declare(&delayed).await.unwrap_err();
        assert!(matches!(refused, WriteError::Outdated { number } if number == rebuilt));
    }
}

#[tokio::test]
async fn a_hash_of_another_owner_is_neither_taken_nor_removed_nor_revoked() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let intruder = owner_named("intruder");
    let theirs = Declaration {
        revoked: BTreeSet::from([hash(2)]),
        ..declaration(
            intruder.clone(),
            [(hash(1), suspended()), (hash(3), record())],
        )
    };
    let declared = site.declare(&writer, theirs).await.unwrap();
    assert_eq!(
        declared.refused,
        BTreeMap::from([(hash(1), HashRefusal::Taken)])
    );
    for removal in [revoking(hash(1)), withdrawing(hash(1))] {
        let removal = Declaration {
            owner: intruder.clone(),
            ..removal
        };
        site.write(&writer, removal).await;
    }

    let stored = site.directory().stored().await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[&hash(1)].owner, Some(owner_of(hash(1))));
    assert_eq!(stored[&hash(1)].record, Some(record()));
    let snapshot = site
        .owner_snapshot(&intruder, &[hash(1), hash(2), hash(3)])
        .await;
    assert_eq!(snapshot.taken, [hash(1)].into());
    assert!(
        snapshot
            .barred
            .into_keys()
            .eq(BTreeSet::from([hash(2), hash(3)]))
    );
    site.publish(&writer, hash(1)).await;
}

#[tokio::test]
async fn a_loser_takes_over_once_the_winner_is_gone() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let brought = |name: &str, account: &str, records: &[u32]| Declaration {
        origin: Origin::Brought(account.parse().unwrap()),
        ..declaration(
            owner_named(name),
            records.iter().map(|number| (hash(*number), record())),
        )
    };
    site.write(&writer, brought("winner", "acme", &[1])).await;
    let loser = brought("loser", "other", &[1]);
    let refused = site.declare(&writer, loser.clone()).await.unwrap().refused;
    assert_eq!(refused[&hash(1)], HashRefusal::Taken);
    let last = Declaration {
        is_last: true,
        ..brought("winner", "acme", &[])
    };
    site.write(&writer, last).await;
    site.write(&writer, loser).await;
    let again = site
        .declare(&writer, brought("third", "acme", &[1]))
        .await
        .unwrap();
    assert_eq!(again.refused[&hash(1)], HashRefusal::Taken);
}

#[tokio::test]
async fn a_replaced_hash_retires_although_its_successor_is_refused() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    site.revoke(&writer, hash(2)).await;
    let owner = owner_named("acme-prod");
    site.write(
        &writer,
        declaration(owner.clone(), [(hash(3), record()), (hash(4), record())]),
    )
    .await;
    let successors = [
        (hash(1), record()),
        (hash(2), record()),
        (hash(4), suspended()),
    ];
    let declared = site
        .declare(&writer, declaration(owner, successors))
        .await
        .unwrap();
    assert_eq!(declared.refused[&hash(1)], HashRefusal::Taken);
    assert!(matches!(
        declared.refused[&hash(2)],
        HashRefusal::Revoked { .. }
    ));
    assert_eq!(declared.refused.len(), 2);
    let stored = site.directory().stored().await.unwrap();
    assert!(!stored.contains_key(&hash(3)));
    assert_eq!(stored[&hash(4)].record, Some(suspended()));
}

#[tokio::test]
async fn the_last_declaration_revokes_everything_and_no_other_follows() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let first = site.declare(&writer, holding(hash(1))).await.unwrap();
    let delayed = Declaration {
        number: first.number,
        ..holding(hash(1))
    };
    let last = Declaration {
        revoked: BTreeSet::from([hash(2)]),
        is_last: true,
        ..holding(hash(1))
    };
    site.declare(&writer, last).await.unwrap();
    for number in [0, first.number] {
        let refused = writer
            .declare(&Declaration {
                number,
                ..delayed.clone()
            })
            .await;
        assert!(matches!(refused, Err(WriteError::OwnerGone)), "{refused:?}");
    }
    let snapshot = site
        .owner_snapshot(&owner_of(hash(1)), &[hash(1), hash(2)])
        .await;
    assert!(snapshot.is_gone && snapshot.records.is_empty());
    assert_eq!(snapshot.barred.len(), 2);
    let rebuilt = writer
        .rebuild(|| contents([hash(1), hash(3)]))
        .await
        .unwrap();
    assert_eq!(rebuilt.left_out, [hash(1)]);
    assert_eq!(
        rebuilt.meta.counts,
        site.directory().counts().await.unwrap()
    );
    assert_eq!(rebuilt.meta.counts.revoked, 3);
}

#[tokio::test]
async fn an_owner_that_is_gone_is_rebuilt_without_a_tombstone_of_its_hash() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let last = Declaration {
        is_last: true,
        ..declaration(owner_of(hash(1)), [])
    };
    site.write(&writer, last).await;
    let rebuilt = writer.rebuild(|| contents([hash(1)])).await.unwrap();
    assert_eq!(rebuilt.left_out, [hash(1)]);
    assert_eq!(site.directory().counts().await.unwrap().held, 0);
}

#[tokio::test]
async fn a_declaration_that_meets_an_eviction_is_refused_until_the_directory_is_rebuilt() {
    let site = Site::new().await;
    let (held, revoked) = (hash(1), hash(2));
    let instance = &site.instance;
    let uid = owner_of(held).uid;
    let index = held_shard(&uid);
    let evicted = [
        instance.records(held.shard()),
        instance.owners(held.shard()),
        instance.held(index),
        instance.revoked(),
    ];
    for key in evicted {
        let writer = site.claim().await;
        writer.rebuild(|| contents([held])).await.unwrap();
        site.revoke(&writer, revoked).await;
        site.vandalise(redis::cmd("DEL").arg(&key)).await;
        let counts = site.directory().counts().await.unwrap();
        let meta = site.directory().observe().await.unwrap().meta.unwrap();
        assert_ne!(counts, meta.counts, "{key}");
        let refused = site.declare(&writer, holding(held)).await.unwrap_err();
        assert!(
            matches!(refused, WriteError::Interrupted),
            "{key}: {refused}"
        );
        assert!(site.directory().observe().await.unwrap().needs_rebuild());
        let rebuilt = writer.rebuild(|| contents([held])).await.unwrap();
        assert_eq!(
            rebuilt.meta.counts,
            site.directory().counts().await.unwrap()
        );
        site.publish(&writer, held).await;
    }
}

#[tokio::test]
async fn a_declaration_of_more_keys_than_a_script_may_touch_is_refused() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let many = |count| {
        declaration(
            owner_named("many"),
            (0..count).map(|number| (hash(number), record())),
        )
    };
    let refused = site.declare(&writer, many(499)).await;
    assert!(
        matches!(refused, Err(WriteError::TooManyHashes)),
        "{refused:?}"
    );
    site.write(&writer, many(498)).await;
    assert_eq!(site.directory().counts().await.unwrap().records, 498);
}

#[tokio::test]
async fn an_undecodable_record_is_seen_and_replaced() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let mut spoil = redis::cmd("HSET");
    spoil
        .arg(site.instance.records(hash(1).shard()))
        .arg(hash(1).as_bytes())
        .arg("of a later version");
    site.vandalise(&mut spoil).await;
    let seen = async || site.owner_snapshot(&owner_of(hash(1)), &[]).await.records;
    assert_eq!(seen().await, BTreeMap::from([(hash(1), None)]));
    site.publish(&writer, hash(1)).await;
    assert_eq!(seen().await, BTreeMap::from([(hash(1), Some(record()))]));
}

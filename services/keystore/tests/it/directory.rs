//! Claims, changes and plans, as the operator makes them.

use water_keystore::{Change, WriteError};

use crate::site::*;

#[tokio::test]
async fn the_first_claim_makes_a_directory_that_is_not_complete() {
    let site = Site::new().await;
    let (writer, meta) = site.directory().claim(UID, None).await.unwrap();
    assert_eq!((meta.term, meta.owner.as_str()), (writer.term(), UID));
    assert!(site.directory().observe().await.unwrap().needs_rebuild());
}

#[tokio::test]
async fn a_later_claim_fences_the_earlier_writer() {
    let site = Site::new().await;
    let earlier = site.ready().await;
    let (later, _) = site.directory().claim(UID, None).await.unwrap();
    assert!(later.term() > earlier.term());
    let refused = earlier.apply(&[put(hash(1))]).await.unwrap_err();
    assert!(matches!(refused, WriteError::Fenced { stored } if stored == later.term()));
    later.apply(&[put(hash(1))]).await.unwrap();
}

#[tokio::test]
async fn terms_grow_even_when_redis_has_lost_the_stored_one() {
    let site = Site::new().await;
    let before = site.ready().await;
    let _: () = redis::cmd("DEL")
        .arg(site.instance.meta())
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    assert!(matches!(
        before.apply(&[put(hash(1))]).await,
        Err(WriteError::Wiped)
    ));
    let (after, _) = site.directory().claim(UID, None).await.unwrap();
    assert!(after.term() > before.term());
}

#[tokio::test]
async fn another_namespaces_directory_is_left_alone_until_its_uid_is_named() {
    let site = Site::new().await;
    site.ready().await.apply(&[put(hash(1))]).await.unwrap();
    let refused = site.directory().claim("other", None).await.unwrap_err();
    assert!(matches!(refused, WriteError::Owned { uid } if uid == UID));
    assert!(
        site.directory()
            .claim("other", Some("third"))
            .await
            .is_err()
    );

    let (_, meta) = site.directory().claim("other", Some(UID)).await.unwrap();
    assert_eq!((meta.owner.as_str(), meta.complete), ("other", false));
}

#[tokio::test]
async fn a_put_and_a_removal_each_take_the_next_seq() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let first = writer.apply(&[put(hash(1))]).await.unwrap();
    let second = writer.apply(&[revoke(hash(1))]).await.unwrap();
    assert_eq!(second.seq, first.seq + 1);
    let meta = site.directory().observe().await.unwrap().meta.unwrap();
    assert_eq!(
        (meta.seq, meta.count, meta.generation),
        (second.seq, 0, second.generation)
    );
}

#[tokio::test]
async fn what_stands_already_is_not_written_again() {
    let writer = Site::new().await.ready().await;
    let first = writer.apply(&[put(hash(1))]).await.unwrap();
    assert_eq!(writer.apply(&[put(hash(1))]).await.unwrap(), first);
    let removed = writer.apply(&[revoke(hash(1))]).await.unwrap();
    assert_eq!(writer.apply(&[revoke(hash(1))]).await.unwrap(), removed);
}

#[tokio::test]
async fn a_revoked_hash_does_not_come_back_unless_it_is_reinstated() {
    let site = Site::new().await;
    let writer = site.ready().await;
    writer.apply(&[put(hash(1))]).await.unwrap();
    writer.apply(&[revoke(hash(1))]).await.unwrap();
    let refused = writer.apply(&[put(hash(1))]).await.unwrap_err();
    assert!(matches!(refused, WriteError::Revoked(revoked) if revoked == hash(1)));

    let again = Change::Put {
        hash: hash(1),
        record: record(),
        owner: owner(),
        reinstate: true,
    };
    writer.apply(&[again]).await.unwrap();
    assert!(
        site.directory()
            .stored()
            .await
            .unwrap()
            .contains_key(&hash(1))
    );
}

#[tokio::test]
async fn a_key_deleted_while_its_record_was_absent_does_not_come_back_either() {
    let writer = Site::new().await.ready().await;
    writer.apply(&[revoke(hash(1))]).await.unwrap();
    assert!(matches!(
        writer.apply(&[put(hash(1))]).await,
        Err(WriteError::Revoked(_))
    ));
}

#[tokio::test]
async fn a_withdrawn_hash_may_come_back() {
    let writer = Site::new().await.ready().await;
    writer.apply(&[put(hash(1))]).await.unwrap();
    writer.apply(&[withdraw(hash(1))]).await.unwrap();
    writer.apply(&[put(hash(1))]).await.unwrap();
}

#[tokio::test]
async fn a_hash_of_another_owner_is_neither_replaced_nor_removed() {
    let site = Site::new().await;
    let writer = site.ready().await;
    writer.apply(&[put(hash(1))]).await.unwrap();
    let owner = owner_named("intruder");
    let theirs = Change::Put {
        hash: hash(1),
        record: record(),
        owner: owner.clone(),
        reinstate: false,
    };
    assert!(matches!(
        writer.apply(&[theirs]).await,
        Err(WriteError::Taken(_))
    ));

    let removal = water_keystore::Removal::Revoke;
    writer
        .apply(&[Change::Remove {
            hash: hash(1),
            owner,
            removal,
        }])
        .await
        .unwrap();
    let stored = site.directory().stored().await.unwrap();
    assert_eq!(stored[&hash(1)].owner, Some(crate::site::owner()));
}

#[tokio::test]
async fn of_several_changes_all_are_written_or_none() {
    let site = Site::new().await;
    let writer = site.ready().await;
    writer.apply(&[put(hash(1)), put(hash(2))]).await.unwrap();
    writer.apply(&[revoke(hash(3))]).await.unwrap();
    let refused = writer
        .apply(&[revoke(hash(1)), put(hash(4)), put(hash(3))])
        .await;
    assert!(matches!(refused, Err(WriteError::Revoked(_))));
    let stored = site.directory().stored().await.unwrap();
    let mut hashes: Vec<_> = stored.into_keys().collect();
    hashes.sort();
    let mut wanted = vec![hash(1), hash(2)];
    wanted.sort();
    assert_eq!(hashes, wanted);
}

#[tokio::test]
async fn stored_records_read_back_with_their_owners() {
    let site = Site::new().await;
    let writer = site.ready().await;
    writer
        .apply(&[put_record(hash(1), suspended())])
        .await
        .unwrap();
    let stored = site.directory().stored().await.unwrap();
    assert_eq!(stored[&hash(1)].record, Ok(suspended()));
    assert_eq!(stored[&hash(1)].owner, Some(owner()));
    assert_eq!(site.directory().count().await.unwrap(), 1);
}

#[tokio::test]
async fn plans_are_made_exactly_what_is_declared() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let declared = [
        plan("Enterprise", Some(limits(120, 50_000))),
        plan("Free", None),
    ];
    let first = writer.set_plans(&declared).await.unwrap();
    assert_eq!(writer.set_plans(&declared).await.unwrap(), first);
    let second = writer.set_plans(&declared[..1]).await.unwrap();
    assert_eq!(second.seq, first.seq + 1);

    let gate = site.complete_gate("gate-1").await;
    let view = gate.view().unwrap();
    assert_eq!(view.plan(&declared[0].name), Some(&declared[0]));
    assert_eq!(view.plan(&declared[1].name), None);
}

#[tokio::test]
async fn last_use_is_none_until_a_gate_has_told_it() {
    let site = Site::new().await;
    let used = record().key_id;
    let _: () = redis::cmd("ZADD")
        .arg(site.instance.used())
        .arg(1_800_000_000_123_i64)
        .arg(used.as_str())
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    let keys = [used, "000000000000".parse().unwrap()];
    let told = site.directory().last_used(&keys).await.unwrap();
    assert_eq!(
        told.iter()
            .map(|time| time.map(|time| time.as_millis()))
            .collect::<Vec<_>>(),
        [Some(1_800_000_000_123), None]
    );
}

#[tokio::test]
async fn a_revocation_is_forgotten_after_ninety_days_and_not_before() {
    let site = Site::new().await;
    let writer = site.ready().await;
    writer
        .apply(&[revoke(hash(1)), revoke(hash(2))])
        .await
        .unwrap();
    let age = "local then_ = redis.call('HGET', KEYS[1], ARGV[1]) - 90 * 86400000 \
        return redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', then_))";
    let _: () = redis::cmd("EVAL")
        .arg(age)
        .arg(1)
        .arg(site.instance.revoked())
        .arg(hash(1).as_bytes())
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    assert_eq!(writer.forget_old_revocations().await.unwrap(), 1);
    writer.apply(&[put(hash(1))]).await.unwrap();
    assert!(matches!(
        writer.apply(&[put(hash(2))]).await,
        Err(WriteError::Revoked(_))
    ));
}

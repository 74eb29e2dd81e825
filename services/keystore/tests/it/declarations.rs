//! Declarations that random steps do not reach: late, too large, and over data that Redis lost or cannot read. The
//! meaning of a declaration is tested against a plain model in `model.rs`.

use std::collections::BTreeMap;

use water_keystore::{Declaration, WriteError};

use crate::site::*;

#[tokio::test]
async fn a_declaration_of_any_earlier_state_changes_nothing() {
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
async fn a_declaration_that_meets_an_eviction_is_refused_until_the_directory_is_rebuilt() {
    let site = Site::new().await;
    let (held, revoked) = (hash(1), hash(2));
    let instance = &site.instance;
    let evicted = [
        instance.records(held.shard()),
        instance.owners(held.shard()),
        instance.held(held_shard(&owner_of(held).uid)),
        instance.revoked(),
    ];
    for key in evicted {
        let writer = site.claim().await;
        writer.rebuild(|| contents([held])).await.unwrap();
        site.revoke(&writer, revoked).await;
        site.vandalise(redis::cmd("DEL").arg(&key)).await;
        let counts = site.counts().await;
        let meta = site.observe().await.meta.unwrap();
        assert_ne!(counts, meta.counts, "{key}");
        let refused = site.declare(&writer, holding(held)).await.unwrap_err();
        assert!(
            matches!(refused, WriteError::Interrupted),
            "{key}: {refused}"
        );
        assert!(site.needs_rebuild().await);
        writer.rebuild(|| contents([held])).await.unwrap();
        site.publish(&writer, held).await;
    }
}

#[tokio::test]
async fn a_declaration_of_more_keys_than_a_script_may_touch_is_refused() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let many = |count| {
        let records = (0..count).map(|number| (hash(number), record()));
        declaration(owner_named("many"), records)
    };
    let refused = site.declare(&writer, many(499)).await;
    assert!(
        matches!(refused, Err(WriteError::TooManyHashes)),
        "{refused:?}"
    );
    site.write(&writer, many(498)).await;
    assert_eq!(site.counts().await.records, 498);
}

#[tokio::test]
async fn an_undecodable_record_harms_no_other_and_is_replaced() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    site.publish(&writer, hash(2)).await;
    site.spoil(hash(1)).await;
    let gate = site.complete_gate("gate-1").await;
    assert_eq!((gate.status().keys, gate.status().undecodable), (2, 1));
    assert_eq!(gate.record(hash(1)), None);
    assert_eq!(gate.record(hash(2)), Some(record()));

    let seen = async || site.owner_snapshot(&owner_of(hash(1)), &[]).await.records;
    assert_eq!(seen().await, BTreeMap::from([(hash(1), None)]));
    site.publish(&writer, hash(1)).await;
    assert_eq!(seen().await, BTreeMap::from([(hash(1), Some(record()))]));
    gate.knows(hash(1), true).await;
    assert_eq!(gate.status().undecodable, 0);
}

//! Rebuilding the directory in bulk.

use water_harness::{Redis, wait_until};
use water_keystore::{Rebuilt, WriteError};

use crate::site::*;

#[tokio::test]
async fn a_rebuild_leaves_exactly_what_is_declared_under_a_new_generation() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let before = site.publish(&writer, hash(2)).await;
    let wanted = || contents([hash(2), hash(3)]);
    let Rebuilt { meta, left_out } = writer.rebuild(wanted).await.unwrap();
    assert!(meta.generation > before.generation && meta.seq > before.seq && meta.complete);
    assert_eq!((meta.counts.records, left_out), (2, Vec::new()));
    let stored = site.directory().stored().await.unwrap();
    assert!(!stored.contains_key(&hash(1)) && stored.contains_key(&hash(3)));
}

#[tokio::test]
async fn a_rebuild_leaves_revoked_keys_out() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.revoke(&writer, hash(1)).await;
    let wanted = || contents([hash(1), hash(2)]);
    let Rebuilt { meta, left_out } = writer.rebuild(wanted).await.unwrap();
    assert_eq!((meta.counts.records, left_out), (1, vec![hash(1)]));
    assert_eq!(site.directory().counts().await.unwrap(), meta.counts);
}

#[tokio::test]
async fn of_two_entries_with_one_hash_one_is_written_and_counted() {
    let writer = Site::new().await.ready().await;
    let wanted = || contents([hash(1), hash(1)]);
    let meta = writer.rebuild(wanted).await.unwrap().meta;
    assert_eq!(meta.counts.records, 1);
}

#[tokio::test]
async fn changes_go_on_after_a_rebuild_and_are_counted() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let wanted = || contents((0..500).map(hash));
    let meta = writer.rebuild(wanted).await.unwrap().meta;
    let next = site.publish(&writer, hash(1000)).await;
    assert_eq!((next.generation, next.seq), (meta.generation, meta.seq + 1));
    let observed = site.directory().observe().await.unwrap();
    assert_eq!(
        observed.verified().map(|meta| meta.counts.records),
        Some(501)
    );
}

#[tokio::test]
async fn a_change_asked_for_during_a_rebuild_is_not_lost() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let (changed, rebuilt) = tokio::join!(
        biased;
        writer.rebuild(|| contents((0..500).map(hash))),
        async { writer.declare(&holding(hash(1000))).await },
    );
    changed.unwrap();
    rebuilt.unwrap();
    assert!(
        site.directory()
            .stored()
            .await
            .unwrap()
            .contains_key(&hash(1000))
    );
    assert_eq!(site.directory().counts().await.unwrap().records, 501);
}

#[tokio::test]
async fn a_fenced_writer_cannot_rebuild() {
    let site = Site::new().await;
    let earlier = site.ready().await;
    site.claim().await;
    let refused = earlier.rebuild(|| contents([hash(1)])).await.unwrap_err();
    assert!(matches!(refused, WriteError::Fenced { .. }));
    assert!(!site.directory().observe().await.unwrap().needs_rebuild());
}

#[tokio::test]
async fn after_a_restart_nothing_is_written_before_a_rebuild() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    site.seems_restarted().await;
    let refused = site.declare(&writer, revoking(hash(1))).await.unwrap_err();
    assert!(matches!(refused, WriteError::Unverified));
    let refused = writer.set_plans(&[plan("Free", None)]).await.unwrap_err();
    assert!(matches!(refused, WriteError::Unverified));
    writer.rebuild(|| contents([hash(1)])).await.unwrap();
    site.revoke(&writer, hash(1)).await;
}

#[tokio::test]
async fn a_directory_that_was_claimed_and_not_rebuilt_takes_no_change() {
    let site = Site::new().await;
    let writer = site.claim().await;
    let refused = site.declare(&writer, holding(hash(1))).await.unwrap_err();
    assert!(matches!(refused, WriteError::Interrupted));
}

#[tokio::test]
async fn a_rebuild_during_which_redis_restarted_is_not_complete() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let (outcome, ()) = tokio::join!(writer.rebuild(|| contents((0..10_000).map(hash))), async {
        while !seems_restarted(&site).await {}
    },);
    assert!(
        matches!(outcome, Err(WriteError::Interrupted)),
        "{outcome:?}"
    );
    assert!(site.directory().observe().await.unwrap().needs_rebuild());
}

/// Makes a rebuild that is under way look as if it had begun on another server. Returns whether
/// one is under way.
async fn seems_restarted(site: &Site) -> bool {
    let script = "local meta = cjson.decode(redis.call('GET', KEYS[1])) \
        if meta.complete then return 0 end \
        meta.replid = 'another' redis.call('SET', KEYS[1], cjson.encode(meta)) return 1";
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(1).arg(site.instance.meta());
    command.query_async(&mut site.vandal().await).await.unwrap()
}

#[tokio::test]
async fn a_wiped_directory_is_claimed_and_rebuilt_and_the_gate_goes_on() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gate = site.complete_gate("gate-1").await;
    wipe(&site).await;
    gate.doubts().await;
    assert!(gate.record(hash(1)).is_some());

    let (writer, meta) = site.directory().claim(UID, API, None).await.unwrap();
    assert!(!meta.complete);
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    gate.knows(hash(2), true).await;
    gate.knows(hash(1), false).await;
    gate.comes_to("certainty", |status| status.current).await;
}

#[tokio::test]
async fn an_old_dump_brings_no_revoked_key_back() {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    site.publish(&writer, hash(2)).await;
    redis.command(&["SAVE"]).await.unwrap();
    let gate = site.complete_gate("gate-1").await;
    site.revoke(&writer, hash(1)).await;
    gate.knows(hash(1), false).await;
    redis.kill().unwrap();
    redis.start_again().await.unwrap();

    let cold = site.running_gate("gate-2");
    cold.comes_to("a refused load", |status| status.setbacks > 0)
        .await;
    gate.comes_to("doubt", |status| {
        !status.current && status.failure.is_none()
    })
    .await;
    assert!(!cold.status().complete && gate.record(hash(1)).is_none());
    // The first attempt may find the connection broken.
    let answered = async || match writer.declare(&revoking(hash(1))).await {
        Err(WriteError::Store(error)) => Err(error.into()),
        answer => Ok(answer),
    };
    let refused = wait_until("an answer", SOON, answered).await.unwrap();
    assert!(
        matches!(refused, Err(WriteError::Unverified)),
        "{refused:?}"
    );

    let writer = site.claim().await;
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    for gate in [&gate, &cold] {
        soon(gate.completed()).await;
        gate.comes_to("certainty", |status| status.current).await;
        assert!(gate.record(hash(1)).is_none() && gate.record(hash(2)).is_some());
    }
}

#[tokio::test]
async fn a_promoted_replica_is_not_believed_until_it_was_rebuilt() {
    let (primary, other) = (Redis::start().await.unwrap(), Redis::start().await.unwrap());
    let site = Site::on(&primary);
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gate = site.complete_gate("gate-1").await;
    let port = other.port().to_string();
    primary
        .command(&["REPLICAOF", "127.0.0.1", &port])
        .await
        .unwrap();
    let seen = site.directory().observe().await.unwrap();
    assert!(seen.is_replica);
    primary.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    gate.comes_to("doubt", |status| !status.current).await;
    assert!(gate.record(hash(1)).is_some());
    assert!(site.directory().observe().await.unwrap().needs_rebuild());
    let writer = site.claim().await;
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    gate.knows(hash(2), true).await;
}

async fn wipe(site: &Site) {
    let mut vandal = site.vandal().await;
    let pattern = format!("{}*", site.instance.prefix());
    let keys: Vec<String> = redis::cmd("KEYS")
        .arg(pattern)
        .query_async(&mut vandal)
        .await
        .unwrap();
    let _: () = redis::cmd("DEL")
        .arg(keys)
        .query_async(&mut vandal)
        .await
        .unwrap();
}

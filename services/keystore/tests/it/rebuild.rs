//! Rebuilds concurrent with other changes, and after Redis restarted, was restored or failed over. The content that a
//! rebuild writes is tested against a plain model in `model.rs`.

use water_harness::{Redis, wait_until};
use water_keystore::WriteError;

use crate::site::*;

#[tokio::test]
async fn a_change_asked_for_during_a_rebuild_is_not_lost_and_a_hash_is_counted_once() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let (rebuilt, changed) = tokio::join!(
        biased;
        writer.rebuild(|| contents((0..500).chain([7]).map(hash))),
        async { writer.declare(&holding(hash(1000))).await },
    );
    assert_eq!(rebuilt.unwrap().meta.counts.records, 500);
    changed.unwrap();
    assert!(site.stored().await.contains_key(&hash(1000)));
    assert_eq!(site.counts().await.records, 501);
}

#[tokio::test]
async fn after_a_restart_nothing_is_written_nor_believed_before_a_rebuild() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gate = site.complete_gate("gate-1").await;
    site.seems_restarted().await;
    let declared = site.declare(&writer, revoking(hash(1))).await.err();
    let plans = writer.set_plans(&[plan("Free", None)]).await.err();
    for refused in [declared, plans] {
        assert!(matches!(refused, Some(WriteError::Unverified)));
    }
    gate.doubts().await;
    assert!(site.needs_rebuild().await && gate.record(hash(1)).is_some());
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    gate.knows(hash(2), true).await;
    site.revoke(&writer, hash(2)).await;
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
    assert!(site.needs_rebuild().await);
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
    cold.refuses_loads(2).await;
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
    let follow = ["REPLICAOF", "127.0.0.1", &port];
    primary.command(&follow).await.unwrap();
    assert!(site.observe().await.is_replica);
    primary.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    gate.comes_to("doubt", |status| !status.current).await;
    assert!(gate.record(hash(1)).is_some());
    assert!(site.needs_rebuild().await);
    let writer = site.claim().await;
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    gate.knows(hash(2), true).await;
}

//! A Redis without memory refuses new keys, and still revokes: a full store must not keep a key
//! alive that its owner deleted.

use water_harness::Redis;
use water_keystore::{Declaration, Reason, WriteError};

use crate::site::*;

/// A server whose memory is used up, with key 1 published and one gate.
async fn full() -> (Redis, Site, water_keystore::Writer, RunningGate) {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gate = site.complete_gate("gate-1").await;
    redis
        .command(&["CONFIG", "SET", "maxmemory", "1"])
        .await
        .unwrap();
    (redis, site, writer, gate)
}

#[tokio::test]
async fn a_full_redis_refuses_a_new_key_with_its_own_reason() {
    let (_redis, site, writer, _gate) = full().await;
    let refused = site.declare(&writer, holding(hash(2))).await.unwrap_err();
    assert!(matches!(refused, WriteError::Store(error) if error.reason() == Reason::OutOfMemory));
}

#[tokio::test]
async fn a_full_redis_still_revokes_and_the_gate_can_acknowledge() {
    let (_redis, site, writer, gate) = full().await;
    let revoked = site.revoke(&writer, hash(1)).await;
    gate.knows(hash(1), false).await;
    let acknowledged = async || {
        let leases = site.directory().leases().await?;
        anyhow::ensure!(leases.gates[0].seq == revoked.seq, "{leases:?}");
        Ok(())
    };
    water_harness::wait_until("the acknowledgement", SOON, acknowledged)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_full_redis_still_takes_a_suspension_and_a_lowered_plan() {
    let (_redis, site, writer, gate) = full().await;
    let lowered = [plan("Enterprise", None)];
    writer.set_plans(&lowered).await.unwrap();
    let suspension = holding_as(hash(1), suspended());
    let change = site.write(&writer, suspension).await;
    gate.comes_to("the change", |status| status.seq == change.seq)
        .await;
    assert_eq!(gate.record(hash(1)), Some(suspended()));
    let view = gate.view().unwrap();
    assert_eq!(view.plan(&lowered[0].name), Some(&lowered[0]));
}

#[tokio::test]
async fn a_full_redis_takes_the_last_word_of_an_owner_that_held_nothing() {
    let (_redis, site, writer, _gate) = full().await;
    let last = Declaration {
        is_last: true,
        ..revoking(hash(2))
    };
    site.write(&writer, last).await;
    assert!(site.owner_snapshot(&owner_of(hash(2)), &[]).await.is_gone);
}

#[tokio::test]
async fn a_full_redis_can_be_rebuilt() {
    let (_redis, site, _writer, gate) = full().await;
    let writer = site.claim().await;
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    gate.knows(hash(2), true).await;
    gate.knows(hash(1), false).await;
}

#[tokio::test]
async fn a_full_redis_can_still_be_claimed() {
    let (_redis, site, writer, _gate) = full().await;
    let later = site.claim().await;
    assert!(later.term() > writer.term());
    site.revoke(&later, hash(1)).await;
}

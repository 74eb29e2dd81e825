//! A Redis without memory refuses new keys, and still revokes: a full store must not keep a key
//! alive that its owner deleted.

use water_harness::Redis;
use water_keystore::{Reason, WriteError};

use crate::site::*;

/// A server whose memory is used up, with key 1 published and one gate.
async fn full() -> (Redis, Site, water_keystore::Writer, RunningGate) {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    let writer = site.ready().await;
    writer.apply(&[put(hash(1))]).await.unwrap();
    let gate = site.complete_gate("gate-1").await;
    redis
        .command(&["CONFIG", "SET", "maxmemory", "1"])
        .await
        .unwrap();
    (redis, site, writer, gate)
}

#[tokio::test]
async fn a_full_redis_refuses_a_new_key_with_its_own_reason() {
    let (_redis, _site, writer, _gate) = full().await;
    let refused = writer.apply(&[put(hash(2))]).await.unwrap_err();
    assert!(matches!(refused, WriteError::Store(error) if error.reason() == Reason::OutOfMemory));
}

#[tokio::test]
async fn a_full_redis_still_revokes_and_the_gate_can_acknowledge() {
    let (_redis, site, writer, gate) = full().await;
    let revoked = writer.apply(&[revoke(hash(1))]).await.unwrap();
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
async fn a_full_redis_can_still_be_claimed() {
    let (_redis, site, writer, _gate) = full().await;
    let (later, _) = site.directory().claim(UID, None).await.unwrap();
    assert!(later.term() > writer.term());
    later.apply(&[revoke(hash(1))]).await.unwrap();
}

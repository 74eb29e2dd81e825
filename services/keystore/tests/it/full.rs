//! A Redis whose memory is full refuses new keys, and still revokes: it must not keep a key alive that its owner
//! deleted.

use anyhow::ensure;
use water_harness::{Redis, wait_until};
use water_keystore::{Declaration, Reason, WriteError};

use crate::site::*;

#[tokio::test]
async fn a_full_redis_refuses_a_new_key_and_takes_every_restriction() {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gate = site.complete_gate("gate-1").await;
    let full = ["CONFIG", "SET", "maxmemory", "1"];
    redis.command(&full).await.unwrap();

    let refused = site.declare(&writer, holding(hash(2))).await.unwrap_err();
    assert!(matches!(refused, WriteError::Store(error) if error.reason() == Reason::OutOfMemory));
    let last = Declaration {
        is_last: true,
        ..revoking(hash(2))
    };
    site.write(&writer, last).await;
    assert!(site.owner_snapshot(&owner_of(hash(2)), &[]).await.is_gone);

    let lowered = [plan("Enterprise", None)];
    writer.set_plans(&lowered).await.unwrap();
    let suspension = holding_as(hash(1), suspended());
    let change = site.write(&writer, suspension).await;
    gate.comes_to("the change", |status| status.seq == change.seq)
        .await;
    assert_eq!(gate.record(hash(1)), Some(suspended()));
    let view = gate.view().unwrap();
    assert_eq!(view.plan(&lowered[0].name), Some(&lowered[0]));
    drop(view);

    let later = site.claim().await;
    assert!(later.term() > writer.term());
    let revoked = site.revoke(&later, hash(1)).await;
    gate.knows(hash(1), false).await;
    let acknowledged = async || {
        let leases = site.directory().leases().await?;
        ensure!(leases.gates[0].seq == revoked.seq, "{leases:?}");
        Ok(())
    };
    wait_until("the acknowledgement", SOON, acknowledged)
        .await
        .unwrap();
    later.rebuild(|| contents([hash(3)])).await.unwrap();
    gate.knows(hash(3), true).await;
}

//! Acknowledgements: what the operator learns from the gates' leases.

use std::time::Duration;

use anyhow::ensure;
use water_harness::{Network, Proxy, Redis, wait_until};
use water_keystore::{Leases, Position, Writer};

use crate::site::*;

async fn acknowledged(site: &Site, change: Position) -> Leases {
    let given = async || {
        let leases = site.directory().leases().await?;
        let all = leases
            .gates
            .iter()
            .all(|gate| !leases.is_outdated(gate) && !leases.awaits(gate, &change));
        ensure!(all, "{leases:?}");
        Ok(leases)
    };
    wait_until("the gates' acknowledgement", SOON, given)
        .await
        .unwrap()
}

#[tokio::test]
async fn every_gate_acknowledges_a_revocation_that_it_has_applied() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gates = [
        site.complete_gate("gate-1").await,
        site.complete_gate("gate-2").await,
    ];
    let revoked = site.revoke(&writer, hash(1)).await;
    let leases = acknowledged(&site, revoked).await;
    assert_eq!(leases.gates.len(), 2);
    assert!(gates.iter().all(|gate| gate.record(hash(1)).is_none()));
}

#[tokio::test]
async fn a_lease_says_who_the_gate_is_and_how_long_it_may_serve() {
    let site = Site::new().await;
    site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let status = gate.status();
    let now = Position {
        generation: status.generation,
        seq: status.seq,
    };
    let leases = acknowledged(&site, now).await;
    let lease = &leases.gates[0];
    assert_eq!(lease.uid, "uid-of-gate-1");
    assert_eq!(lease.grace.as_secs(), 120);
    let stored: String = redis::cmd("HGET")
        .arg(site.instance.gates())
        .arg("gate-1")
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    assert!(stored.contains(r#""mode":"serving""#), "{stored}");
}

#[tokio::test]
async fn an_acknowledgement_survives_a_rebuild() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let _gate = site.complete_gate("gate-1").await;
    let revoked = site.revoke(&writer, hash(1)).await;
    let meta = writer.rebuild(|| contents([hash(2)])).await.unwrap().meta;
    let leases = acknowledged(&site, revoked).await;
    assert_eq!(leases.gates[0].generation, meta.generation);
}

#[tokio::test]
async fn a_gate_that_has_stopped_is_still_waited_for_until_it_gives_its_lease_back() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    drop(gate);
    let change = site.publish(&writer, hash(1)).await;
    let leases = site.directory().leases().await.unwrap();
    assert!(leases.awaits(&leases.gates[0], &change));

    site.gate("gate-1").leave().await.unwrap();
    assert!(site.directory().leases().await.unwrap().gates.is_empty());
}

#[tokio::test]
async fn a_gate_that_cannot_hear_the_feed_lets_its_lease_run_out() {
    let site = Site::new().await;
    site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let silent = Duration::from_secs(2);
    for (command, value) in [("SET", Some("no stream")), ("DEL", None)] {
        let _: () = redis::cmd(command)
            .arg(site.instance.feed())
            .arg(value)
            .query_async(&mut site.vandal().await)
            .await
            .unwrap();
        let is_broken = value.is_some();
        gate.comes_to("the end of renewals, and their return", |status| {
            (status.since_renewal > Some(silent)) == is_broken
        })
        .await;
        assert!(gate.view().is_some());
    }
}

/// A gate that was cut off for longer than its grace while the key that it knows was revoked.
async fn cut_off_beyond_its_grace(grace: Duration) -> (Site, Writer, Proxy, RunningGate) {
    let redis = Redis::shared().await.unwrap();
    let site = Site::on(redis);
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let proxy = Proxy::before(redis.address()).await.unwrap();
    let cut_off = site.seen_at(redis.url_through(&proxy, "default", ""));
    let gate = RunningGate::of(cut_off.gate_with("gate-1", grace));
    soon(gate.completed()).await;
    proxy.set(Network::Reset);
    site.revoke(&writer, hash(1)).await;
    gate.comes_to("the end of its grace", |status| {
        status.since_renewal > Some(grace)
    })
    .await;
    (site, writer, proxy, gate)
}

/// Waits until the gate's lease in Redis is not older than this.
async fn renewed_within(site: &Site, age: Duration) {
    let renewed = async || {
        let leases = site.directory().leases().await?;
        let silent = leases.now.as_millis() - leases.gates[0].renewed.as_millis();
        ensure!(silent < age.as_millis() as i64, "{leases:?}");
        Ok(())
    };
    wait_until("the lease's renewal", SOON, renewed)
        .await
        .unwrap();
}

#[tokio::test]
async fn beyond_its_grace_a_gate_serves_again_once_it_has_caught_up() {
    let grace = Duration::from_secs(2);
    let (_site, _writer, proxy, gate) = cut_off_beyond_its_grace(grace).await;
    proxy.set(Network::Good);
    let served = async || {
        let may_serve = gate.since_renewal() <= Some(grace);
        ensure!(may_serve, "{:?}", gate.status());
        Ok(())
    };
    wait_until("the gate to serve", SOON, served).await.unwrap();
    assert_eq!(gate.record(hash(1)), None);
}

#[tokio::test]
async fn beyond_its_grace_a_gate_serves_nothing_before_it_could_load_a_doubtful_directory() {
    let grace = Duration::from_secs(2);
    let (site, writer, proxy, gate) = cut_off_beyond_its_grace(grace).await;
    site.seems_restarted().await;
    proxy.set(Network::Good);
    renewed_within(&site, grace).await;
    let refused = gate.status().setbacks;
    gate.comes_to("more refused loads", |status| status.setbacks > refused + 2)
        .await;
    assert_eq!(
        gate.record(hash(1)),
        Some(record()),
        "its copy is as old as it was"
    );
    assert!(gate.since_renewal() > Some(grace), "so it may not serve");
    writer.rebuild(|| contents([])).await.unwrap();
    gate.comes_to("service", |status| status.since_renewal <= Some(grace))
        .await;
    assert_eq!(gate.record(hash(1)), None);
}

#[tokio::test]
async fn a_lease_that_cannot_be_read_hides_no_other_gate() {
    let site = Site::new().await;
    site.ready().await;
    let _gate = site.complete_gate("gate-1").await;
    let _: () = redis::cmd("HSET")
        .arg(site.instance.gates())
        .arg(&["gate-0", "no lease", "gate-2", r#"{"renewed":"soon"}"#])
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    let leases = site.directory().leases().await.unwrap();
    assert_eq!(leases.gates.len(), 1);
    assert_eq!(leases.gates[0].uid, "uid-of-gate-1");
}

#[tokio::test]
async fn a_lease_that_nobody_renewed_for_an_hour_is_forgotten() {
    let site = Site::new().await;
    site.ready().await;
    let _: () = redis::cmd("HSET")
        .arg(site.instance.gates())
        .arg("long-gone")
        .arg(r#"{"uid":"u","generation":1,"seq":1,"grace":120000,"renewed":1000,"mode":"serving"}"#)
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    assert!(site.directory().leases().await.unwrap().gates.is_empty());
    let left: u32 = redis::cmd("HLEN")
        .arg(site.instance.gates())
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    assert_eq!(left, 0);
}

//! Acknowledgements: what the operator learns from the gates' leases.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::ensure;
use water_harness::{Network, Proxy, Redis, wait_until};
use water_keystore::{Leases, Position, Renewal, Writer};

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
async fn every_gate_acknowledges_a_revocation_that_it_has_applied_and_a_rebuild_keeps_that() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gates = [
        site.complete_gate("gate-1").await,
        site.complete_gate("gate-2").await,
    ];
    let revoked = site.revoke(&writer, hash(1)).await;
    let leases = acknowledged(&site, revoked).await;
    assert!(gates.iter().all(|gate| gate.record(hash(1)).is_none()));
    let mut uids: Vec<_> = leases.gates.iter().map(|lease| &*lease.uid).collect();
    uids.sort();
    assert_eq!(uids, ["uid-of-gate-1", "uid-of-gate-2"]);
    assert!(
        leases
            .gates
            .iter()
            .all(|lease| lease.grace.as_secs() == 120)
    );

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
    let leases = site.leases().await;
    assert!(leases.awaits(&leases.gates[0], &change));

    site.leave("gate-1").await;
    assert!(site.leases().await.gates.is_empty());
}

#[tokio::test]
async fn a_gate_that_cannot_hear_the_feed_lets_its_lease_run_out() {
    let site = Site::new().await;
    site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let silent = Duration::from_secs(2);
    for (command, value) in [("SET", Some("no stream")), ("DEL", None)] {
        let mut change = redis::cmd(command);
        site.vandalise(change.arg(site.instance.feed()).arg(value))
            .await;
        let is_broken = value.is_some();
        gate.comes_to("the end of renewals, and their return", |status| {
            let is_unheard = status.since_reply > Some(Duration::from_secs(5));
            let is_silent = status.since_renewal > Some(silent);
            is_unheard == is_broken && is_silent == is_broken
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
    let gate = RunningGate::start(cut_off.gate_with("gate-1", grace));
    soon(gate.completed()).await;
    proxy.set(Network::Reset);
    site.revoke(&writer, hash(1)).await;
    gate.comes_to("the end of its grace", |status| {
        status.since_renewal > Some(grace)
    })
    .await;
    (site, writer, proxy, gate)
}

/// Waits until the gate's lease in Redis is younger than `age`.
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
    gate.refuses_loads(3).await;
    let copy = gate.record(hash(1));
    assert_eq!(copy, Some(record()), "its copy is as old as it was");
    assert!(gate.since_renewal() > Some(grace), "so it may not serve");
    writer.rebuild(|| contents([])).await.unwrap();
    gate.comes_to("service", |status| status.since_renewal <= Some(grace))
        .await;
    assert_eq!(gate.record(hash(1)), None);
}

#[tokio::test]
async fn a_lease_that_cannot_be_read_hides_no_other_and_an_old_one_is_forgotten() {
    let site = Site::new().await;
    site.ready().await;
    let _gate = site.complete_gate("gate-1").await;
    let gates = site.instance.gates();
    let old =
        r#"{"uid":"u","generation":1,"seq":1,"grace":120000,"renewed":1000,"mode":"serving"}"#;
    for (pod, lease) in [
        ("gate-0", "no lease"),
        ("gate-2", r#"{"renewed":"soon"}"#),
        ("long-gone", old),
    ] {
        let mut write = redis::cmd("HSET");
        site.vandalise(write.arg(&gates).arg(pod).arg(lease)).await;
    }
    let leases = site.leases().await;
    assert_eq!(leases.gates.len(), 1);
    assert_eq!(leases.gates[0].uid, "uid-of-gate-1");
    let kept = redis::cmd("HGETALL").arg(&gates).to_owned();
    let kept = kept.query_async(&mut site.vandal().await).await;
    let kept: HashMap<String, String> = kept.unwrap();
    assert!(
        kept.len() == 3 && !kept.contains_key("long-gone"),
        "{kept:?}"
    );
    assert!(kept["gate-1"].contains(r#""mode":"serving""#), "{kept:?}");
}

/// Renews a lease of pod `gate-1` as its process would; returns the start to exceed, 0 if it is renewed.
async fn renew(redis: &Redis, site: &Site, uid: &str, start: u64, count: u64) -> u64 {
    let script = include_str!("../../src/directory/lease.lua");
    let (gates, start, count) = (site.instance.gates(), start.to_string(), count.to_string());
    let call = [
        "EVAL", script, "1", &gates, "gate-1", uid, "0", "0", "120000", "loading", &start, &count,
    ];
    let reply = redis.command(&call).await.unwrap();
    let last = reply.trim_end().rsplit(':').next().unwrap();
    last.parse().unwrap()
}

#[tokio::test]
async fn a_renewal_that_a_later_one_of_its_pod_overtook_changes_nothing() {
    let redis = Redis::shared().await.unwrap();
    let site = Site::on(redis);
    site.ready().await;
    for (uid, start, count, exceed) in [
        // A process that does not know its start yet.
        ("a", 0, 1, 1),
        ("a", 5, 1, 0),
        ("a", 5, 3, 0),
        ("a", 5, 2, 5),
        ("a", 5, 3, 5),
        ("a", 0, 9, 5),
        ("a", 4, 9, 5),
        ("a", 6, 1, 0),
        ("a", 5, 4, 6),
        // Another pod of the same name.
        ("b", 1, 1, 0),
    ] {
        let found = renew(redis, &site, uid, start, count).await;
        assert_eq!(found, exceed, "{uid} {start} {count}");
        let leases = site.leases().await;
        let Renewal { start: stored, .. } = leases
            .gates
            .first()
            .map(|lease| lease.renewal)
            .unwrap_or_default();
        assert!(exceed > 0 || stored == start, "{leases:?}");
    }
}

#[tokio::test]
async fn a_process_that_follows_another_in_its_pod_renews_above_it_though_the_clock_went_back() {
    let redis = Redis::shared().await.unwrap();
    let site = Site::on(redis);
    site.ready().await;
    let far = 1 << 45;
    assert_eq!(renew(redis, &site, "uid-of-gate-1", far, 7).await, 0);
    let _gate = site.complete_gate("gate-1").await;
    let leases = site.leases().await;
    assert_eq!(leases.gates[0].renewal.start, far + 1);
}

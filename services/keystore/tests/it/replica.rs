//! A gate's copy: loading, following, and reasons to doubt it.

use std::time::Duration;

use anyhow::ensure;
use water_harness::{Redis, wait_until};

use crate::site::*;

#[tokio::test]
async fn a_gate_without_a_whole_directory_has_a_lease_and_no_copy() {
    let site = Site::new().await;
    let gate = site.running_gate("gate-1");
    for is_claimed in [false, true] {
        if is_claimed {
            site.claim().await;
        }
        gate.refuses_loads(2).await;
        assert!(gate.view().is_none() && !gate.status().complete);
        let leases = site.leases().await;
        assert_eq!(leases.gates[0].generation, 0);
    }
    site.ready().await;
    soon(gate.completed()).await;
    assert!(gate.status().current && gate.record(hash(1)).is_none());
}

#[tokio::test]
async fn a_gate_loads_thousands_of_keys_and_finds_each() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let keys = || contents((0..10_000).map(hash));
    writer.rebuild(keys).await.unwrap();
    let gate = site.complete_gate("gate-1").await;
    assert_eq!(gate.status().keys, 10_000);
    assert!((0..10_000).all(|number| gate.record(hash(number)) == Some(record())));
    assert_eq!(gate.record(hash(10_000)), None);
}

#[tokio::test]
async fn many_changes_during_a_load_are_all_in_the_copy() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let keys = || contents((0..2_000).map(hash));
    writer.rebuild(keys).await.unwrap();
    let gate = site.running_gate("gate-1");
    for number in 0..200 {
        site.revoke(&writer, hash(number)).await;
        site.publish(&writer, hash(5_000 + number)).await;
    }
    gate.knows(hash(5_199), true).await;
    let known =
        |numbers: std::ops::Range<u32>| numbers.filter(|n| gate.record(hash(*n)).is_some()).count();
    assert_eq!(
        (known(0..200), known(200..2_000), known(5_000..5_200)),
        (0, 1_800, 200)
    );
}

#[tokio::test]
async fn a_trimmed_feed_makes_the_gate_load_everything_again() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    site.trim_feed().await;
    gate.comes_to("a second load", |status| {
        status.loads == 2 && status.current
    })
    .await;
    site.publish(&writer, hash(1)).await;
    gate.knows(hash(1), true).await;
}

#[tokio::test]
async fn a_load_that_misses_a_record_is_refused_and_leaves_the_copy_as_it_was() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    site.publish(&writer, hash(2)).await;
    let gate = site.complete_gate("gate-1").await;
    site.evict(hash(1)).await;
    site.trim_feed().await;
    gate.doubts().await;
    let cold = site.running_gate("gate-2");
    cold.refuses_loads(2).await;
    assert!(!cold.status().complete);
    assert_eq!(gate.record(hash(1)), Some(record()));
    assert_eq!(gate.status().loads, 1);
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    gate.knows(hash(1), false).await;
    soon(cold.completed()).await;
}

/// A running gate that loads everything again every 50 ms.
async fn reloading(site: &Site) -> RunningGate {
    site.ready().await;
    let often = site.gate("gate-1");
    let gate = RunningGate::start(often.reloading_every(Duration::from_millis(50)));
    soon(gate.completed()).await;
    gate
}

#[tokio::test]
async fn a_copy_stays_current_while_everything_is_loaded_anew() {
    let gate = reloading(&Site::new().await).await;
    let loaded = async {
        while gate.status().loads < 5 {
            let status = gate.status();
            // A machine that stands still silences the feed, too.
            let is_silent = status.since_reply >= Some(Duration::from_secs(5));
            assert!(status.current || is_silent, "{status:?}");
            tokio::task::yield_now().await;
        }
    };
    soon(loaded).await;
}

#[tokio::test]
async fn a_copy_whose_reload_fails_is_not_called_current() {
    let redis = Redis::start().await.unwrap();
    let gate = reloading(&Site::on(&redis)).await;
    // The feed replies, and no shard is read.
    let denied = ["ACL", "SETUSER", "default", "-hgetall"];
    redis.command(&denied).await.unwrap();
    gate.doubts().await;
}

#[tokio::test]
async fn redis_time_goes_on_between_readings() {
    let site = Site::new().await;
    site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    // A reading is uncertain by half the time that Redis took to tell it; the next one may be better.
    let right = async || {
        let before = now().as_millis();
        let here = gate.now().unwrap().as_millis();
        let after = now().as_millis();
        let range = before - 1000..=after + 1000;
        ensure!(range.contains(&here), "{here} is not in {range:?}");
        Ok(())
    };
    wait_until("Redis' time", SOON, right).await.unwrap();
}

//! A gate's copy: loading, following, and what makes it doubt.

use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::cmd;
use water_harness::Redis;
use water_keystore::KeyState;

use crate::site::*;

#[tokio::test]
async fn an_empty_complete_directory_is_a_complete_copy() {
    let site = Site::new().await;
    site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let status = gate.status();
    assert!(status.complete && status.current);
    assert_eq!(gate.record(hash(1)), None);
}

#[tokio::test]
async fn a_gate_without_a_directory_has_no_copy_but_a_lease() {
    let site = Site::new().await;
    let gate = site.running_gate("gate-1");
    gate.comes_to("a refused load", |status| status.setbacks > 0)
        .await;
    assert!(gate.view().is_none() && !gate.status().complete);
    let leases = site.directory().leases().await.unwrap();
    assert_eq!(leases.gates[0].generation, 0);
}

#[tokio::test]
async fn a_directory_under_rebuild_is_not_loaded() {
    let site = Site::new().await;
    site.claim().await;
    let gate = site.running_gate("gate-1");
    gate.comes_to("a refused load", |status| status.setbacks > 0)
        .await;
    assert!(!gate.status().complete);
    site.ready().await;
    soon(gate.completed()).await;
}

#[tokio::test]
async fn a_gate_loads_thousands_of_keys_and_finds_each() {
    let site = Site::new().await;
    let writer = site.ready().await;
    writer
        .rebuild(|| contents((0..10_000).map(hash)))
        .await
        .unwrap();
    let gate = site.complete_gate("gate-1").await;
    assert_eq!(gate.status().keys, 10_000);
    assert!((0..10_000).all(|number| gate.record(hash(number)) == Some(record())));
    assert_eq!(gate.record(hash(10_000)), None);
}

#[tokio::test]
async fn every_change_reaches_a_running_gate() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    site.publish(&writer, hash(1)).await;
    gate.knows(hash(1), true).await;

    let changed = site.write(&writer, holding_as(hash(1), suspended())).await;
    gate.comes_to("the change", |status| status.seq == changed.seq)
        .await;
    assert_eq!(gate.record(hash(1)).unwrap().state, KeyState::Suspended);

    site.revoke(&writer, hash(1)).await;
    gate.knows(hash(1), false).await;
    assert_eq!(gate.status().loads, 1, "the feed was enough");
}

#[tokio::test]
async fn a_raised_plan_reaches_a_running_gate_and_is_announced() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let before = gate.changes().load(Ordering::Acquire);
    let raised = plan("Enterprise", Some(limits(240, 50_000)));
    let applied = writer
        .set_plans(std::slice::from_ref(&raised))
        .await
        .unwrap();
    gate.comes_to("the plan", |status| status.seq == applied.seq)
        .await;
    assert_eq!(gate.view().unwrap().plan(&raised.name), Some(&raised));
    assert!(gate.changes().load(Ordering::Acquire) > before);
}

#[tokio::test]
async fn many_changes_during_a_load_are_all_in_the_copy() {
    let site = Site::new().await;
    let writer = site.ready().await;
    writer
        .rebuild(|| contents((0..2_000).map(hash)))
        .await
        .unwrap();
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
async fn a_rebuild_makes_the_gate_load_everything_again() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let meta = writer.rebuild(|| contents([hash(1)])).await.unwrap().meta;
    gate.knows(hash(1), true).await;
    assert_eq!(gate.status().generation, meta.generation);
}

#[tokio::test]
async fn a_directory_with_an_evicted_record_is_not_loaded() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    site.publish(&writer, hash(2)).await;
    site.evict(hash(1)).await;
    let gate = site.running_gate("gate-1");
    gate.comes_to("a refused load", |status| status.setbacks > 0)
        .await;
    assert!(!gate.status().complete);
    writer
        .rebuild(|| contents([hash(1), hash(2)]))
        .await
        .unwrap();
    soon(gate.completed()).await;
}

#[tokio::test]
async fn a_reload_that_is_refused_leaves_the_copy_as_it_was() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    site.publish(&writer, hash(2)).await;
    let gate = site.complete_gate("gate-1").await;
    site.evict(hash(1)).await;
    site.trim_feed().await;
    gate.doubts().await;
    assert_eq!(gate.record(hash(1)), Some(record()));
    assert_eq!(gate.status().loads, 1);
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    gate.knows(hash(1), false).await;
}

#[tokio::test]
async fn everything_is_loaded_anew_when_the_time_has_come() {
    let site = Site::new().await;
    site.ready().await;
    let often = site
        .gate("gate-1")
        .reloading_every(Duration::from_millis(50));
    let gate = RunningGate::of(often);
    gate.comes_to("the third load", |status| status.loads >= 3)
        .await;
}

#[tokio::test]
async fn a_copy_stays_current_while_everything_is_loaded_anew() {
    let site = Site::new().await;
    site.ready().await;
    let often = site
        .gate("gate-1")
        .reloading_every(Duration::from_millis(50));
    let gate = RunningGate::of(often);
    soon(gate.completed()).await;
    let loaded = async {
        while gate.status().loads < 5 {
            assert!(gate.status().current);
            tokio::task::yield_now().await;
        }
    };
    soon(loaded).await;
}

#[tokio::test]
async fn a_copy_whose_reload_fails_is_not_called_current() {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    site.ready().await;
    let often = site
        .gate("gate-1")
        .reloading_every(Duration::from_millis(50));
    let gate = RunningGate::of(often);
    soon(gate.completed()).await;
    redis.pause().unwrap();
    gate.doubts().await;
    redis.resume().unwrap();
}

#[tokio::test]
async fn an_undecodable_record_harms_no_other() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    site.publish(&writer, hash(2)).await;
    let _: () = cmd("HSET")
        .arg(site.instance.records(hash(1).shard()))
        .arg(hash(1).as_bytes())
        .arg("from a later version")
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    let gate = site.complete_gate("gate-1").await;
    assert_eq!((gate.status().keys, gate.status().undecodable), (2, 1));
    assert_eq!(gate.record(hash(1)), None);
    assert_eq!(gate.record(hash(2)), Some(record()));
}

#[tokio::test]
async fn a_server_that_the_operator_has_not_verified_is_not_believed() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    site.seems_restarted().await;
    gate.doubts().await;
    assert!(site.directory().observe().await.unwrap().needs_rebuild());
    writer.rebuild(|| contents([hash(1)])).await.unwrap();
    gate.knows(hash(1), true).await;
}

#[tokio::test]
async fn what_a_later_version_writes_in_another_schema_leaves_the_copy_as_it_was() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gate = site.complete_gate("gate-1").await;
    let mut record = cmd("HSET");
    record
        .arg(site.instance.records(hash(1).shard()))
        .arg(hash(1).as_bytes())
        .arg("from a later version");
    site.vandalise(&mut record).await;
    site.change_meta("meta.schema = 2 meta.generation = meta.generation + 1")
        .await;
    gate.doubts().await;
    let refused = gate.status().setbacks;
    gate.comes_to("more refused loads", |status| status.setbacks > refused + 2)
        .await;
    assert_eq!(gate.record(hash(1)), Some(self::record()));
    assert_eq!(gate.status().loads, 1);

    let cold = site.running_gate("gate-2");
    cold.comes_to("a refused load", |status| status.setbacks > 0)
        .await;
    assert!(cold.view().is_none());
}

#[tokio::test]
async fn redis_time_goes_on_between_readings() {
    let site = Site::new().await;
    site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let (seconds, micros): (i64, i64) = cmd("TIME")
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    let here = gate.now().unwrap().as_millis();
    let there = seconds * 1000 + micros / 1000;
    assert!(
        here.abs_diff(there) < Duration::from_secs(1).as_millis() as u64,
        "{here} {there}"
    );
}

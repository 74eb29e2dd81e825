//! Redis away, silent, locked, read-only, and back again: each has its own reason, and everything recovers without a
//! restart.

use std::time::Duration;

use tokio::time::Instant;
use water_harness::Redis;
use water_keystore::Reason;
use water_keystore::connection::Purpose;

use crate::site::*;

#[tokio::test]
async fn each_failure_has_its_own_reason_and_is_over_when_its_cause_is() {
    let redis = Redis::start().await.unwrap();
    let limiter = Site::on(&redis).limiter(Purpose::Limiter);
    limiter.decides_by_redis().await;
    for (reason, begins, ends) in [
        // A replica of an address without a server: it keeps its data and refuses writes.
        (
            Reason::ReadOnly,
            &["REPLICAOF", "127.0.0.1", "1"][..],
            &["REPLICAOF", "NO", "ONE"][..],
        ),
        (
            Reason::OutOfMemory,
            &["CONFIG", "SET", "maxmemory", "1"],
            &["CONFIG", "SET", "maxmemory", "0"],
        ),
        (
            Reason::Denied,
            &["ACL", "SETUSER", "default", "resetkeys"],
            &["ACL", "SETUSER", "default", "allkeys"],
        ),
    ] {
        redis.command(begins).await.unwrap();
        limiter.fails_for(reason).await;
        redis.command(ends).await.unwrap();
        limiter.decides_by_redis().await;
    }
    redis.kill().unwrap();
    limiter.fails_for(Reason::Down).await;
    redis.start_again().await.unwrap();
    limiter.decides_by_redis().await;
}

#[tokio::test]
async fn a_redis_that_does_not_answer_costs_its_timeout_and_after_five_times_nothing() {
    let redis = Redis::start().await.unwrap();
    let limiter = Site::on(&redis).limiter(Purpose::Limiter);
    limiter.decides_by_redis().await;
    redis.pause().unwrap();
    let fastest_of = async |requests: u32| {
        let mut fastest = Duration::MAX;
        for _ in 0..requests {
            let began = Instant::now();
            limiter.admits("acme").await;
            fastest = fastest.min(began.elapsed());
        }
        fastest
    };
    let timeout = fastest_of(5).await;
    // About 75 ms, and below the client's own timeout of 500 ms, which would be that of all five.
    let range = Duration::from_millis(60)..Duration::from_millis(500);
    assert!(range.contains(&timeout), "{timeout:?}");
    let status = limiter.standby.status();
    assert!(status.degraded && status.failing.unwrap().0 == Reason::Slow);
    let nothing = fastest_of(10).await;
    assert!(nothing < timeout / 2, "{nothing:?}");
    redis.resume().unwrap();
    limiter.decides_by_redis().await;
}

#[tokio::test]
async fn a_wrong_password_is_named_and_forgiven_once_it_is_right() {
    let redis = Redis::start_with(&["user gate on >secret ~* +@all"]);
    let redis = redis.await.unwrap();
    let site = Site::at(redis.url_as("gate", "very-wrong"));
    let limiter = site.limiter(Purpose::Limiter);
    limiter.fails_for(Reason::WrongPassword).await;
    let error = site.directory().observe().await.unwrap_err();
    let printed = format!("{error} {error:?} {:?}", site.directory());
    for secret in ["very-wrong", "redis://"] {
        assert!(!printed.contains(secret), "{printed}");
    }
    let right = ["ACL", "SETUSER", "gate", ">very-wrong"];
    redis.command(&right).await.unwrap();
    limiter.decides_by_redis().await;
}

#[tokio::test]
async fn a_warm_gate_keeps_its_copy_while_redis_is_away_and_follows_again() {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gate = site.complete_gate("gate-1").await;
    redis.kill().unwrap();
    gate.comes_to("the failure", |status| status.failure == Some(Reason::Down))
        .await;
    assert!(gate.record(hash(1)).is_some());

    redis.start_again().await.unwrap();
    gate.comes_to("doubt", |status| {
        status.failure.is_none() && !status.current
    })
    .await;
    assert!(
        gate.record(hash(1)).is_some(),
        "an empty Redis turns no key bad"
    );
    let writer = site.claim().await;
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    gate.knows(hash(2), true).await;
    gate.knows(hash(1), false).await;
}

#[tokio::test]
async fn a_feed_that_is_silent_for_five_seconds_vouches_for_nothing() {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    redis.pause().unwrap();
    gate.comes_to("the copy to be out of date", |status| !status.current)
        .await;
    assert!(gate.status().complete);
    assert!(gate.status().since_reply.unwrap() >= Duration::from_secs(5));
    redis.resume().unwrap();
    gate.comes_to("the feed to reply", |status| status.current)
        .await;
}

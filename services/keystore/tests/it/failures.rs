//! Redis away, silent, locked, read-only, and back again: each has its own reason, and everything recovers without a
//! restart.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use water_harness::Redis;
use water_keystore::connection::Purpose;
use water_keystore::{Reason, WriteError};

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

/// Number of looks of 5 ms, as the limiter takes them for an answer, until a future is ready. A standstill of the
/// machine is one look of both.
async fn looks_until(future: impl Future<Output = bool>) -> usize {
    let look = Duration::from_millis(5);
    let mut future = pin!(future);
    let mut looks = 0;
    while timeout(look, &mut future).await.is_err() {
        looks += 1;
    }
    looks
}

#[tokio::test]
async fn a_redis_that_does_not_answer_costs_its_timeout_and_after_five_times_nothing() {
    let redis = Redis::start().await.unwrap();
    let limiter = Site::on(&redis).limiter(Purpose::Limiter);
    limiter.decides_by_redis().await;
    redis.pause().unwrap();
    let mut fewest = usize::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        fewest = fewest.min(looks_until(limiter.admits("acme")).await);
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(60), "{waited:?}");
    }
    // About 15, which is 75 ms; the client's own timeout of 500 ms would be a hundred in all five.
    assert!(fewest <= 30, "{fewest}");
    let status = limiter.standby.status();
    assert!(status.degraded && status.failing.unwrap().0 == Reason::Slow);
    for _ in 0..10 {
        assert_eq!(looks_until(limiter.admits("acme")).await, 0);
    }
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

/// Ids of the operator's connections.
async fn connections(redis: &Redis) -> BTreeSet<String> {
    let clients = redis.command(&["CLIENT", "LIST"]).await.unwrap();
    let clients = clients.lines();
    let operators = clients.filter(|client| client.contains(" user=operator "));
    let ids = operators.filter_map(|client| client.split(' ').next());
    ids.map(str::to_owned).collect()
}

#[tokio::test]
async fn what_a_full_redis_or_a_missing_right_refuses_costs_no_connection() {
    let redis = Redis::start_with(&["user operator on >secret ~* &* +@all"]);
    let redis = redis.await.unwrap();
    let site = Site::at(redis.url_as("operator", "secret"));
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    for (reason, begins, ends) in [
        (
            Reason::OutOfMemory,
            &["CONFIG", "SET", "maxmemory", "1"][..],
            &["CONFIG", "SET", "maxmemory", "0"][..],
        ),
        (
            Reason::Denied,
            &["ACL", "SETUSER", "operator", "-evalsha"],
            &["ACL", "SETUSER", "operator", "+evalsha"],
        ),
    ] {
        redis.command(begins).await.unwrap();
        let refusals = async || {
            let before = connections(&redis).await;
            for _ in 0..3 {
                match writer.declare(&holding(hash(2))).await {
                    Err(WriteError::Store(error)) if error.reason() == reason => {}
                    Err(error) => return Err(error),
                    Ok(declared) => panic!("{declared:?}"),
                }
            }
            Ok((before, connections(&redis).await))
        };
        let (before, after) = patiently(refusals).await.unwrap();
        assert!(
            !after.is_empty() && after.is_subset(&before),
            "{reason:?}: {before:?}, then {after:?}"
        );
        redis.command(ends).await.unwrap();
    }
    site.publish(&writer, hash(2)).await;
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

//! Redis away, silent, locked, read-only, and back again: each has its own reason, and everything
//! recovers without a restart.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::Instant;
use water_harness::{Redis, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::{Limiter, Reason, StoreError};

use crate::site::*;

fn limiter(site: &Site) -> Limiter {
    let connection = site.connect(Purpose::Limiter);
    Limiter::new(connection, site.instance.clone(), Default::default())
}

async fn charge(limiter: &Limiter) -> Result<(), StoreError> {
    let account = "acme".parse().unwrap();
    limiter
        .charge(&account, limits(1_000_000, 1_000_000))
        .await
        .map(drop)
}

/// Waits until the limiter fails for this reason; the first failures after a break may differ.
async fn fails_for(limiter: &Limiter, reason: Reason) {
    let failing = async || {
        let outcome = charge(limiter).await.map_err(|error| error.reason());
        ensure!(outcome == Err(reason), "{outcome:?}");
        Ok(())
    };
    wait_until("the failure", SOON, failing).await.unwrap();
}

async fn succeeds(limiter: &Limiter) {
    let succeeding = async || Ok(charge(limiter).await?);
    wait_until("success", SOON, succeeding).await.unwrap();
}

#[tokio::test]
async fn a_redis_that_is_down_is_found_again_when_it_is_back() {
    let redis = Redis::start().await.unwrap();
    let limiter = limiter(&Site::on(&redis));
    succeeds(&limiter).await;
    redis.kill().unwrap();
    fails_for(&limiter, Reason::Down).await;
    redis.start_again().await.unwrap();
    succeeds(&limiter).await;
}

#[tokio::test]
async fn a_redis_that_does_not_answer_costs_at_most_its_timeouts() {
    let redis = Redis::start().await.unwrap();
    let limiter = limiter(&Site::on(&redis));
    succeeds(&limiter).await;
    redis.pause().unwrap();
    let began = Instant::now();
    assert_eq!(charge(&limiter).await.unwrap_err().reason(), Reason::Slow);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    redis.resume().unwrap();
    succeeds(&limiter).await;
}

#[tokio::test]
async fn a_wrong_password_is_named_and_forgiven_once_it_is_right() {
    let redis = Redis::start_with(&["user gate on >secret ~* +@all"])
        .await
        .unwrap();
    let site = Site::at(redis.url_as("gate", "wrong"));
    let limiter = limiter(&site);
    fails_for(&limiter, Reason::WrongPassword).await;
    redis
        .command(&["ACL", "SETUSER", "gate", ">wrong"])
        .await
        .unwrap();
    succeeds(&limiter).await;
}

#[tokio::test]
async fn a_replica_is_read_only() {
    let redis = Redis::start().await.unwrap();
    let limiter = limiter(&Site::on(&redis));
    succeeds(&limiter).await;
    // A primary that nobody listens as: the replica keeps its data and refuses writes.
    redis
        .command(&["REPLICAOF", "127.0.0.1", "1"])
        .await
        .unwrap();
    fails_for(&limiter, Reason::ReadOnly).await;
    redis.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    succeeds(&limiter).await;
}

#[tokio::test]
async fn a_full_redis_accepts_no_charge() {
    let redis = Redis::start().await.unwrap();
    let limiter = limiter(&Site::on(&redis));
    succeeds(&limiter).await;
    redis
        .command(&["CONFIG", "SET", "maxmemory", "1"])
        .await
        .unwrap();
    fails_for(&limiter, Reason::OutOfMemory).await;
    redis
        .command(&["CONFIG", "SET", "maxmemory", "0"])
        .await
        .unwrap();
    succeeds(&limiter).await;
}

#[tokio::test]
async fn a_user_without_rights_is_denied() {
    let redis = Redis::start_with(&["user gate on >secret ~nothing +@all"])
        .await
        .unwrap();
    let limiter = limiter(&Site::at(redis.url_as("gate", "secret")));
    fails_for(&limiter, Reason::Denied).await;
}

#[tokio::test]
async fn a_warm_gate_keeps_its_copy_while_redis_is_away_and_follows_again() {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    site.ready().await.apply(&[put(hash(1))]).await.unwrap();
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
    let (writer, _) = site.directory().claim(UID, None).await.unwrap();
    writer.rebuild(|| contents([hash(2)])).await.unwrap();
    gate.knows(hash(2), true).await;
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

#[tokio::test]
async fn errors_name_neither_url_nor_password() {
    let redis = Redis::start_with(&["user gate on >secret ~* +@all"])
        .await
        .unwrap();
    let site = Site::at(redis.url_as("gate", "very-wrong"));
    let error = charge(&limiter(&site)).await.unwrap_err();
    let printed = format!("{error} {error:?} {:?}", site.directory());
    assert!(
        !printed.contains("very-wrong") && !printed.contains("redis://"),
        "{printed}"
    );
}

//! The limits while Redis is away, and their way back.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use redis::cmd;
use water_domain::Limits;
use water_harness::{Network, Proxy, Redis, wait_until};
use water_keystore::Reason;
use water_keystore::connection::Purpose;
use water_kit::{equal, exactly};

use crate::site::*;

/// Longer timeout for exact numbers: a busy machine must not look like a slow Redis.
const PATIENT: Purpose = Purpose::Directory;

fn plan() -> Limits {
    limits(120, 50_000)
}

/// Number of `requests` that are admitted.
async fn admitted(gate: &RunningLimiter, requests: usize) -> usize {
    let mut admitted = 0;
    for _ in 0..requests {
        admitted += usize::from(gate.admits_under("acme", plan()).await);
    }
    admitted
}

/// Opens the breaker, by requests of another account.
async fn gives_up(gate: &RunningLimiter) {
    let given_up = async || {
        gate.admits("another").await;
        ensure!(gate.standby.status().degraded);
        Ok(())
    };
    wait_until("the breaker", SOON, given_up).await.unwrap();
}

async fn is_exact(gate: &RunningLimiter) {
    let exact = async || {
        let status = gate.standby.status();
        ensure!(!status.degraded && status.failing.is_none(), "{status:?}");
        Ok(())
    };
    wait_until("Redis to decide", SOON, exact).await.unwrap();
}

/// A server behind a proxy.
async fn proxied() -> (Redis, Proxy, Site) {
    let redis = Redis::start().await.unwrap();
    let proxy = Proxy::before(redis.address()).await.unwrap();
    let site = Site::at(redis.url_through(&proxy, "default", ""));
    (redis, proxy, site)
}

/// Requests that Redis has counted for the account within the minute, and in the day.
async fn counted(site: &Site) -> (usize, String) {
    let account = "acme".parse().unwrap();
    let (mut minute, mut day) = (cmd("LLEN"), cmd("GET"));
    minute.arg(site.instance.minute(&account));
    day.arg(site.instance.day(&account));
    let mut redis = site.vandal().await;
    let minute = minute.query_async(&mut redis).await.unwrap();
    let day: String = day.query_async(&mut redis).await.unwrap();
    (minute, day.split(' ').nth(1).unwrap().to_owned())
}

#[tokio::test]
async fn what_three_gates_admitted_without_redis_is_charged_before_it_decides_again() {
    exactly(async || -> Result<()> {
        let (_redis, proxy, site) = proxied().await;
        let gates = [0; 3].map(|_| site.limiter_of(PATIENT, 3));
        gates[0].prepared().await;
        equal(admitted(&gates[0], 30).await, 30)?;
        proxy.set(Network::Reset);
        let mut without = 0;
        for gate in &gates {
            gives_up(gate).await;
            without += admitted(gate, 50).await;
        }
        equal(without, 110).context("the first gate knows of 30, of which it has a third")?;
        proxy.set(Network::Good);
        for gate in &gates {
            is_exact(gate).await;
        }
        equal(counted(&site).await, (140, "140".to_owned()))?;
        for gate in &gates {
            equal(admitted(gate, 10).await, 0)?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_redis_that_comes_back_empty_is_charged_too() {
    exactly(async || -> Result<()> {
        let redis = Redis::start().await.unwrap();
        let site = Site::on(&redis);
        let gate = site.limiter_of(PATIENT, 2);
        gate.prepared().await;
        equal(admitted(&gate, 20).await, 20)?;
        redis.kill().unwrap();
        // A question on a connection that breaks meanwhile may have been charged.
        gives_up(&gate).await;
        equal(admitted(&gate, 100).await, 50).context("half of what is left")?;
        redis.start_again().await.unwrap();
        is_exact(&gate).await;
        equal(counted(&site).await, (50, "50".to_owned()))?;
        equal(admitted(&gate, 100).await, 70)?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_question_that_came_too_late_is_not_charged_twice() {
    exactly(async || -> Result<()> {
        let redis = Redis::start().await.unwrap();
        let site = Site::on(&redis);
        let gate = site.limiter(Purpose::Limiter);
        assert!(gate.admits("another").await);
        is_exact(&gate).await;
        equal(admitted(&gate, 1).await, 1)?;
        redis.pause().unwrap();
        equal(admitted(&gate, 3).await, 3)?;
        redis.resume().unwrap();
        is_exact(&gate).await;
        equal(counted(&site).await.0, 4)?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_question_whose_answer_is_lost_is_not_charged_twice() {
    exactly(async || -> Result<()> {
        let (_redis, proxy, site) = proxied().await;
        let gate = site.limiter(PATIENT);
        gate.prepared().await;
        equal(admitted(&gate, 1).await, 1)?;
        proxy.set(Network::Truncate(0));
        equal(admitted(&gate, 1).await, 1)?;
        proxy.set(Network::Good);
        is_exact(&gate).await;
        equal(counted(&site).await, (2, "2".to_owned()))?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn one_pause_of_redis_fails_many_questions_and_leaves_redis_deciding() {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    let gate = site.limiter(Purpose::Limiter);
    assert!(gate.admits("another").await);
    is_exact(&gate).await;
    let before = gate.standby.status().admitted;
    redis.pause().unwrap();
    let accounts: Vec<_> = (0..64).map(|number| format!("account-{number}")).collect();
    let asked = accounts.iter().map(|account| gate.admits(account));
    assert!(join_all(asked).await.into_iter().all(|admitted| admitted));
    redis.resume().unwrap();
    let status = gate.standby.status();
    let without = status.admitted - before;
    assert_eq!(without, 64, "each was decided without Redis");
    assert!(!status.degraded, "{status:?}");
    is_exact(&gate).await;
}

#[tokio::test]
async fn a_connection_whose_other_end_is_gone_is_replaced() {
    let (_redis, proxy, site) = proxied().await;
    let gate = site.limiter(Purpose::Limiter);
    assert!(gate.admits("acme").await);
    proxy.half_open();
    let counts = async || {
        gate.admits("acme").await;
        let (minute, _) = counted(&site).await;
        ensure!(minute > 1, "{minute}");
        Ok(())
    };
    wait_until("Redis to count again", SOON, counts)
        .await
        .unwrap();
    site.ready().await;
    let directory = site.directory();
    let answered = patiently(async || Ok(directory.observe().await?)).await;
    answered.unwrap();
    proxy.half_open();
    let late = directory.observe().await.unwrap_err();
    assert_eq!(late.reason(), Reason::Slow);
    let answered = patiently(async || Ok(directory.observe().await?)).await;
    answered.unwrap();
}

#[tokio::test]
async fn each_gate_learns_how_many_gates_share_the_limits() {
    let site = Site::new().await;
    site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let other = site.complete_gate("gate-2").await;
    shared_by(&gate, 2).await;
    let mut foreign = cmd("HSET");
    foreign.arg(site.instance.gates());
    foreign.arg("gate-3").arg("what a later version writes");
    let () = foreign.query_async(&mut site.vandal().await).await.unwrap();
    let third = site.complete_gate("gate-4").await;
    shared_by(&gate, 3).await;
    // Its task has to end first, or it would renew the lease.
    drop(third);
    site.leave("gate-4").await;
    shared_by(&gate, 2).await;
    drop(other);
    shared_by(&gate, 2).await;
}

async fn shared_by(gate: &RunningGate, wanted: u32) {
    let seen = async || {
        let gates = gate.live_gates().load(Ordering::Acquire);
        ensure!(gates == wanted, "{gates}");
        Ok(())
    };
    wait_until("the leases", SOON, seen).await.unwrap();
}

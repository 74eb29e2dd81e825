//! The limiter as gates use it: several connections, one account, the server's real clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use redis::cmd;
use tokio::time::Instant;
use water_domain::AccountId;
use water_harness::{Redis, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::{Decision, Limiter, Reason, Standby};
use water_kit::{equal, exactly};

use crate::site::*;

async fn limiter(site: &Site) -> Limiter {
    let connection = site.connection().await;
    Limiter::new(connection, site.instance.clone(), Arc::default())
}

fn account() -> AccountId {
    "acme".parse().unwrap()
}

async fn charge(limiter: &Limiter, per_minute: u32, per_day: u32) -> Decision {
    let limits = limits(per_minute, per_day);
    limiter.charge(&account(), limits, now()).await.unwrap()
}

async fn scripts_run(site: &Site) -> u64 {
    let ask = cmd("INFO").arg("commandstats").to_owned();
    let info = ask.query_async(&mut site.vandal().await).await;
    let info: String = info.unwrap();
    let mut lines = info.lines();
    let line = lines.find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// Number of accepted requests, of 50 clients with 50 each, over so many gates.
async fn accepted_through(gates: usize) -> usize {
    let site = Site::new().await;
    let gates: Vec<Limiter> = join_all((0..gates).map(|_| limiter(&site))).await;
    let clients = (0..50).map(|client| {
        let gate = &gates[client % gates.len()];
        async move {
            let mut accepted = 0;
            for _ in 0..50 {
                accepted += usize::from(charge(gate, 120, 50_000).await.accepted);
            }
            accepted
        }
    });
    join_all(clients).await.into_iter().sum()
}

#[tokio::test]
async fn fifty_clients_through_any_number_of_gates_get_exactly_the_limit() {
    for gates in [1, 2, 5] {
        let accepted = async || -> Result<()> {
            equal(accepted_through(gates).await, 120).with_context(|| format!("{gates} gates"))
        };
        exactly(accepted).await;
    }
}

#[tokio::test]
async fn each_answer_says_what_remains_in_both_windows() {
    exactly(async || -> Result<()> {
        let limiter = limiter(&Site::new().await).await;
        let begun = Instant::now();
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(charge(&limiter, 2, 10).await);
        }
        let took = begun.elapsed().as_secs();
        let remaining = answers.iter().map(|answer| {
            let (minute, day) = (answer.minute.remaining, answer.day.remaining);
            (answer.accepted, minute, day)
        });
        let expected = [(true, 1, 9), (true, 0, 8), (false, 0, 8)];
        ensure!(remaining.eq(expected), "{answers:?}");
        // Until a minute after the first of them.
        let wait = answers[2].retry_after_seconds().unwrap();
        ensure!(wait <= 60 && wait + took >= 59, "{wait}");
        Ok(())
    })
    .await;
}

/// Fills the account's minute with requests that are so many seconds old.
async fn fill_minute(site: &Site, ages: &[u64]) {
    let mut vandal = site.vandal().await;
    let clock: (u64, u64) = cmd("TIME").query_async(&mut vandal).await.unwrap();
    let mut fill = cmd("RPUSH");
    fill.arg(site.instance.minute(&account()));
    for age in ages {
        fill.arg((clock.0 - age) * 1_000_000 + clock.1);
    }
    site.vandalise(&mut fill).await;
}

#[tokio::test]
async fn each_refusal_is_told_another_slot_and_the_window_its_first() {
    exactly(async || -> Result<()> {
        let site = Site::new().await;
        fill_minute(&site, &[30, 20, 10]).await;
        let limiter = limiter(&site).await;
        for after_first in [0, 10, 20, 0] {
            let refusal = charge(&limiter, 3, 100).await;
            ensure!(!refusal.accepted, "{refusal:?}");
            let first = refusal.minute.opens_in;
            ensure!(first <= Duration::from_secs(30), "{refusal:?}");
            equal((refusal.slot_opens_in - first).as_secs(), after_first)?;
            let wait = refusal.retry_after_seconds().unwrap();
            let seconds = refusal.minute.opens_in_seconds();
            // Slots are in whole milliseconds, rounded up.
            ensure!(wait.abs_diff(seconds + after_first) <= 1, "{refusal:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn refusals_of_a_user_who_may_not_read_the_slots_are_told_the_first() {
    exactly(async || -> Result<()> {
        let redis = Redis::start().await.unwrap();
        let site = Site::on(&redis);
        let limiter = limiter(&site).await;
        fill_minute(&site, &[30, 20, 10]).await;
        redis
            .command(&["ACL", "SETUSER", "default", "-lrange"])
            .await
            .unwrap();
        for _ in 0..2 {
            let refusal = charge(&limiter, 3, 100).await;
            ensure!(!refusal.accepted, "{refusal:?}");
            equal(refusal.slot_opens_in, refusal.minute.opens_in)?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_refusals_costs_redis_nothing_and_a_raised_plan_acts_at_once() {
    exactly(async || -> Result<()> {
        let redis = Redis::start().await.unwrap();
        let site = Site::on(&redis);
        let changes = Arc::new(AtomicU64::new(0));
        let standby = Standby::new(changes.clone(), Arc::default());
        let connection = site.connection().await;
        let limiter = Limiter::new(connection, site.instance.clone(), Arc::new(standby));
        for accepted in [true, false] {
            equal(charge(&limiter, 1, 100).await.accepted, accepted)?;
        }
        let before = scripts_run(&site).await;
        for _ in 0..1000 {
            equal(charge(&limiter, 1, 100).await.accepted, false)?;
        }
        equal(scripts_run(&site).await, before)?;
        changes.fetch_add(1, Ordering::Release);
        equal(charge(&limiter, 2, 100).await.accepted, true)
    })
    .await;
}

#[tokio::test]
async fn a_forgotten_script_is_loaded_again() {
    exactly(async || -> Result<()> {
        let redis = Redis::start().await.unwrap();
        let limiter = limiter(&Site::on(&redis)).await;
        charge(&limiter, 10, 10).await;
        redis.command(&["SCRIPT", "FLUSH"]).await.unwrap();
        equal(charge(&limiter, 10, 10).await.day.remaining, 8)?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn every_counter_goes_away_by_itself() {
    let site = Site::new().await;
    charge(&limiter(&site).await, 10, 10).await;
    for (key, length) in [
        (site.instance.minute(&account()), 60_000),
        (site.instance.day(&account()), 86_400_000),
    ] {
        let left = cmd("PTTL").arg(&key).to_owned();
        let left = left.query_async(&mut site.vandal().await).await;
        let left: i64 = left.unwrap();
        assert!(left > length, "{key} {left}");
    }
}

/// A limiter that has its connection and script, and a client that blocks this thread, which is the
/// limiter's worker too.
async fn stalling(redis: &Redis) -> (Limiter, Arc<Standby>, redis::Connection) {
    let site = Site::on(redis);
    let standby = Arc::<Standby>::default();
    let connection = site.connect(Purpose::Limiter);
    let limiter = Limiter::new(connection, site.instance.clone(), standby.clone());
    let prepared = async || Ok(limiter.prepare().await?);
    wait_until("the connection", SOON, prepared).await.unwrap();
    let client = redis::Client::open(redis.url()).unwrap();
    (limiter, standby, client.get_connection().unwrap())
}

/// Blocks the worker for longer than the limiter waits.
fn stall(client: &mut redis::Connection) {
    let mut wait = cmd("BLPOP");
    let () = wait.arg("nothing").arg(0.8).query(client).unwrap();
}

#[tokio::test]
async fn a_stall_of_our_own_process_is_not_a_slow_redis() {
    let redis = Redis::start().await.unwrap();
    let (limiter, standby, mut client) = stalling(&redis).await;
    let account = account();
    redis.pause().unwrap();
    let stalled = async {
        // The command is sent, and its answer arrives while this worker runs nothing else.
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        redis.resume().unwrap();
        stall(&mut client);
    };
    let charged = limiter.charge(&account, limits(120, 50_000), now());
    let (decision, ()) = tokio::join!(charged, stalled);
    assert!(decision.unwrap().accepted);
    assert_eq!(standby.status().failing, None);
}

#[tokio::test]
async fn a_worker_that_stalls_before_it_has_sent_its_question_waits_for_the_answer() {
    // The limiter's 75 ms, less a little.
    const PATIENCE: Duration = Duration::from_millis(60);
    const TRIES: usize = 3;
    let redis = Redis::start().await.unwrap();
    let account = account();
    for tries in 1.. {
        let (limiter, standby, mut client) = stalling(&redis).await;
        let charged = limiter.charge(&account, limits(120, 50_000), now());
        let stalled = async {
            stall(&mut client);
            Instant::now()
        };
        // Polled in this order: the question is written by a task that does not run before the stall.
        let (decision, stalled_until) = tokio::join!(charged, stalled);
        let waited = stalled_until.elapsed();
        assert!(decision.unwrap().accepted);
        let failing = standby.status().failing.map(|(reason, _)| reason);
        if failing.is_none() {
            return;
        }
        // One that counts the stall gives up at once. After all of its time it was Redis that was late.
        let is_redis_late = failing == Some(Reason::Slow) && waited >= PATIENCE;
        assert!(
            is_redis_late && tries < TRIES,
            "{failing:?} after {waited:?}"
        );
    }
}

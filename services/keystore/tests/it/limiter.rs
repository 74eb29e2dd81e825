//! The limiter as gates use it: several connections, one account, the server's real clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::join_all;
use redis::cmd;
use water_domain::AccountId;
use water_harness::{Redis, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::{Decision, Limiter, Standby};

use crate::site::*;

fn limiter(site: &Site) -> Limiter {
    let connection = site.connect(Purpose::Directory);
    Limiter::new(connection, site.instance.clone(), Arc::default())
}

fn account() -> AccountId {
    "acme".parse().unwrap()
}

async fn scripts_run(site: &Site) -> u64 {
    let info: String = cmd("INFO")
        .arg("commandstats")
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// 50 clients of 50 requests each, over so many gates.
async fn accepted_through(gates: usize) -> usize {
    let site = Site::new().await;
    let gates: Vec<Limiter> = (0..gates).map(|_| limiter(&site)).collect();
    let clients = (0..50).map(|client| {
        let gate = &gates[client % gates.len()];
        async move {
            let mut accepted = 0;
            for _ in 0..50 {
                let decision = gate
                    .charge(&account(), limits(120, 50_000), now())
                    .await
                    .unwrap();
                accepted += usize::from(decision.accepted);
            }
            accepted
        }
    });
    join_all(clients).await.into_iter().sum()
}

#[tokio::test]
async fn fifty_clients_through_one_gate_get_exactly_the_limit() {
    assert_eq!(accepted_through(1).await, 120);
}

#[tokio::test]
async fn fifty_clients_through_two_gates_get_exactly_the_limit() {
    assert_eq!(accepted_through(2).await, 120);
}

#[tokio::test]
async fn fifty_clients_through_five_gates_get_exactly_the_limit() {
    assert_eq!(accepted_through(5).await, 120);
}

#[tokio::test]
async fn each_answer_says_what_remains() {
    let limiter = limiter(&Site::new().await);
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(
            limiter
                .charge(&account(), limits(2, 10), now())
                .await
                .unwrap(),
        );
    }
    let seen = |answer: &Decision| {
        (
            answer.accepted,
            answer.minute.remaining,
            answer.day.remaining,
        )
    };
    assert_eq!(
        answers.iter().map(seen).collect::<Vec<_>>(),
        [(true, 1, 9), (true, 0, 8), (false, 0, 8)]
    );
    assert!((59..=60).contains(&answers[2].retry_after_seconds().unwrap()));
}

#[tokio::test]
async fn the_day_refuses_without_charging_the_minute() {
    let limiter = limiter(&Site::new().await);
    limiter
        .charge(&account(), limits(10, 1), now())
        .await
        .unwrap();
    let refused = limiter
        .charge(&account(), limits(10, 1), now())
        .await
        .unwrap();
    assert!(!refused.accepted);
    assert_eq!((refused.minute.remaining, refused.day.remaining), (9, 0));
}

#[tokio::test]
async fn accounts_and_instances_do_not_share_counters() {
    let (one, other) = (Site::new().await, Site::new().await);
    let first = limiter(&one);
    assert!(
        first
            .charge(&account(), limits(1, 1), now())
            .await
            .unwrap()
            .accepted
    );
    assert!(
        first
            .charge(&"beta".parse().unwrap(), limits(1, 1), now())
            .await
            .unwrap()
            .accepted
    );
    assert!(
        limiter(&other)
            .charge(&account(), limits(1, 1), now())
            .await
            .unwrap()
            .accepted
    );
}

#[tokio::test]
async fn a_flood_of_refusals_costs_redis_nothing() {
    let redis = Redis::start().await.unwrap();
    let site = Site::on(&redis);
    let limiter = limiter(&site);
    for _ in 0..2 {
        limiter
            .charge(&account(), limits(1, 100), now())
            .await
            .unwrap();
    }
    let before = scripts_run(&site).await;
    for _ in 0..1000 {
        assert!(
            !limiter
                .charge(&account(), limits(1, 100), now())
                .await
                .unwrap()
                .accepted
        );
    }
    assert_eq!(scripts_run(&site).await, before);
}

#[tokio::test]
async fn a_raised_plan_acts_at_once() {
    let site = Site::new().await;
    let changes = Arc::new(AtomicU64::new(0));
    let connection = site.connect(Purpose::Directory);
    let standby = Standby::new(changes.clone(), Arc::default());
    let limiter = Limiter::new(connection, site.instance.clone(), Arc::new(standby));
    for _ in 0..2 {
        limiter
            .charge(&account(), limits(1, 100), now())
            .await
            .unwrap();
    }
    changes.fetch_add(1, Ordering::Release);
    assert!(
        limiter
            .charge(&account(), limits(2, 100), now())
            .await
            .unwrap()
            .accepted
    );
}

#[tokio::test]
async fn a_forgotten_script_is_loaded_again() {
    let redis = Redis::start().await.unwrap();
    let limiter = limiter(&Site::on(&redis));
    limiter
        .charge(&account(), limits(10, 10), now())
        .await
        .unwrap();
    redis.command(&["SCRIPT", "FLUSH"]).await.unwrap();
    let decision = limiter
        .charge(&account(), limits(10, 10), now())
        .await
        .unwrap();
    assert_eq!(decision.day.remaining, 8);
}

#[tokio::test]
async fn every_counter_goes_away_by_itself() {
    let site = Site::new().await;
    limiter(&site)
        .charge(&account(), limits(10, 10), now())
        .await
        .unwrap();
    for key in [
        site.instance.minute(&account()),
        site.instance.day(&account()),
    ] {
        let left: i64 = cmd("PTTL")
            .arg(&key)
            .query_async(&mut site.vandal().await)
            .await
            .unwrap();
        assert!(left > 60_000, "{key} {left}");
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
        // The command is on its way, and its answer comes while nothing of ours runs.
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
    let redis = Redis::start().await.unwrap();
    let (limiter, standby, mut client) = stalling(&redis).await;
    let account = account();
    let charged = limiter.charge(&account, limits(120, 50_000), now());
    // Polled in this order: the question is written by a task that has no turn before the stall.
    let (decision, ()) = tokio::join!(charged, async { stall(&mut client) });
    assert!(decision.unwrap().accepted);
    assert_eq!(standby.status().failing, None);
}

//! A service down or slow: the gate notices it, refuses its requests at once, and serves all others.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use tokio::time::Instant;
use water_harness::{Answer, Port, Redis, wait_until};
use water_kit::gate::{Behaviour, Overdue, Recorder, exactly_through};
use water_kit::{Gate, Key, SOON, equal};

use crate::deadline::{DEADLINE, all_served, decided, in_time, timed};
use crate::whole::{is, problem, remaining};

/// Route of departements, which stays; the next one is of history, which does not.
const STAYING: &str = "/api/v1/stress";
const LEAVING: &str = "/api/v1/hydrorisk";

/// Failures in a row after which a gate refuses a service's requests at once.
const FAILURES: usize = 5;
/// Pause until the gate sends such a service the next request, after each one.
const PAUSE: Duration = Duration::from_millis(500);

/// Starts a gate whose history service is at this address.
async fn with_history_at(address: SocketAddr) -> Gate {
    let gate = Gate::builder().set("WATER_HISTORY_ADDRESS", address);
    gate.start().await
}

/// Sends requests for the service that leaves until it is known to be down.
async fn until_known_to_be_away(gate: &Gate, key: &Key) -> Answer {
    let refused = async || -> Result<Answer> {
        // Several at once: one of them may be the probe.
        let answers = join_all([(); 8].map(|()| gate.get(LEAVING, key))).await;
        let all = answers.iter().all(|answer| answer.status == 503);
        ensure!(all, "{answers:?}");
        let mut answers = answers.into_iter();
        let free = answers.find(|answer| answer.header("ratelimit").is_none());
        free.context("all were charged")
    };
    wait_until("a refusal that costs nothing", SOON, refused)
        .await
        .unwrap()
}

/// Checks how many requests were charged since `begun`, of those that have failed: the first ones, by which the gate
/// knows the service, and then one after each pause at most.
fn few_are_charged(charged: usize, begun: Instant) {
    let since = begun.elapsed();
    let pauses = usize::try_from(since.as_millis() / PAUSE.as_millis()).unwrap();
    let most = FAILURES + pauses;
    assert!(charged <= most, "{charged} were charged in {since:?}");
}

/// Returns the number of requests of the minute that are left after one more.
async fn left(gate: &Gate, key: &Key) -> usize {
    remaining(&gate.get(STAYING, key).await)
}

#[tokio::test]
async fn requests_to_a_service_that_is_known_to_be_away_cost_nothing() {
    let nobody = Port::reserve().unwrap();
    let start = async || with_history_at(nobody.address()).await;
    let scenario = async |gate: &Gate| -> Result<()> {
        let key = gate.key().await;
        let mut client = gate.connect().await;
        let (mut charged, begun) = (0, Instant::now());
        for _ in 0..50 {
            let answer = client.get(LEAVING, &key.text).await.unwrap();
            assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
            assert_eq!(answer.header("retry-after"), Some("2"));
            charged += usize::from(answer.header("ratelimit").is_some());
            few_are_charged(charged, begun);
        }
        assert!(charged >= FAILURES, "{charged} were charged");
        equal(left(gate, &key).await, 120 - charged - 1)
    };
    exactly_through(start, scenario).await;
}

#[tokio::test]
async fn a_service_that_refuses_the_gate_is_not_asked_again_and_costs_nothing_more() {
    let service = Recorder::start().await;
    let refusal = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
    service.behave(Behaviour::Answer(refusal.to_owned()));
    let start = async || with_history_at(service.address).await;
    let scenario = async |gate: &Gate| -> Result<()> {
        let key = gate.key().await;
        let mut client = gate.connect().await;
        let (mut charged, begun) = (0, Instant::now());
        let free = loop {
            let answer = async { client.get(LEAVING, &key.text).await.unwrap() };
            let answer = timed(answer).await;
            if answer.0.header("ratelimit").is_none() {
                break answer.0;
            }
            decided(&answer)?;
            assert_eq!(problem(&answer.0), is(500, "internal"));
            charged += 1;
            few_are_charged(charged, begun);
        };
        assert!(charged >= FAILURES, "{charged} were charged");
        assert_eq!(problem(&free), is(503, "upstream_unavailable"));
        equal(left(gate, &key).await, 120 - charged - 1)
    };
    exactly_through(start, scenario).await;
}

#[tokio::test]
async fn who_may_not_ask_does_not_keep_a_service_away() {
    let port = Port::reserve().unwrap();
    let redis = Redis::start_at_noon().await.unwrap();
    let gate = Gate::builder().redis(&redis);
    let gate = gate.set("WATER_HISTORY_ADDRESS", port.address());
    let gate = gate.start().await;
    let (key, spent) = (
        gate.key().await,
        gate.publish(Key::new().on_plan("Daily")).await,
    );
    for _ in 0..3 {
        assert_eq!(gate.get(STAYING, &spent).await.status, 200);
    }
    until_known_to_be_away(&gate, &key).await;
    let _back = Recorder::start_at(port.address()).await;
    let served = async || -> Result<()> {
        // Each of these could be the probe, and none of them may.
        let refused = gate.get(LEAVING, &spent).await;
        ensure!([429, 503].contains(&refused.status), "{refused:?}");
        let answer = gate.get(LEAVING, &key).await;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    };
    wait_until("the service to be asked", SOON, served)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_service_that_was_killed_leaves_the_other_alone_and_is_asked_again_once_it_is_back() {
    in_time(kills_a_service).await;
}

async fn kills_a_service() -> Result<(), Overdue> {
    let port = Port::reserve().unwrap();
    let address = port.address();
    let service = Recorder::start_at(address).await;
    let gate = with_history_at(address).await;
    let key = gate.key().await;
    assert_eq!(gate.get(LEAVING, &key).await.status, 200);
    let (good, served) = (gate.key().await, async || -> Result<()> {
        let answer = gate.get(LEAVING, &key).await;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    });
    let kill = async {
        drop(service);
        until_known_to_be_away(&gate, &key).await;
        let back = Recorder::start_at(address).await;
        wait_until("the service's return", SOON, served)
            .await
            .unwrap();
        back
    };
    let (_back, unaffected) = tokio::join!(kill, unaffected(&gate, &good));
    unaffected
}

#[tokio::test]
async fn fault_30_a_service_that_hangs_is_503_at_the_deadline_and_nothing_is_charged_twice() {
    let service = Recorder::start().await;
    service.behave(Behaviour::Silence);
    let start = async || with_history_at(service.address).await;
    let scenario = async |gate: &Gate| -> Result<()> {
        let (key, good) = (gate.key().await, gate.key().await);
        // Those that an earlier try has sent.
        service.take_seen();
        let hanging = join_all((0..20).map(|_| timed(gate.get(LEAVING, &key))));
        let (answers, unaffected) = tokio::join!(hanging, unaffected(gate, &good));
        unaffected?;
        for (answer, took) in answers {
            assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
            assert!(answer.header("ratelimit").is_some());
            assert!(took >= DEADLINE, "{took:?}");
        }
        assert_eq!(service.take_seen().len(), 20, "each was asked once");
        equal(left(gate, &key).await, 120 - 20 - 1)?;
        until_known_to_be_away(gate, &key).await;
        Ok(())
    };
    exactly_through(start, scenario).await;
}

/// Sends 100 requests for the service that stays, on one connection and on new ones, and checks that each is served.
/// One that waited behind the other service's would be 503 at its own deadline, or served once those are given up:
/// either is overdue.
async fn unaffected(gate: &Gate, key: &Key) -> Result<(), Overdue> {
    let mut warm = gate.connect().await;
    for _ in 0..50 {
        let on_warm = async { warm.get(STAYING, &key.text).await.unwrap() };
        let answers = [timed(on_warm).await, timed(gate.get(STAYING, key)).await];
        all_served(&answers)?;
        for (_, took) in answers {
            // Those before it may have been sent a little earlier.
            if took >= DEADLINE / 2 {
                return Err(Overdue(took));
            }
        }
    }
    Ok(())
}

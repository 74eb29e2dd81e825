//! A service away or slow: known to be so, told to its own clients at once, and nobody else's
//! business.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use tokio::time::Instant;
use water_harness::{Answer, Port, wait_until};

use crate::recorder::{Behaviour, Recorder};
use crate::site::{Key, SOON, Site, is, problem};

/// Of departements, which stays, and of history, which does not.
const STAYING: &str = "/api/v1/stress";
const LEAVING: &str = "/api/v1/hydrorisk";

/// From a request to its 503.
const DEADLINE: Duration = Duration::from_secs(5);

/// A gate whose history service has an address of its own.
async fn with_history_at(address: SocketAddr) -> Site {
    Site::start_with(&[("WATER_HISTORY_ADDRESS", &address.to_string())]).await
}

/// Asks for the service that leaves until it is known to be away.
async fn until_known_to_be_away(site: &Site, key: &Key) -> Answer {
    let refused = async || -> Result<Answer> {
        // Several at once: one of them may be the request that goes through.
        let answers = join_all([(); 8].map(|()| site.get(LEAVING, key))).await;
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

/// How many requests of the minute are left after one more.
async fn remaining(site: &Site, key: &Key) -> usize {
    let answer = site.get(STAYING, key).await;
    let remaining = answer.header("x-ratelimit-remaining");
    remaining.unwrap().parse().unwrap()
}

#[tokio::test]
async fn requests_to_a_service_that_is_known_to_be_away_cost_nothing() {
    let nobody = Port::reserve().unwrap();
    let site = with_history_at(nobody.address()).await;
    let key = site.key().await;
    let mut client = site.connect().await;
    let mut charged = 0;
    for _ in 0..50 {
        let answer = client.get(LEAVING, &key.text).await.unwrap();
        assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
        assert_eq!(answer.header("retry-after"), Some("2"));
        charged += usize::from(answer.header("ratelimit").is_some());
    }
    assert!((5..50).contains(&charged), "{charged} of 50 were charged");
    assert_eq!(remaining(&site, &key).await, 120 - charged - 1);
}

#[tokio::test]
async fn a_service_that_refuses_the_gate_is_not_asked_again_and_costs_nothing_more() {
    let service = Recorder::start().await;
    let refusal = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
    service.behave(Behaviour::Answer(refusal.to_owned()));
    let site = with_history_at(service.address).await;
    let key = site.key().await;
    let mut client = site.connect().await;
    for _ in 0..5 {
        let answer = client.get(LEAVING, &key.text).await.unwrap();
        assert_eq!(problem(&answer), is(500, "internal"));
    }
    let answer = client.get(LEAVING, &key.text).await.unwrap();
    assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
    assert_eq!(remaining(&site, &key).await, 120 - 5 - 1);
}

#[tokio::test]
async fn who_may_not_ask_does_not_keep_a_service_away() {
    let port = Port::reserve().unwrap();
    let site = with_history_at(port.address()).await;
    let (key, spent) = (
        site.key().await,
        site.publish(Key::new().on_plan("Daily")).await,
    );
    for _ in 0..3 {
        assert_eq!(site.get(STAYING, &spent).await.status, 200);
    }
    until_known_to_be_away(&site, &key).await;
    let _back = Recorder::start_at(port.address()).await;
    let served = async || -> Result<()> {
        // Each of these could be the one request that goes through, and none of them may.
        let refused = site.get(LEAVING, &spent).await;
        ensure!([429, 503].contains(&refused.status), "{refused:?}");
        let answer = site.get(LEAVING, &key).await;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    };
    wait_until("the service to be asked", SOON, served)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_service_that_was_killed_leaves_the_other_alone_and_is_asked_again_once_it_is_back() {
    let port = Port::reserve().unwrap();
    let address = port.address();
    let service = Recorder::start_at(address).await;
    let site = with_history_at(address).await;
    let key = site.key().await;
    assert_eq!(site.get(LEAVING, &key).await.status, 200);
    let (good, served) = (site.key().await, async || -> Result<()> {
        let answer = site.get(LEAVING, &key).await;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    });
    let kill = async {
        drop(service);
        until_known_to_be_away(&site, &key).await;
        let back = Recorder::start_at(address).await;
        let begun = Instant::now();
        wait_until("the service's return", SOON, served)
            .await
            .unwrap();
        (back, begun.elapsed())
    };
    let ((_back, noticed), ()) = tokio::join!(kill, unaffected(&site, &good));
    println!("noticed after {noticed:?}");
    assert!(noticed < 2 * DEADLINE, "{noticed:?}");
}

#[tokio::test]
async fn a_service_that_hangs_is_503_at_the_deadline_and_nothing_is_charged_twice() {
    let service = Recorder::start().await;
    service.behave(Behaviour::Silence);
    let site = with_history_at(service.address).await;
    let (key, good) = (site.key().await, site.key().await);
    let hanging = join_all((0..20).map(|_| async {
        let begun = Instant::now();
        (site.get(LEAVING, &key).await, begun.elapsed())
    }));
    let (answers, ()) = tokio::join!(hanging, unaffected(&site, &good));
    for (answer, took) in answers {
        assert_eq!(problem(&answer), is(503, "upstream_unavailable"));
        assert!(answer.header("ratelimit").is_some());
        assert!(took >= DEADLINE && took < 2 * DEADLINE, "{took:?}");
    }
    assert_eq!(service.seen().len(), 20, "each was asked once");
    assert_eq!(remaining(&site, &key).await, 120 - 20 - 1);
    until_known_to_be_away(&site, &key).await;
}

/// Asks for the service that stays on one connection and on new ones, 100 times in all: every
/// answer is 200, and comes before the deadline of the other service.
async fn unaffected(site: &Site, key: &Key) {
    let mut warm = site.connect().await;
    for _ in 0..50 {
        let begun = Instant::now();
        let answer = warm.get(STAYING, &key.text).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(site.get(STAYING, key).await.status, 200);
        assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    }
}

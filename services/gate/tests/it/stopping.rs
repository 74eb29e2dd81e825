//! How a gate leaves: unready, serving on for a while, drained, its lease given back.

use std::sync::Arc;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use tokio::sync::Notify;
use water_domain::Timestamp;
use water_harness::wait_until;

use crate::recorder::Behaviour;
use crate::site::{SOON, Site};

const TARGET: &str = "/api/v1/stress";

#[tokio::test]
async fn a_gate_that_was_asked_to_stop_is_unready_and_goes_on_serving() {
    let site = Site::start_with(&[("WATER_STOP_DELAY_SECONDS", "600")]).await;
    let key = site.key().await;
    site.gate.signal(Signal::SIGTERM).unwrap();
    let unready = async || -> Result<()> {
        ensure!(site.admin("/ready").await?.status == 503, "still ready");
        Ok(())
    };
    wait_until("unreadiness", SOON, unready).await.unwrap();
    let answer = site.get(TARGET, &key).await;
    assert_eq!(
        (answer.status, answer.header("connection")),
        (200, Some("close"))
    );
    // A second signal skips the rest of the delay.
    site.gate.signal(Signal::SIGTERM).unwrap();
    let status = site.gate.ended(SOON).await.unwrap();
    assert!(
        status.success() && site.gate.log().contains("drained in time"),
        "{}",
        site.gate.log()
    );
}

#[tokio::test]
async fn a_request_under_way_is_answered_before_the_end() {
    let site = Site::start().await;
    let key = site.key().await;
    let told = Arc::new(Notify::new());
    site.service.behave(Behaviour::Wait(Arc::clone(&told)));
    let stop = async {
        let arrived = async || -> Result<()> {
            ensure!(site.service.seen().len() == 1, "the request is not there");
            Ok(())
        };
        wait_until("the request", SOON, arrived).await.unwrap();
        site.gate.signal(Signal::SIGTERM).unwrap();
        let closed = async || -> Result<()> {
            ensure!(
                site.try_connect().await.is_err(),
                "new connections are still accepted"
            );
            Ok(())
        };
        wait_until("draining", SOON, closed).await.unwrap();
        told.notify_one();
        site.gate.ended(SOON).await.unwrap()
    };
    let (answer, status) = tokio::join!(site.get(TARGET, &key), stop);
    assert_eq!(answer.status, 200);
    assert!(status.success() && site.gate.log().contains("drained in time"));
}

#[tokio::test]
async fn a_request_that_outlives_the_drain_deadline_is_cut_and_told() {
    let site = Site::start_with(&[("WATER_DRAIN_SECONDS", "1")]).await;
    let key = site.key().await;
    site.service.behave(Behaviour::Silence);
    let mut client = site.connect().await;
    let request = format!(
        "GET {TARGET} HTTP/1.1\r\nHost: water\r\nAuthorization: {}\r\n\r\n",
        key.bearer()
    );
    client.send(request).await.unwrap();
    let arrived = async || -> Result<()> {
        ensure!(site.service.seen().len() == 1, "the request is not there");
        Ok(())
    };
    wait_until("the request", SOON, arrived).await.unwrap();
    site.gate.stop(SOON).await.unwrap();
    assert!(
        site.gate.log().contains("drain deadline passed"),
        "{}",
        site.gate.log()
    );
}

#[tokio::test]
async fn a_gate_that_left_has_no_lease() {
    let site = Site::start().await;
    assert_eq!(site.directory.leases().await.unwrap().gates.len(), 1);
    site.gate.stop(SOON).await.unwrap();
    assert_eq!(site.directory.leases().await.unwrap().gates.len(), 0);
}

#[tokio::test]
async fn a_gate_that_stops_has_told_when_its_keys_were_last_used() {
    let site = Site::start().await;
    let (used, unused) = (site.key().await, site.key().await);
    let before = site.directory.leases().await.unwrap().now;
    site.get(TARGET, &used).await;
    site.gate.stop(SOON).await.unwrap();
    let after = site.directory.leases().await.unwrap().now;
    let keys = [used, unused].map(|key| key.record.key_id);
    let told = site.directory.last_used(&keys).await.unwrap();
    // The gate carries Redis' time on by its own clock: a few milliseconds of doubt.
    let millis = |moment: Timestamp| moment.as_millis();
    let at = millis(told[0].unwrap());
    assert!(
        (millis(before) - 50..=millis(after) + 50).contains(&at),
        "{before} {told:?} {after}"
    );
    assert_eq!(told[1], None);
}

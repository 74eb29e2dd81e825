//! End of a gate: it is unready, serves on for a while, drains, returns its lease and writes its counts.

use std::slice;
use std::sync::Arc;

use anyhow::ensure;
use nix::sys::signal::Signal;
use tokio::sync::Notify;
use water_domain::Timestamp;
use water_harness::{HttpClient, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::usage::Day;
use water_keystore::{Usage, UtcDay};
use water_kit::gate::{Behaviour, Overdue};
use water_kit::{Gate, Key, SOON};

use crate::deadline::{all_served, in_time, timed};

const TARGET: &str = "/api/v1/stress";

#[tokio::test]
async fn a_gate_that_stops_is_unready_serves_on_and_gives_its_lease_back() {
    in_time(stops_during_a_request).await;
}

/// Stops a gate, and holds a request until the gate drains. That has to be before the gate's deadline for the service.
async fn stops_during_a_request() -> Result<(), Overdue> {
    let gate = Gate::builder()
        .set("WATER_STOP_DELAY_SECONDS", 600)
        .set("WATER_DRAIN_SECONDS", 600);
    let gate = gate.start().await;
    let key = gate.key().await;
    assert_eq!(gate.directory.leases().await.unwrap().gates.len(), 1);
    gate.process.signal(Signal::SIGTERM).unwrap();
    let unready = async || {
        ensure!(gate.admin("/ready").await?.status == 503, "still ready");
        Ok(())
    };
    wait_until("unreadiness", SOON, unready).await.unwrap();
    let served_on = timed(gate.get(TARGET, &key)).await;
    all_served(slice::from_ref(&served_on))?;
    assert_eq!(served_on.0.header("connection"), Some("close"));

    let released = Arc::new(Notify::new());
    gate.service.behave(Behaviour::Wait(Arc::clone(&released)));
    let end = async {
        let arrived = async || {
            ensure!(gate.service.seen().len() == 2, "the request is not there");
            Ok(())
        };
        wait_until("the request", SOON, arrived).await.unwrap();
        // A second signal skips the rest of the delay.
        gate.process.signal(Signal::SIGTERM).unwrap();
        let draining = async || {
            let refused = HttpClient::connect(gate.address()).await.is_err();
            ensure!(refused, "new connections are still accepted");
            Ok(())
        };
        wait_until("draining", SOON, draining).await.unwrap();
        released.notify_one();
        gate.process.ended(SOON).await.unwrap()
    };
    let (under_way, status) = tokio::join!(timed(gate.get(TARGET, &key)), end);
    all_served(&[under_way])?;
    let log = gate.process.log();
    assert!(status.success() && log.contains("drained in time"), "{log}");
    assert_eq!(gate.directory.leases().await.unwrap().gates.len(), 0);
    Ok(())
}

/// Returns the accepted and limited requests of the two days that the test may have run on, and the key's last use.
async fn counted(gate: &Gate, key: &Key) -> (u64, u64, Option<Timestamp>) {
    let store = &gate.store;
    let usage = Usage::new(store.connect(Purpose::Directory), store.instance.clone());
    let now = gate.directory.leases().await.unwrap().now;
    let (account, today) = (&key.record.account, UtcDay::from(now));
    let days = async || Ok(usage.days(account, today, 2).await?);
    let days = wait_until("the counts", SOON, days).await.unwrap();
    let sum = |part: fn(&Day) -> u64| days.iter().map(part).sum();
    let ids = [key.record.key_id.clone()];
    let last = async || Ok(usage.last_uses(account, &ids, today).await?);
    let last = wait_until("the last use", SOON, last).await.unwrap();
    let shown = gate.directory.last_used(&ids).await.unwrap();
    assert_eq!(last, shown, "the holder and the operator see the same");
    (sum(|day| day.accepted), sum(|day| day.limited), last[0])
}

#[tokio::test]
async fn a_gate_that_stops_has_told_each_accounts_requests_and_each_keys_last_use() {
    let gate = Gate::start().await;
    let busy = gate.publish(Key::new().on_plan("Daily")).await;
    let (quiet, unused) = (gate.key().await, gate.key().await);
    let denied = gate.publish(Key::new().on_plan("Free")).await;
    let before = gate.directory.leases().await.unwrap().now.as_millis();
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(gate.get(TARGET, &busy).await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    assert_eq!(gate.get("/api/v1/unknown", &quiet).await.status, 404);
    assert_eq!(gate.get(TARGET, &denied).await.status, 403);
    gate.process.stop(SOON).await.unwrap();
    let after = gate.directory.leases().await.unwrap().now.as_millis();
    // The gate continues Redis' time on its own clock: uncertain by half the time that Redis took to tell it.
    let during = before - 3000..=after + 3000;
    for (key, requests) in [(&busy, (3, 2)), (&quiet, (0, 0)), (&denied, (0, 0))] {
        let (accepted, limited, last) = counted(&gate, key).await;
        assert_eq!((accepted, limited), requests);
        assert!(during.contains(&last.unwrap().as_millis()), "{last:?}");
    }
    assert_eq!(counted(&gate, &unused).await, (0, 0, None));
}

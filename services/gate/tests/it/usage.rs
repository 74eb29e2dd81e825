//! What the gate counts for account holders: accepted and limited requests, and their keys' last uses.

use water_domain::Timestamp;
use water_harness::Redis;
use water_keystore::connection::Purpose;
use water_keystore::usage::Day;
use water_keystore::{ConnectionSettings, Usage, UtcDay};

use crate::site::*;

const TARGET: &str = "/api/v1/stress";

/// What is told of the two days that the test may have run on.
async fn told(site: &Site, key: &Key) -> (u64, u64, Option<Timestamp>) {
    let redis = Redis::shared().await.unwrap().url();
    let connection = ConnectionSettings::new(&redis, None).unwrap();
    let usage = Usage::new(
        connection.connect(Purpose::Directory),
        site.instance.clone(),
    );
    let now = site.directory.leases().await.unwrap().now;
    let (account, today) = (&key.record.account, UtcDay::of(now));
    let days = usage.days(account, today, 2).await.unwrap();
    let sum = |of: fn(&Day) -> u64| days.iter().map(of).sum();
    let ids = [key.record.key_id.clone()];
    let last = usage.last_uses(account, &ids, today).await.unwrap();
    (sum(|day| day.accepted), sum(|day| day.limited), last[0])
}

#[tokio::test]
async fn a_gate_that_stops_has_told_what_each_account_asked() {
    let site = Site::start().await;
    let busy = site.publish(Key::new().on_plan("Daily")).await;
    let (quiet, unused) = (site.key().await, site.key().await);
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(site.get(TARGET, &busy).await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    assert_eq!(site.get("/api/v1/unknown", &quiet).await.status, 404);
    site.gate.stop(SOON).await.unwrap();
    let (accepted, limited, last) = told(&site, &busy).await;
    assert_eq!((accepted, limited), (3, 2));
    assert!(last.is_some());
    let (accepted, limited, last) = told(&site, &quiet).await;
    assert_eq!((accepted, limited, last.is_some()), (0, 0, true));
    assert_eq!(told(&site, &unused).await, (0, 0, None));
}

#[tokio::test]
async fn no_metric_tells_of_an_account() {
    let site = Site::start().await;
    let key = site.key().await;
    site.get(TARGET, &key).await;
    let metrics = site.admin("/metrics").await.unwrap();
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(text.contains("water_"), "{text}");
    assert!(!text.contains(key.record.account.as_str()), "{text}");
}

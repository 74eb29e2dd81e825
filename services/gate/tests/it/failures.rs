//! Redis down for longer than the grace, or before there is a copy of the directory: never the client's fault, with any
//! key.

use std::time::Duration;

use anyhow::ensure;
use water_harness::{Network, Proxy, Redis, wait_until};
use water_kit::{Gate, Key, SOON};

use crate::whole::{is, problem};

const TARGET: &str = "/api/v1/stress";

/// Publishes a key whose limits no wait uses up.
async fn unlimited(gate: &Gate) -> Key {
    gate.publish(Key::new().on_plan("Unlimited")).await
}

/// Waits until a request with a valid key is answered with this status.
async fn comes_to(gate: &Gate, key: &Key, status: u16) {
    let answered = async || {
        let answer = gate.get(TARGET, key).await;
        ensure!(answer.status == status, "{answer:?}");
        Ok(())
    };
    wait_until("another answer", SOON, answered).await.unwrap();
}

/// Checks that a key is answered with 503, unless it is malformed: that is the client's fault.
async fn is_away(gate: &Gate, key: &Key) {
    let answer = gate.get(TARGET, key).await;
    assert_eq!(problem(&answer), is(503, "dependency_unavailable"));
    assert_eq!(answer.header("retry-after"), Some("2"));
    let fields = [("Authorization", "Bearer x")];
    let malformed = gate.request("GET", TARGET, &fields).await;
    assert_eq!(problem(&malformed), is(401, "invalid_key"));
}

#[tokio::test]
async fn without_a_complete_directory_the_gate_is_unready_and_answers_503() {
    let nowhere = Gate::builder().set("WATER_INSTANCE", "water.never-written");
    let gate = nowhere.start_unready().await;
    let unready = async || {
        let ready = gate.admin("/ready").await?;
        let missing = ready.text()?.contains("key directory");
        ensure!(ready.status == 503 && missing, "{ready:?}");
        Ok(())
    };
    wait_until("the admin port", SOON, unready).await.unwrap();
    assert_eq!(gate.admin("/live").await.unwrap().status, 200);
    is_away(&gate, &Key::new()).await;
}

#[tokio::test]
async fn fault_26_a_redis_that_stays_slow_is_as_good_as_none_past_the_grace() {
    let redis = Redis::start().await.unwrap();
    let proxy = Proxy::before(redis.address()).await.unwrap();
    let url = redis.url_through(&proxy, "default", "");
    let gate = Gate::builder().redis(&redis).set("WATER_REDIS_URL", url);
    let gate = gate.set("WATER_GRACE_SECONDS", 5).start().await;
    let key = unlimited(&gate).await;
    proxy.set(Network::Delay(Duration::from_millis(500)));
    comes_to(&gate, &key, 503).await;
    let logged = async || {
        let log = gate.process.log();
        let mut lines = log.lines().filter(|line| line.contains("refusing"));
        ensure!(lines.any(|line| line.contains(r#""slow""#)), "{log}");
        Ok(())
    };
    wait_until("the log", SOON, logged).await.unwrap();
    proxy.set(Network::Good);
    comes_to(&gate, &key, 200).await;
}

#[tokio::test]
async fn fault_26_38_past_the_grace_redis_away_is_503_for_every_key_until_it_is_back() {
    let redis = Redis::start().await.unwrap();
    let gate = Gate::builder().redis(&redis).set("WATER_GRACE_SECONDS", 5);
    let gate = gate.start().await;
    let key = unlimited(&gate).await;
    comes_to(&gate, &key, 200).await;
    redis.kill().unwrap();
    comes_to(&gate, &key, 503).await;
    is_away(&gate, &key).await;
    gate.shows(&[
        r#"water_gate_limits_mode{mode="refusing"} 1"#,
        "water_gate_directory_current 0.0",
    ])
    .await;
    is_away(&gate, &Key::new()).await;
    for path in ["/live", "/ready"] {
        assert_eq!(gate.admin(path).await.unwrap().status, 200, "{path}");
    }
    // Redis comes back empty. After the grace only data read since then counts.
    redis.start_again().await.unwrap();
    gate.republish(std::slice::from_ref(&key)).await;
    comes_to(&gate, &key, 200).await;
}

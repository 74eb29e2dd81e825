//! Both limits as a client sees them.

use anyhow::{Result, ensure};
use futures::future::join_all;
use serde_json::json;
use water_harness::{Answer, Redis};
use water_kit::gate::{Behaviour, Overdue, contents, exactly_through, with};
use water_kit::{Gate, Key, equal, exactly};

use crate::deadline::{decided, timed};
use crate::whole::{is, problem, remaining};

const TARGET: &str = "/api/v1/stress";

#[tokio::test]
async fn the_121st_request_within_a_minute_is_429() {
    exactly_through(Gate::start, fills_the_minute).await;
}

async fn fills_the_minute(gate: &Gate) -> Result<()> {
    let key = gate.key().await;
    let mut client = gate.connect().await;
    for left in (0..120).rev() {
        let answer = client.get(TARGET, &key.text).await.unwrap();
        equal((answer.status, remaining(&answer)), (200, left))?;
    }
    let refused = client.get(TARGET, &key.text).await.unwrap();
    equal(refused.status, 429)?;
    assert_eq!(problem(&refused), is(429, "rate_limited"));
    let violated = &refused.json().unwrap()["violated-policies"];
    assert_eq!(violated, &json!(["minute"]));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let standing = refused.header("ratelimit").unwrap();
    let expected = format!(r#""minute";r=0;t={wait}, "day";r=49880;t="#);
    ensure!(standing.starts_with(&expected), "{standing}");
    equal(gate.service.seen().len(), 120)
}

#[tokio::test]
async fn the_day_has_its_own_limit_and_a_raised_plan_acts_at_once() {
    let redis = Redis::start_at_noon().await.unwrap();
    let gate = Gate::builder().redis(&redis).start().await;
    let key = gate.publish(Key::new().on_plan("Daily")).await;
    for left in [2, 1, 0] {
        let answer = gate.get(TARGET, &key).await;
        assert_eq!((answer.status, remaining(&answer)), (200, left));
        assert_eq!(answer.header("x-ratelimit-limit"), Some("3"));
    }
    let refused = gate.get(TARGET, &key).await;
    assert_eq!(problem(&refused), is(429, "rate_limited"));
    let violated = &refused.json().unwrap()["violated-policies"];
    assert_eq!(violated, &json!(["day"]));

    let mut plans = contents(&[]).plans;
    let limited = plans.iter_mut().filter_map(|plan| plan.limits.as_mut());
    limited.for_each(|limits| limits.requests_per_day = 10.try_into().unwrap());
    gate.writer.set_plans(&plans).await.unwrap();
    // The gate acknowledges changes in their order, so the plans are in force once it has this key.
    gate.key().await;
    let answer = gate.get(TARGET, &key).await;
    assert_eq!((answer.status, remaining(&answer)), (200, 6));
}

#[tokio::test]
async fn an_account_is_charged_for_all_its_keys_and_only_for_what_is_forwarded() {
    exactly_through(Gate::start, charges_the_account).await;
}

async fn charges_the_account(gate: &Gate) -> Result<()> {
    let key = gate.key().await;
    let other = gate.publish(Key::new().of_account(&key)).await;
    let (bearer, others) = (key.bearer(), other.bearer());
    let ask = async |method, target, bearer: &str| {
        let fields = [("Authorization", bearer)];
        gate.request(method, target, &fields).await
    };
    for (method, target) in [
        ("GET", "/unknown"),
        ("POST", TARGET),
        ("GET", "/api/v1/stress?a=%ff"),
        ("GET", "/api/v1/openapi.json"),
    ] {
        let free = ask(method, target, &bearer).await;
        assert_eq!(free.header("ratelimit"), None, "{method} {target}");
    }
    equal(remaining(&ask("GET", TARGET, &bearer).await), 119)?;
    equal(remaining(&ask("HEAD", TARGET, &others).await), 118)?;

    let body = r#"{"code":"invalid_parameter"}"#;
    let fields = "content-type: application/problem+json\r\n";
    let refusal = with("400 Bad Request", fields, body);
    gate.service.behave(Behaviour::Answer(refusal));
    let refused = ask("GET", TARGET, &bearer).await;
    equal((refused.status, remaining(&refused)), (400, 117))?;
    assert_eq!(refused.text().unwrap(), body);
    Ok(())
}

/// Returns the number of requests that gates decided without Redis, because it was late.
fn decided_here(metrics: &Answer) -> u32 {
    let lines = metrics.text().unwrap().lines();
    let shared = lines.filter_map(|line| line.strip_prefix("water_gate_limits_shared_total{"));
    let counts = shared.map(|line| line.rsplit(' ').next().unwrap());
    counts.map(|count| count.parse::<u32>().unwrap()).sum()
}

#[tokio::test]
async fn fifty_clients_through_three_gates_get_exactly_the_limit() {
    exactly(fifty_clients_get_the_limit).await;
}

async fn fifty_clients_get_the_limit() -> Result<()> {
    let redis = Redis::start().await.unwrap();
    let gate = Gate::builder().redis(&redis).start().await;
    let (second, third) = (gate.another("gate-1").await, gate.another("gate-2").await);
    let gates = [&*gate, &second, &third];
    let key = gate.key().await;
    let clients = (0..50).map(async |client: usize| -> Result<u32, Overdue> {
        let mut client = gates[client % 3].connect().await;
        let mut accepted = 0;
        for _ in 0..50 {
            let answer = async { client.get(TARGET, &key.text).await.unwrap() };
            accepted += u32::from(decided(&timed(answer).await)? == 200);
        }
        Ok(accepted)
    });
    let accepted = join_all(clients).await;
    let accepted = accepted.into_iter().sum::<Result<u32, Overdue>>()?;
    // Each request that was decided without Redis may have changed the number by one, up or down.
    let metrics = join_all(gates.map(|gate| gate.admin("/metrics"))).await;
    let without: u32 = metrics
        .iter()
        .map(|it| decided_here(it.as_ref().unwrap()))
        .sum();
    ensure!(
        accepted.abs_diff(120) <= without,
        "{accepted} accepted, {without} without Redis"
    );
    Ok(())
}

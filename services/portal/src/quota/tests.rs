//! The quota against the charges of a gate's limiter, and the usage against the reports of gates.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use serde_json::{Value, json};
use water_http::{Language, Query};
use water_keystore::usage::Use;
use water_keystore::{Limiter, Standby, Usage, UtcDay};

use super::*;
use crate::claims::Role;
use crate::sample::{limits, manager, member, plans, received, store, viewer};

/// Asks as this member and returns status and body.
async fn asks(quotas: &Quotas, member: &Member, target: &str) -> (u16, Value) {
    let received = received("GET", target, &[]);
    let query = Query::parse(received.uri.query()).unwrap();
    let asked = AccountRequest {
        received: &received,
        path: &["quota"],
        query: &query,
        body: &Default::default(),
    };
    told(answer(quotas, &plans(), member, &asked).await)
}

fn told(outcome: Result<Response, Problem>) -> (u16, Value) {
    let id = received("GET", "/", &[]).id;
    let answer = outcome.unwrap_or_else(|problem| problem.into_response(&id, Language::English));
    let body = serde_json::from_slice(answer.body()).unwrap();
    (answer.status().as_u16(), body)
}

#[tokio::test]
async fn fault_45_the_quota_falls_by_one_with_each_request_and_never_by_looking() {
    let (connection, instance) = store().await;
    let quotas = Quotas::new(connection.clone(), instance.clone());
    let standby = Arc::new(Standby::new(Arc::default(), Arc::new(AtomicU32::new(1))));
    let limiter = Limiter::new(connection, instance, standby);
    let acme = manager("acme");
    for charged in 0..3 {
        for reader in [&acme, &viewer("acme")] {
            let (status, body) = asks(&quotas, reader, "/").await;
            assert_eq!((status, &body["plan"]), (200, &json!("Enterprise")));
            assert_eq!(body["minute"]["limit"], 120);
            assert_eq!(body["minute"]["remaining"], 120 - charged);
            assert_eq!(body["day"]["remaining"], 50_000 - charged);
            assert!(body["asOf"].is_string() && body["day"]["opensInSeconds"].is_u64());
        }
        let now = crate::clock::now();
        limiter.charge(acme.account(), limits(), now).await.unwrap();
    }
    assert_eq!(
        asks(&quotas, &manager("globex"), "/").await.1["minute"]["remaining"],
        120
    );
}

#[tokio::test]
async fn another_plan_in_use_is_asked_for_by_name_and_one_without_access_has_no_quota() {
    let (connection, instance) = store().await;
    let quotas = Quotas::new(connection, instance);
    let free = member("acme", "Free", Role::Manager);
    let (status, body) = asks(&quotas, &free, "/").await;
    assert_eq!((status, &body["code"]), (403, &json!("plan_insufficient")));
    let (status, body) = asks(&quotas, &free, "/?plan=Enterprise").await;
    assert_eq!((status, &body["minute"]["limit"]), (200, &json!(120)));
    for target in [
        "/?plan=Unknown",
        "/?plan=%20",
        "/?plan=Free&plan=Free",
        "/?plans=Free",
    ] {
        let (status, body) = asks(&quotas, &free, target).await;
        assert_eq!(
            (status, &body["code"]),
            (400, &json!("invalid_parameter")),
            "{target}"
        );
    }
}

#[tokio::test]
async fn usage_is_told_day_by_day_until_today() {
    let (connection, instance) = store().await;
    let usage = Usage::new(connection, instance);
    let now = Timestamp::parse("2026-03-01T12:00:00Z").unwrap();
    let of = |moment: &str, accepted, limited| Use {
        account: "acme".parse().unwrap(),
        day: UtcDay::from(Timestamp::parse(moment).unwrap()),
        accepted,
        limited,
        keys: Vec::new(),
    };
    let uses = vec![
        of("2026-03-01T01:00:00Z", 7, 1),
        of("2026-02-28T01:00:00Z", 5, 0),
    ];
    usage.add(uses).await.unwrap();
    let asks = async |account: &str, target: &str| {
        let received = received("GET", target, &[]);
        let query = Query::parse(received.uri.query()).unwrap();
        let asked = AccountRequest {
            received: &received,
            path: &["usage"],
            query: &query,
            body: &Default::default(),
        };
        told(crate::usage::answer(&usage, &manager(account), &asked, now).await)
    };
    let (status, body) = asks("acme", "/?days=3").await;
    let day =
        |day, accepted, limited| json!({ "day": day, "accepted": accepted, "limited": limited });
    let expected = json!([
        day("2026-02-27", 0, 0),
        day("2026-02-28", 5, 0),
        day("2026-03-01", 7, 1)
    ]);
    assert_eq!((status, &body["data"]), (200, &expected));
    let (_, whole) = asks("acme", "/").await;
    assert_eq!(
        (&whole["count"], whole["data"].as_array().unwrap().len()),
        (&json!(30), 30)
    );
    assert_eq!(
        asks("globex", "/?days=1").await.1["data"],
        json!([day("2026-03-01", 0, 0)])
    );
    assert_eq!(asks("acme", "/?days=36").await.1["parameter"], "days");
}

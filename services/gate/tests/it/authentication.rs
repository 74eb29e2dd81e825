//! Keys over time: their begin and end are checked on Redis' clock, and their changes act on open connections. Attacks
//! are in `attacks`.

use anyhow::ensure;
use water_domain::Timestamp;
use water_harness::{Answer, Clock, HttpClient, Redis, wait_until};
use water_kit::{Gate, Key, SOON};

use crate::whole::{is, problem};

const TARGET: &str = "/api/v1/stress";

/// Waits until a request with the key is answered with this status.
async fn comes_to(gate: &Gate, key: &Key, status: u16) -> Answer {
    let answered = async || {
        let answer = gate.get(TARGET, key).await;
        ensure!(answer.status == status, "{answer:?}");
        Ok(answer)
    };
    wait_until("another answer", SOON, answered).await.unwrap()
}

#[tokio::test]
async fn fault_36_a_key_is_good_from_its_beginning_to_its_end_however_redis_clock_is_moved() {
    let clock = Clock::new().unwrap();
    let redis = Redis::start_on(&clock).await.unwrap();
    let gate = Gate::builder().redis(&redis).start().await;
    let now = async || gate.directory.leases().await.unwrap().now.as_millis();
    let begun = now().await;
    let at = |millis| Timestamp::from_millis(begun + millis).unwrap();
    let lasting = gate.key().await;
    let key = Key::new().not_before(at(-1)).expires(at(60_000));
    let key = gate.publish(key).await;
    assert_eq!(gate.get(TARGET, &key).await.status, 200);
    // Skip all but the last second.
    clock.set(59).unwrap();
    let ended = comes_to(&gate, &key, 401).await;
    assert_eq!(problem(&ended), is(401, "key_expired"));
    let early = begun + 60_000 - now().await;
    assert!(early <= 0, "refused {early} ms too early");
    for (ahead, code) in [(3600, "key_expired"), (-3600, "key_not_yet_valid")] {
        clock.set(ahead).unwrap();
        let refused = async || {
            let answer = gate.get(TARGET, &key).await;
            ensure!(problem(&answer) == is(401, code), "{answer:?}");
            Ok(())
        };
        wait_until(code, SOON, refused).await.unwrap();
        assert_eq!(gate.get(TARGET, &lasting).await.status, 200, "{ahead}");
    }
    clock.set(0).unwrap();
    comes_to(&gate, &key, 200).await;
}

#[tokio::test]
async fn a_change_is_seen_by_the_next_request_of_a_warm_connection_to_every_gate() {
    async fn all_answer(clients: &mut [HttpClient], key: &Key, expected: Option<&str>) {
        for client in clients {
            let answer = client.get(TARGET, &key.text).await.unwrap();
            match expected {
                Some(code) => assert_eq!(problem(&answer), is(401, code)),
                None => assert_eq!(answer.status, 200, "{answer:?}"),
            }
        }
    }
    let gate = Gate::start().await;
    let other = gate.another("gate-1").await;
    let key = gate.key().await;
    let mut warm = [gate.connect().await, other.connect().await];
    all_answer(&mut warm, &key, None).await;
    gate.publish(key.clone().suspended()).await;
    all_answer(&mut warm, &key, Some("key_suspended")).await;
    gate.publish(key.clone()).await;
    all_answer(&mut warm, &key, None).await;
    gate.revoke(&key).await;
    all_answer(&mut warm, &key, Some("invalid_key")).await;
}

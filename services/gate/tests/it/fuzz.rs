//! Fuzzing: the attacks, mutated at random, sent to the real gate.
//!
//! The pass of every test run is short; `WATER_FUZZ_INPUTS` sets its number of inputs, and `WATER_FUZZ_SEED` another
//! seed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Result;
use tokio::task::JoinSet;
use water_harness::{HttpClient, Mutator};
use water_kit::gate::Seen;
use water_kit::{Gate, Key};

use crate::attacks::corpus;
use crate::whole::{Whole, read};

/// Number of inputs, which take a few seconds.
const INPUTS: u64 = 4_000;
/// Number of concurrent connections.
const CLIENTS: u64 = 8;
/// Headers that a service may receive.
const FORWARDED: [&str; 9] = [
    "accept",
    "accept-encoding",
    "host",
    "if-none-match",
    "traceparent",
    "tracestate",
    "x-request-id",
    "x-water-format",
    "x-water-identity",
];
/// Every documented status but 500, which would be a bug.
const DOCUMENTED: [&str; 11] = [
    "200", "304", "400", "401", "404", "405", "414", "417", "429", "431", "503",
];

/// Number of answers of each status.
type Statuses = BTreeMap<String, u64>;

fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap())
}

/// Returns attacks, and requests of an honest client.
fn seeds(key: &Key) -> Vec<Vec<u8>> {
    let bearer = key.bearer();
    let honest = [
        "GET /api/v1/openapi.json HTTP/1.1\r\nHost: water\r\n\r\n".to_owned(),
        "HEAD /api/v1/openapi.json HTTP/1.1\r\nHost: water\r\n\r\n".to_owned(),
        format!(
            "HEAD /api/v1/risque?dept=2A HTTP/1.1\r\nHost: water\r\nAuthorization: {bearer}\r\n\
             If-None-Match: \"abc\"\r\ntraceparent: 00-1-2-01\r\nX-Request-Id: request-1\r\n\r\n"
        ),
        format!(
            "GET /api/v1/conformite?limit=5&offset=1 HTTP/1.1\r\nHost: water\r\n\
             X-Forwarded-For: 192.0.2.1, 2001:db8::1\r\nX-Water-Identity: v1;account=x\r\n\
             Connection: keep-alive, x-water-identity\r\nAuthorization: {bearer}\r\n\r\n"
        ),
    ];
    let honest = honest.map(String::into_bytes);
    corpus(key).into_iter().chain(honest).collect()
}

#[tokio::test]
async fn whatever_is_sent_nothing_breaks_and_nobody_is_served_without_a_key() {
    let gate = Gate::builder()
        .set("WATER_LOG", "info,access=off")
        .set("WATER_TRUSTED_PROXIES", "127.0.0.0/8");
    let gate = gate.start().await;
    let key = gate.publish(Key::new().on_plan("Unlimited")).await;
    let (inputs, seed) = (
        setting("WATER_FUZZ_INPUTS", INPUTS),
        setting("WATER_FUZZ_SEED", 1),
    );
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let mutator = Mutator::new(seeds(&key), seed * CLIENTS + client);
        let (address, key) = (gate.address(), key.text.clone());
        clients.spawn(async move {
            let mut statuses = Statuses::new();
            for input in mutator.take((inputs / CLIENTS) as usize) {
                let answers = exchange(address, &input).await;
                let answers = answers.unwrap_or_else(|error| {
                    panic!("{error:#}: {:?}", String::from_utf8_lossy(&input))
                });
                check(&input, &answers, &key);
                for answer in answers {
                    *statuses.entry(answer.status().to_owned()).or_default() += 1;
                }
            }
            statuses
        });
    }
    let mut statuses = Statuses::new();
    while let Some(ended) = clients.join_next().await {
        for (status, count) in ended.unwrap() {
            *statuses.entry(status).or_default() += count;
        }
        gate.service.take_seen().iter().for_each(check_forwarded);
    }
    println!("{inputs} inputs, answers by status: {statuses:?}");
    assert_eq!(gate.process.exit_status().unwrap(), None);
    let panicked = gate.process.log().contains("panicked");
    assert!(!panicked, "{}", gate.process.log_end());
    assert_eq!(gate.get("/api/v1/stress", &key).await.status, 200);
}

/// Sends an input on a new connection and reads all answers.
async fn exchange(address: SocketAddr, input: &[u8]) -> Result<Vec<Whole>> {
    let mut client = HttpClient::connect(address).await?;
    client.send(input).await?;
    client.finish().await?;
    Ok(read(&client.closed().await?))
}

/// Checks the invariants of the answers to any input.
fn check(input: &[u8], answers: &[Whole], key: &str) {
    let text = String::from_utf8_lossy(input);
    // A head ends with an empty line; one that the parser refuses may have none, and is the last.
    let requests = input
        .windows(3)
        .filter(|end| end.starts_with(b"\n\n") || *end == b"\n\r\n");
    let requests = requests.count() + usize::from(input.ends_with(b"\n\n"));
    let unread = answers.iter().filter(|answer| answer.is_unread()).count();
    assert!(answers.len() - unread <= requests, "{text:?}: {answers:?}");
    let earlier = answers.split_last().map_or(&[][..], |(_, earlier)| earlier);
    let ended = earlier.iter().any(Whole::closes);
    assert!(!ended && unread <= 1, "{text:?}: {answers:?}");
    let has_key = text.contains(key);
    for answer in answers {
        assert!(
            DOCUMENTED.contains(&answer.status()),
            "{text:?}: {answer:?}"
        );
        assert!(has_key || !answer.is_charged(), "{text:?}: {answer:?}");
        let is_free = answer.has_body_like(r#"{"openapi":"#) || answer.has_body_like("");
        assert!(
            has_key || answer.status() != "200" || is_free,
            "{text:?}: {answer:?}"
        );
        assert!(
            !format!("{answer:?}").contains(&key[17..]),
            "{text:?}: {answer:?}"
        );
    }
}

/// Checks the invariants of any request that reaches a service.
fn check_forwarded(seen: &Seen) {
    assert_eq!(seen.values("x-water-identity").len(), 1, "{seen:?}");
    let identity = seen.values("x-water-identity")[0];
    assert!(identity.starts_with("v1;account=account-"), "{seen:?}");
    for name in seen.names() {
        assert!(FORWARDED.contains(&name.as_str()), "{seen:?}");
    }
    let (method, rest) = seen.line.split_once(' ').unwrap();
    assert!(["GET", "HEAD"].contains(&method), "{seen:?}");
    let target = rest.strip_suffix(" HTTP/1.1").unwrap();
    let path = target.split('?').next().unwrap();
    let paths = ["stress", "risque", "hydrorisk", "conformite"];
    assert!(
        paths.contains(&path.strip_prefix("/api/v1/").unwrap()),
        "{seen:?}"
    );
}

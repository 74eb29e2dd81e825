//! A revoked key at three gates under load. How long it is still accepted is printed here and judged by
//! the benchmark of the gate, where no other test takes part.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use water_harness::{HttpClient, Redis};

use crate::peer::Peer;
use crate::site::{Key, Site};

const TARGET: &str = "/api/v1/stress";
/// As many as the target names.
const ACCOUNTS: usize = 600;
/// Requests a second, over all gates.
const RATE: u32 = 1_000;
const CONNECTIONS: u32 = 24;
const REVOCATIONS: usize = 200;
/// Between two requests with a key that is about to be revoked.
const PROBE_EVERY: Duration = Duration::from_millis(8);

#[tokio::test]
async fn a_revoked_key_is_refused_by_three_gates_under_load() {
    let site = Site::start().await;
    let redis = Redis::shared().await.unwrap();
    let others = [
        site.another(redis, "gate-1").await,
        site.another(redis, "gate-2").await,
    ];
    // No limit, so that 429 can only mean that the key is refused.
    let keys: Vec<Key> = (0..ACCOUNTS + REVOCATIONS)
        .map(|_| Key::new().on_plan("Unlimited"))
        .collect();
    site.publish_all(&keys).await;
    let (steady, doomed) = keys.split_at(ACCOUNTS);

    let load = Load::start(&site, &others, steady).await;
    let mut probes = connections(&site, &others).await;
    let mut latencies = Vec::new();
    for key in doomed {
        latencies.push(revoked_after(&site, key, &mut probes).await);
    }
    let (answered, rate) = load.stop().await;

    latencies.sort();
    let at = |part: usize| latencies[(latencies.len() * part).div_ceil(100) - 1];
    let (median, late, last) = (at(50), at(99), at(100));
    println!(
        "{REVOCATIONS} revocations beside {rate:.0} requests/s ({answered} in all): last accepted after \
         p50 {median:?}, p99 {late:?}, at most {last:?}"
    );
}

/// One connection to each gate.
async fn connections(site: &Site, others: &[Peer]) -> Vec<HttpClient> {
    let mut clients = vec![site.connect().await];
    for other in others {
        clients.push(other.connect().await);
    }
    clients
}

/// From just before the write to the last answer of any gate that accepted the key: an upper bound,
/// since the answer's own way is in it.
async fn revoked_after(site: &Site, key: &Key, probes: &mut [HttpClient]) -> Duration {
    let accepted_once = Barrier::new(probes.len() + 1);
    let refused = join_all(
        probes
            .iter_mut()
            .map(|probe| last_accepted(probe, key, &accepted_once)),
    );
    let revoke = async {
        let revocation = site.revocation(key).await;
        accepted_once.wait().await;
        let written = Instant::now();
        site.writer.declare(&revocation).await.unwrap();
        written
    };
    let (accepted, written) = tokio::join!(refused, revoke);
    let last = accepted.into_iter().max().unwrap();
    last.saturating_duration_since(written)
}

/// Asks until the key is refused.
async fn last_accepted(probe: &mut HttpClient, key: &Key, accepted_once: &Barrier) -> Instant {
    let mut accepted = None;
    let mut pace = interval(PROBE_EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let answer = probe.get(TARGET, &key.text).await.unwrap();
        match (answer.status, accepted) {
            (200, _) => {
                let is_first = accepted.replace(Instant::now()).is_none();
                if is_first {
                    accepted_once.wait().await;
                }
            }
            // 429: as a wrong key, after many from this address.
            (401 | 429, Some(last)) => return last,
            _ => panic!("{answer:?}"),
        }
    }
}

/// Steady requests of many accounts, each of which must be answered 200.
struct Load {
    began: Instant,
    over: Arc<AtomicBool>,
    answered: Arc<AtomicU32>,
    connections: JoinSet<()>,
}

impl Load {
    async fn start(site: &Site, others: &[Peer], keys: &[Key]) -> Self {
        let mut load = Self {
            began: Instant::now(),
            over: Arc::default(),
            answered: Arc::default(),
            connections: JoinSet::new(),
        };
        let keys: Arc<[Key]> = keys.into();
        for number in 0..CONNECTIONS {
            let client = match number as usize % (others.len() + 1) {
                0 => site.connect().await,
                other => others[other - 1].connect().await,
            };
            let (over, answered) = (Arc::clone(&load.over), Arc::clone(&load.answered));
            let keys = Arc::clone(&keys);
            load.connections.spawn(async move {
                ask(client, number as usize, &keys, &over, &answered).await;
            });
        }
        load
    }

    /// How many were answered, and how many a second.
    async fn stop(self) -> (u32, f64) {
        let seconds = self.began.elapsed().as_secs_f64();
        self.over.store(true, Ordering::Relaxed);
        self.connections.join_all().await;
        let answered = self.answered.load(Ordering::Relaxed);
        (answered, f64::from(answered) / seconds)
    }
}

/// One connection's part of the load; its keys are its own.
async fn ask(
    mut client: HttpClient,
    number: usize,
    keys: &[Key],
    over: &AtomicBool,
    answered: &AtomicU32,
) {
    let mut ticks = interval(Duration::from_secs(1) * CONNECTIONS / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let own = keys
        .iter()
        .skip(number)
        .step_by(CONNECTIONS as usize)
        .cycle();
    for key in own {
        ticks.tick().await;
        if over.load(Ordering::Relaxed) {
            return;
        }
        let answer = client.get(TARGET, &key.text).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

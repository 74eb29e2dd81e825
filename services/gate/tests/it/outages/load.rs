//! Steady requests from many accounts, and some with unknown keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::ensure;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use water_harness::wait_until;

use crate::site::{Key, SOON, Site};

pub const TARGET: &str = "/api/v1/stress";
/// Connections, each with its own part of the keys.
const CLIENTS: usize = 6;
/// Between two requests of one connection: 60 requests/s in all, 60 a minute of each account.
const PACE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct Sample {
    took: Duration,
    status: u16,
}

/// The running load.
pub struct Load {
    samples: Arc<Mutex<Vec<Sample>>>,
    strangers: Arc<Mutex<Vec<u16>>>,
    stop: watch::Sender<bool>,
    clients: JoinSet<()>,
}

/// What was answered.
#[derive(Debug)]
pub struct Answers {
    good: Vec<Sample>,
    strangers: Vec<u16>,
}

impl Load {
    /// Sends until it is stopped; `keys` are good.
    pub async fn start(site: &Site, keys: &[Key]) -> Self {
        let (stop, stopped) = watch::channel(false);
        let samples = Arc::<Mutex<Vec<Sample>>>::default();
        let strangers = Arc::<Mutex<Vec<u16>>>::default();
        let mut clients = JoinSet::new();
        for part in keys.chunks(keys.len().div_ceil(CLIENTS)) {
            let texts = part.iter().map(|key| key.text.clone()).collect();
            let client = site.connect().await;
            let noted = Arc::clone(&samples);
            clients.spawn(send(client, texts, stopped.clone(), move |sample| {
                noted.lock().unwrap().push(sample);
            }));
        }
        let noted = Arc::clone(&strangers);
        let texts = vec![Key::new().text, "x".repeat(40), Key::new().text];
        let stranger = site.connect().await;
        clients.spawn(send(stranger, texts, stopped, move |sample| {
            noted.lock().unwrap().push(sample.status);
        }));
        Self {
            samples,
            strangers,
            stop,
            clients,
        }
    }

    /// What good keys are answered from here on, so many times.
    pub async fn next(&self, answers: usize) -> Answers {
        let so_far = self.samples.lock().unwrap().len();
        let come = async || {
            let more = self.samples.lock().unwrap().len() - so_far;
            ensure!(more >= answers, "{more} have come");
            Ok(())
        };
        wait_until("answers", SOON, come).await.unwrap();
        Answers {
            good: self.samples.lock().unwrap()[so_far..].to_vec(),
            strangers: Vec::new(),
        }
    }

    /// Everything that was answered.
    pub async fn stop(mut self) -> Answers {
        self.stop.send_replace(true);
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
        Answers {
            good: self.samples.lock().unwrap().clone(),
            strangers: self.strangers.lock().unwrap().clone(),
        }
    }
}

impl Answers {
    /// The time within which so many of 100 were answered.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut times: Vec<Duration> = self.good.iter().map(|sample| sample.took).collect();
        times.sort();
        times[(times.len() * percent / 100).min(times.len() - 1)]
    }

    /// Every good key got 200, and nobody else did.
    pub fn held(&self) {
        let failed: Vec<_> = self.good.iter().filter(|s| s.status != 200).collect();
        assert!(failed.is_empty(), "{} {:?}", failed.len(), failed.first());
        assert!(!self.strangers.is_empty());
        let strange = self.strangers.iter();
        let admitted = strange.filter(|status| ![401, 429, 503].contains(*status));
        assert_eq!(admitted.count(), 0, "{:?}", self.strangers);
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (good, strangers) = (&self.good, &self.strangers);
        let good = by_status(good.iter().map(|sample| sample.status));
        let strangers = by_status(strangers.iter().copied());
        write!(formatter, "good keys {good:?}, strangers {strangers:?}")
    }
}

/// How many answers of each status.
fn by_status(statuses: impl Iterator<Item = u16>) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    statuses.for_each(|status| *counts.entry(status).or_default() += 1);
    counts
}

async fn send(
    mut client: water_harness::HttpClient,
    keys: Vec<String>,
    stopped: watch::Receiver<bool>,
    note: impl Fn(Sample) + Send + 'static,
) {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for key in keys.iter().cycle() {
        pace.tick().await;
        if *stopped.borrow() {
            return;
        }
        let began = Instant::now();
        let status = client.get(TARGET, key).await.unwrap().status;
        let took = began.elapsed();
        note(Sample { took, status });
    }
}

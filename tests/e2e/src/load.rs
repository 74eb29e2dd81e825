//! An open-loop load: requests leave at their scheduled times whether answers come or not, as those of
//! independent clients do. Each one is counted: sent = ok + expected + failed.

mod witness;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at},
};
use water_harness::{Answer, HttpClient};

use crate::Water;
use witness::{Standstill, Witness};

/// Targets of a load, in turn: one of each family of the API.
pub const TARGETS: [&str; 4] = [
    "/api/v1/stress",
    "/api/v1/risque",
    "/api/v1/hydrorisk",
    "/api/v1/conformite",
];

/// Time after which a client has given up, unless the load says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same of clients whose answers must be prompt. Whatever the patience, only standstills that began so soon after a
/// request was due may be why it failed: a later one is not why it was not answered before.
const PROMPT: Duration = Duration::from_secs(10);
/// Clients behind one machine share so many connections; a request whose turn has not come waits, and its
/// waiting counts.
const CONNECTIONS: usize = 256;
/// Failures that are shown: enough to distinguish them.
const SHOWN: usize = 8;
/// Most standstills, of whichever cores, that may explain failures: with more it could not be measured.
const STANDSTILLS: usize = 3;
/// Largest share of all requests that may fail in them.
const FAILED_IN_STANDSTILLS: f64 = 0.01;

/// Requests of a load, and their rate.
pub struct Load {
    /// Target of the load.
    pub water: Water,
    /// Requests a second.
    pub rate: u32,
    /// Requests that leave at once.
    pub at_once: u32,
    /// Keys, which take turns.
    pub keys: Vec<String>,
    /// Targets, which take turns, such as `/api/v1/stress`; each key meets each of them.
    pub targets: Vec<&'static str>,
    /// Status other than 200 and 304 that is no failure.
    pub expected: Option<u16>,
    /// Time from when a request is due within which it must be answered: a minute by default, which says that it is
    /// answered at all. How soon is for the tests of `long`: see [`Load::promptly`].
    pub patience: Duration,
}

impl Load {
    /// Makes a load of requests that leave one by one, at the same distance, and must all be answered well.
    pub fn evenly(water: &Water, rate: u32, keys: Vec<String>, targets: &[&'static str]) -> Self {
        Self {
            water: water.clone(),
            rate,
            at_once: 1,
            keys,
            targets: targets.to_vec(),
            expected: None,
            patience: PATIENCE,
        }
    }

    /// Makes the load of clients that give up after ten seconds.
    pub fn promptly(self) -> Self {
        Self {
            patience: PROMPT,
            ..self
        }
    }
}

/// Result of a load.
#[derive(Debug, Default)]
pub struct Report {
    /// Requests whose time had come.
    pub sent: usize,
    /// Requests that were answered 200 or 304.
    pub ok: usize,
    /// Requests that were answered with the expected status.
    pub expected: usize,
    /// The other requests: other answers, broken connections, none in time.
    pub failed: usize,
    /// The failures.
    pub failures: Vec<Failure>,
    /// Times in which a core of the machine stood still, each apart from the others.
    pub standstills: Vec<Standstill>,
    /// Times from the scheduled time to the answer, of all that were answered well.
    pub latencies: Vec<Duration>,
    /// Times at which each of the ok was sent and answered, in the order of answers.
    pub accepted: Vec<(Instant, Instant)>,
}

/// A request that failed.
#[derive(Debug)]
pub struct Failure {
    due: Instant,
    failed: Instant,
    /// Status of its answer, if there was one.
    status: Option<u16>,
    /// Its answer or error, on one line.
    pub text: String,
}

impl Failure {
    /// Whether nobody was able to answer, and a core stood still meanwhile, early enough to be why. Another status is
    /// an answer, and wrong.
    fn is_explained_by(&self, standstills: &[Standstill]) -> bool {
        let end = self.failed.min(self.due + PROMPT);
        self.status
            .is_none_or(|status| (502..=504).contains(&status))
            && standstills
                .iter()
                .any(|still| self.due < still.to && still.from < end)
    }
}

/// The first failures, a line each.
fn shown(failures: &[&Failure]) -> String {
    let shown = failures.iter().take(SHOWN).map(|failure| &*failure.text);
    shown.collect::<Vec<_>>().join("\n")
}

struct Shared {
    load: Load,
    connections: Semaphore,
    idle: Mutex<Vec<HttpClient>>,
    report: Mutex<Report>,
}

/// Sends the load for this long.
pub async fn send_for(load: Load, lasting: Duration) -> Result<Report> {
    let end = sleep_until(Instant::now() + lasting);
    let over = async {
        end.await;
        Ok(())
    };
    Ok(send_during(load, over).await?.1)
}

/// Sends the load until `work` has ended, and waits for the last answers.
pub async fn send_during<T>(
    load: Load,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, Report)> {
    let (stop, stopped) = watch::channel(false);
    let witness = Witness::start();
    let sending = tokio::spawn(send(load, stopped));
    let result = work.await;
    stop.send(true)
        .context("the load has ended before its time")?;
    let mut report = sending
        .await
        .context("the load has ended before its time")?;
    report.standstills = witness.end();
    let accounted = report.ok + report.expected + report.failed;
    ensure!(
        report.sent == accounted,
        "{} sent, {accounted} accounted for",
        report.sent
    );
    let result = result.with_context(|| format!("under load, of which {report}"))?;
    Ok((result, report))
}

async fn send(load: Load, mut stopped: watch::Receiver<bool>) -> Report {
    let mut schedule = interval(Duration::from_secs(1) * load.at_once / load.rate);
    schedule.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let shared = Arc::new(Shared {
        load,
        connections: Semaphore::new(CONNECTIONS),
        idle: Mutex::default(),
        report: Mutex::default(),
    });
    let mut requests = JoinSet::new();
    let mut numbers = 0..;
    loop {
        let due = tokio::select! {
            due = schedule.tick() => due,
            _ = stopped.changed() => break,
        };
        for number in numbers.by_ref().take(shared.load.at_once as usize) {
            lock(&shared.report).sent += 1;
            let shared = Arc::clone(&shared);
            requests.spawn(async move { shared.request(number, due).await });
        }
        while requests.try_join_next().is_some() {}
    }
    while requests.join_next().await.is_some() {}
    std::mem::take(&mut *lock(&shared.report))
}

impl Shared {
    async fn request(&self, number: usize, due: Instant) {
        let keys = &self.load.keys;
        let targets = &self.load.targets;
        let key = &keys[number % keys.len()];
        let target = targets[(number + number / keys.len()) % targets.len()];
        let patience = self.load.patience;
        let answer = timeout_at(due + patience, self.exchange(target, key)).await;
        let answered = Instant::now();
        let mut report = lock(&self.report);
        match answer {
            Ok(Ok((answer, sent))) if matches!(answer.status, 200 | 304) => {
                report.ok += 1;
                report.latencies.push(answered - due);
                report.accepted.push((sent, answered));
            }
            Ok(Ok((answer, _))) if Some(answer.status) == self.load.expected => {
                report.expected += 1;
                report.latencies.push(answered - due);
            }
            other => {
                let (status, reason) = match other {
                    Ok(Ok((answer, _))) => (Some(answer.status), format!("{answer:?}")),
                    Ok(Err(error)) => (None, format!("{error:#}")),
                    Err(_) => (None, format!("no answer within {patience:?}")),
                };
                report.failed += 1;
                report.failures.push(Failure {
                    due,
                    failed: answered,
                    status,
                    // The end of what a test prints is what its report shows.
                    text: format!("{target}: {}", reason.replace('\n', " ")),
                });
            }
        }
    }

    /// Returns the answer, and the time at which its request was sent.
    async fn exchange(&self, target: &str, key: &str) -> Result<(Answer, Instant)> {
        let _turn = self.connections.acquire().await?;
        let idle = lock(&self.idle).pop();
        let mut client = match idle {
            Some(client) => client,
            None => self.load.water.connect().await?,
        };
        let sent = Instant::now();
        let answer = client.get(target, key).await?;
        if answer.header("connection") != Some("close") {
            lock(&self.idle).push(client);
        }
        Ok((answer, sent))
    }
}

impl Report {
    /// Fails if a request failed that no standstill of a core explains. Fails, too, where standstills were many, or
    /// explain many failures: a core that stands still need not be why a request fails, so nothing was measured.
    pub fn without_failures(&self) -> Result<()> {
        let (explained, others): (Vec<_>, Vec<_>) = self
            .failures
            .iter()
            .partition(|failure| failure.is_explained_by(&self.standstills));
        ensure!(others.is_empty(), "{self}\n{}", shown(&others));
        if explained.is_empty() {
            return Ok(());
        }
        let is_measured = self.standstills.len() <= STANDSTILLS
            && explained.len() as f64 <= self.sent as f64 * FAILED_IN_STANDSTILLS;
        let report = format!("while a core stood still: {self}\n{}", shown(&explained));
        ensure!(is_measured, "could not be measured {report}");
        println!("failed {report}");
        Ok(())
    }

    /// Returns the latency that this share (0 to 1) of the answers did not exceed.
    pub fn latency(&self, share: f64) -> Duration {
        percentile(&self.latencies, share)
    }

    /// Returns the first span shorter than `window` in which more than `limit` requests can be proven to have
    /// been accepted: from the sending of one to the answer to the `limit`-th after it, which a server that
    /// keeps to the limit cannot make shorter than its window.
    pub fn overfull(&self, limit: usize, window: Duration) -> Option<Duration> {
        let mut accepted = self.accepted.clone();
        accepted.sort_by_key(|&(sent, _)| sent);
        let spans = accepted.iter().zip(accepted.iter().skip(limit));
        spans
            .map(|((sent, _), (_, answered))| *answered - *sent)
            .find(|span| *span < window)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sent,
            ok,
            expected,
            failed,
            ..
        } = self;
        let (half, most) = (self.latency(0.5), self.latency(0.99));
        write!(
            formatter,
            "{sent} sent = {ok} ok + {expected} expected + {failed} failed; "
        )?;
        write!(formatter, "p50 {half:.1?}, p99 {most:.1?}")?;
        for still in &self.standstills {
            write!(
                formatter,
                "; a core stood still for {:.1?}",
                still.to - still.from
            )?;
        }
        Ok(())
    }
}

/// Returns the value that this share (0 to 1) of `durations` does not exceed; zero of none.
pub fn percentile(durations: &[Duration], share: f64) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    // A share of a count that fits in memory: the product is a small whole number.
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

//! Requests to one server: each connection sends the next one when its answer is complete, and not before its
//! time where the load has a pace. Every answer is checked, and the first wrong one ends the measurement.

mod connection;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep, timeout};
use water_harness::wait_until;

use crate::cpu;
pub use connection::Connection;

/// A machine that does so much else that a slice passes without any answer gets some time more.
const PATIENCE: Duration = Duration::from_secs(20);

/// Coprime to every number of keys, rows and offsets that is used: neighbours in time are far apart, and each
/// has its turn.
pub const STRIDE: u64 = 7_368_787;

/// Requests to a server, and the answers that must come back.
#[derive(Clone, Debug)]
pub struct Load {
    /// Port of the server on loopback.
    pub address: SocketAddr,
    /// Requests under way at any moment.
    pub connections: usize,
    /// Requests, one after the other.
    pub requests: Arc<Requests>,
    /// Status of every answer.
    pub status: u16,
    /// Length of every answer's body, where that does not vary. A body is always read to its end.
    pub length: Option<usize>,
    /// Time from one request of a connection to its next, made up for when it is late; without one the next
    /// follows its answer.
    pub pace: Option<Duration>,
}

/// Requests that are sent one after the other, and then from the beginning.
#[derive(Debug)]
pub struct Requests {
    form: Form,
    next: AtomicU64,
}

#[derive(Debug)]
enum Form {
    /// The measured request with each key, from one of many clients.
    Keys(Arc<[Box<str>]>),
    /// Whole requests.
    Whole(Vec<String>),
}

/// Duration of a load.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Time before anything is counted.
    pub warm_up: Duration,
    /// Time that counts.
    pub counted: Duration,
}

impl Slice {
    /// Slice of these milliseconds.
    pub const fn millis(warm_up: u64, counted: u64) -> Self {
        Self {
            warm_up: Duration::from_millis(warm_up),
            counted: Duration::from_millis(counted),
        }
    }
}

/// Work of a process in one slice.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Complete answers.
    pub answers: u64,
    /// CPU time of the process for them.
    pub cpu: Duration,
}

impl Sample {
    /// CPU time of one request, in microseconds.
    pub fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers as f64
    }
}

impl Requests {
    /// The measured request with each of `keys` in turn.
    pub fn with_keys(keys: &Arc<[Box<str>]>) -> Arc<Self> {
        Self::new(Form::Keys(Arc::clone(keys)))
    }

    /// Whole requests in turn.
    pub fn whole(texts: Vec<String>) -> Arc<Self> {
        Self::new(Form::Whole(texts))
    }

    fn new(form: Form) -> Arc<Self> {
        let next = AtomicU64::new(0);
        Arc::new(Self { form, next })
    }

    /// Writes the next request over the content of `request`.
    fn next(&self, request: &mut Vec<u8>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match &self.form {
            Form::Keys(keys) => {
                let key = &keys[(number.wrapping_mul(STRIDE) % keys.len() as u64) as usize];
                connection::write_request(request, key, number);
            }
            Form::Whole(texts) => {
                let text = &texts[(number % texts.len() as u64) as usize];
                request.clear();
                request.extend_from_slice(text.as_bytes());
            }
        }
    }
}

impl Load {
    /// Sends the load for one slice, and reads the CPU time of `process` at both ends of what is counted.
    pub async fn send(&self, process: u32, slice: Slice) -> Result<Sample> {
        let answers = Arc::new(AtomicU64::new(0));
        let counted = async {
            sleep(slice.warm_up).await;
            let before = (cpu::time(process)?, answers.load(Ordering::Relaxed));
            sleep(slice.counted).await;
            wait_until("an answer", PATIENCE, async || {
                let is_answered = answers.load(Ordering::Relaxed) > before.1;
                is_answered.then_some(()).context("none has come")
            })
            .await?;
            let after = (cpu::time(process)?, answers.load(Ordering::Relaxed));
            let cpu = after.0.checked_sub(before.0);
            Ok(Sample {
                answers: after.1 - before.1,
                cpu: cpu.context("a child of the measured process has ended meanwhile")?,
            })
        };
        self.during(&answers, counted).await
    }

    /// Sends the load for as long as `work` takes, and counts the answers. Requests that are under way then
    /// are answered: a service whose client leaves may close its connection to PostgreSQL, whose end would
    /// fall into the next slice.
    pub async fn during<T>(
        &self,
        answers: &Arc<AtomicU64>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut connections = JoinSet::new();
        let is_over = Arc::<AtomicBool>::default();
        for number in 0..self.connections {
            let (load, answers, is_over) =
                (self.clone(), Arc::clone(answers), Arc::clone(&is_over));
            connections.spawn(async move { load.keep_asking(number, &answers, &is_over).await });
        }
        let done = tokio::select! {
            done = work => done,
            Some(ended) = connections.join_next() => {
                ended??;
                bail!("a connection has ended by itself");
            }
        };
        is_over.store(true, Ordering::Relaxed);
        let last_answers = async { while connections.join_next().await.is_some() {} };
        // A server that was stopped meanwhile answers none.
        let _ = timeout(PATIENCE, last_answers).await;
        done
    }

    /// Returns when the load is over, or when an answer is not as expected.
    async fn keep_asking(
        &self,
        number: usize,
        answers: &AtomicU64,
        is_over: &AtomicBool,
    ) -> Result<()> {
        let mut connection = Connection::open(self.address).await?;
        // Connections have their turns at different times.
        let mut turns = self.pace.map(|pace| {
            let first = pace.mul_f64(number as f64 / self.connections as f64);
            interval_at(Instant::now() + first, pace)
        });
        while !is_over.load(Ordering::Relaxed) {
            if let Some(turns) = &mut turns {
                turns.tick().await;
            }
            let answer = connection.exchange(&self.requests).await;
            let (status, length) = answer.with_context(|| format!("ask {}", self.address))?;
            if status != self.status || self.length.is_some_and(|expected| expected != length) {
                let (expected, answer) = (self.status, connection.answer_text());
                bail!(
                    "expected {expected} and {:?} bytes, got:\n{answer}",
                    self.length
                );
            }
            answers.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_key_has_its_turn() {
        for count in [1, 100, 1_000] {
            let keys = (0..count).map(|number| number.to_string().into());
            let requests = Requests::with_keys(&keys.collect());
            let mut sent = HashSet::new();
            for _ in 0..count {
                let mut request = Vec::new();
                requests.next(&mut request);
                let text = String::from_utf8(request).unwrap();
                let key = text.lines().find_map(|line| line.split_once("Bearer "));
                sent.insert(key.unwrap().1.to_owned());
            }
            assert_eq!(sent.len(), count);
        }
    }
}

//! Requests to one server: each connection sends the next one when its answer is complete, and not
//! before its time where the load has a pace. Every answer is checked, and the first wrong one ends
//! the measurement.

mod connection;
mod requests;

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
pub use requests::Requests;

/// A machine that does so much else that a slice passes without any answer gets some time more.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who is asked what, and what must come back.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server's port on loopback.
    pub address: SocketAddr,
    /// Requests under way at any moment.
    pub connections: usize,
    /// What is sent.
    pub requests: Arc<Requests>,
    /// What every answer must be.
    pub expected: Expected,
    /// From one request of a connection to its next. A late one is made up for; none: the next
    /// follows its answer.
    pub pace: Option<Duration>,
}

/// What every answer must be. A body is always read to its announced end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Its status.
    pub status: u16,
    /// The length of its body, where that does not vary.
    pub length: Option<usize>,
}

/// How long a load is sent.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Before anything is counted.
    pub warm_up: Duration,
    /// While it is.
    pub counted: Duration,
}

/// What a process did in one slice.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Complete answers.
    pub answers: u64,
    /// The process' CPU time for them.
    pub cpu: Duration,
}

impl Sample {
    /// CPU time for one request, in microseconds.
    pub fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers as f64
    }
}

impl Load {
    /// Sends the load for one slice, and reads the CPU time of `process` at both ends of what is
    /// counted.
    pub async fn send(&self, process: u32, slice: Slice) -> Result<Sample> {
        let answers = Arc::new(AtomicU64::new(0));
        let counted = async {
            sleep(slice.warm_up).await;
            let before = (cpu::time(process)?, answers.load(Ordering::Relaxed));
            sleep(slice.counted).await;
            wait_until("an answer", PATIENCE, async || {
                let come = answers.load(Ordering::Relaxed) > before.1;
                come.then_some(()).context("none has come")
            })
            .await?;
            let after = (cpu::time(process)?, answers.load(Ordering::Relaxed));
            let cpu = after.0.checked_sub(before.0);
            Ok(Sample {
                answers: after.1 - before.1,
                cpu: cpu.context("a child of the measured process has ended meanwhile")?,
            })
        };
        self.beside(&answers, counted).await
    }

    /// Sends the load for as long as `work` takes, and counts the answers. Requests that are under way
    /// then are answered: a service whose client leaves may close its connection to PostgreSQL, whose end
    /// would fall into the next slice.
    pub async fn beside<T>(
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
        // Each connection's turn comes at another time.
        let mut turns = self.pace.map(|pace| {
            let first = pace.mul_f64(number as f64 / self.connections as f64);
            interval_at(Instant::now() + first, pace)
        });
        while !is_over.load(Ordering::Relaxed) {
            if let Some(turns) = &mut turns {
                turns.tick().await;
            }
            let answer = connection.exchange(&self.requests).await;
            let answer = answer.with_context(|| format!("ask {}", self.address))?;
            let as_expected = answer.status == self.expected.status
                && self
                    .expected
                    .length
                    .is_none_or(|length| length == answer.length);
            if !as_expected {
                bail!(
                    "expected {:?}, got:\n{}",
                    self.expected,
                    connection.answer_text()
                );
            }
            answers.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

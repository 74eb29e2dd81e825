//! A limiter and a gate at their work, until they are dropped.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use water_domain::{KeyHash, Limits};
use water_harness::wait_until;
use water_keystore::{Limiter, Reason, Record, Replica, ReplicaStatus, Standby};

use super::{SOON, limits, now};

pub struct RunningLimiter {
    pub limiter: Arc<Limiter>,
    pub standby: Arc<Standby>,
    task: JoinHandle<()>,
}

impl RunningLimiter {
    pub fn start(limiter: Limiter, standby: Arc<Standby>) -> Self {
        let limiter = Arc::new(limiter);
        let running = limiter.clone();
        let task = tokio::spawn(async move {
            running.attend().await;
        });
        Self {
            limiter,
            standby,
            task,
        }
    }

    /// Waits until it has its connection, however long that takes.
    pub async fn prepared(&self) {
        let prepared = async || Ok(self.limiter.prepare().await?);
        let prepared = wait_until("the connection", SOON, prepared).await;
        prepared.unwrap();
    }

    /// Whether one request of `account` is admitted, on a plan that allows a million.
    pub async fn admits(&self, account: &str) -> bool {
        self.admits_under(account, limits(1_000_000, 1_000_000))
            .await
    }

    /// Charges requests until Redis fails for this reason; the first failures after a break may differ.
    pub async fn fails_for(&self, reason: Reason) {
        let failing = async || {
            self.admits("acme").await;
            let failing = self.standby.status().failing.map(|(reason, _)| reason);
            ensure!(failing == Some(reason), "{failing:?}");
            Ok(())
        };
        wait_until("the failure", SOON, failing).await.unwrap();
    }

    /// Charges requests until Redis decides.
    pub async fn decides_by_redis(&self) {
        let deciding = async || {
            self.admits("acme").await;
            let status = self.standby.status();
            ensure!(status.failing.is_none() && !status.degraded, "{status:?}");
            Ok(())
        };
        wait_until("Redis to decide", SOON, deciding).await.unwrap();
    }

    /// Whether one request of `account` is admitted under these limits.
    pub async fn admits_under(&self, account: &str, limits: Limits) -> bool {
        let account = account.parse().unwrap();
        let decision = self.limiter.charge(&account, limits, now()).await;
        decision.unwrap().accepted
    }
}

impl Drop for RunningLimiter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct RunningGate {
    replica: Arc<Replica>,
    task: JoinHandle<()>,
}

impl Deref for RunningGate {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        &self.replica
    }
}

impl Drop for RunningGate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningGate {
    pub fn start(replica: Replica) -> Self {
        let replica = Arc::new(replica);
        let running = replica.clone();
        let task = tokio::spawn(async move {
            running.run().await;
        });
        Self { replica, task }
    }

    /// Record that a request with this key would find.
    pub fn record(&self, hash: KeyHash) -> Option<Record> {
        self.view().expect("the gate has a copy").record(&hash)
    }

    /// Waits until the copy has the key, or no longer has it where `known` is false.
    pub async fn knows(&self, hash: KeyHash, known: bool) {
        let seen = async || {
            let found = self.record(hash).is_some();
            ensure!(found == known, "record there: {found}, {:?}", self.status());
            Ok(())
        };
        wait_until("the gate to follow", SOON, seen).await.unwrap();
    }

    /// Waits until a lease is renewed at least this long after the call.
    pub async fn renews_for(&self, time: Duration) {
        let end = Instant::now() + time;
        let renewed = |status: &ReplicaStatus| {
            let renewal = status.since_renewal.map(|since| Instant::now() - since);
            renewal > Some(end)
        };
        self.comes_to("a renewal", renewed).await;
    }

    /// Waits until so many more loads were refused although Redis answered.
    pub async fn refuses_loads(&self, more: u64) {
        let before = self.status().setbacks;
        self.comes_to("refused loads", |status| {
            status.failure.is_none() && status.setbacks >= before + more
        })
        .await;
    }

    /// Waits until the gate doubts its copy, although the feed was not silent for long.
    pub async fn doubts(&self) {
        let doubtful = |status: &ReplicaStatus| {
            !status.current && status.since_reply < Some(Duration::from_secs(5))
        };
        self.comes_to("doubt", doubtful).await;
    }

    /// Waits until the gate's status is as wanted.
    pub async fn comes_to(&self, what: &str, wanted: impl Fn(&ReplicaStatus) -> bool) {
        let seen = async || -> Result<()> {
            let status = self.status();
            ensure!(wanted(&status), "{status:?}");
            Ok(())
        };
        wait_until(what, SOON, seen).await.unwrap();
    }
}

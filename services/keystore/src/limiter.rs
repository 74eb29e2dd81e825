//! Requests per minute and per day, counted per account in Redis: one script checks and charges
//! both windows or neither, on the server's clock.
//!
//! While Redis cannot be asked, each gate admits its share of every account's limits, and charges
//! it once Redis is back.

mod breaker;
mod decision;
mod latest;
#[cfg(test)]
mod outages;
mod recovery;
#[cfg(test)]
mod script;
mod share;
mod slots;
mod standby;
#[cfg(test)]
mod waits;

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use redis::{Cmd, Script};
use tokio::sync::Notify;
use tokio::time::Instant;
use water_domain::{AccountId, Limits, Timestamp};

use breaker::Breaker;
pub use decision::{Decision, Window};
use latest::Latest;
use share::Now;
use slots::Reply;
pub use standby::{Standby, StandbyStatus, TooManyAccounts};

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

const SOURCE: &str = include_str!("limiter.lua");
static CHARGE: LazyLock<Script> = LazyLock::new(|| Script::new(SOURCE));
const ATTEMPT: &str = "check the limits";
/// Room for a usual question: the script's hash, two keys of some 40 characters, two limits.
const CALL_LENGTH: usize = 160;

/// Asks Redis for each request, except where it was refused a moment ago and nothing can have
/// changed (a flood of 429s costs Redis nothing), and where Redis does not answer.
#[derive(Debug)]
pub struct Limiter {
    connection: Connection,
    instance: Instance,
    standby: Arc<Standby>,
    memory: Mutex<DecisionMemory>,
    /// Wakes [`Limiter::attend`] after a failure.
    trouble: Notify,
}

/// Memory of one worker about its answers.
#[derive(Debug)]
struct DecisionMemory {
    latest: Latest,
    breaker: Breaker,
}

impl Limiter {
    /// A limiter over a connection for [`crate::connection::Purpose::Limiter`]; its `standby` is
    /// shared by all limiters of the process.
    pub fn new(connection: Connection, instance: Instance, standby: Arc<Standby>) -> Self {
        let memory = DecisionMemory {
            latest: Latest::new(standby.changes.clone()),
            breaker: Breaker::default(),
        };
        Self {
            connection,
            instance,
            standby,
            memory: Mutex::new(memory),
            trouble: Notify::new(),
        }
    }

    /// Charges one request to `account` if both windows of its key's plan have room. `now` is Redis' time as known
    /// here; it counts only while Redis cannot be asked.
    ///
    /// A question that failed is not repeated: it may have been charged. This gate's share decides instead.
    pub async fn charge(
        &self,
        account: &AccountId,
        limits: Limits,
        now: Timestamp,
    ) -> Result<Decision, TooManyAccounts> {
        let asked = Instant::now();
        let ((version, refusal), given_up) = {
            let mut memory = self.memory();
            let look_up = memory.latest.look_up(account, limits, asked);
            (look_up, memory.breaker.is_open())
        };
        if let Some(refusal) = refusal {
            return Ok(refusal);
        }
        if given_up {
            return self.charge_here(account, limits, now, true);
        }
        match self.ask(account, limits).await {
            Ok(reply) => {
                let mut memory = self.memory();
                let decision = memory
                    .latest
                    .remember(account, limits, reply, asked, version);
                memory.breaker.succeeded();
                self.standby.succeeded();
                Ok(decision)
            }
            Err(error) => {
                self.failed(&error, asked);
                // Owing a request that may be charged already would charge it twice.
                self.charge_here(account, limits, now, !error.may_have_run())
            }
        }
    }

    async fn ask(&self, account: &AccountId, limits: Limits) -> Result<Reply, StoreError> {
        let mut call = Cmd::with_capacity(7, CALL_LENGTH);
        call.arg("EVALSHA").arg(CHARGE.get_hash()).arg(2);
        call.arg(self.instance.minute(account))
            .arg(self.instance.day(account))
            .arg(limits.requests_per_minute.get())
            .arg(limits.requests_per_day.get());
        let reply: String = self.connection.run_by_hash(ATTEMPT, &CHARGE, &call).await?;
        Reply::read(&reply, limits).ok_or_else(|| StoreError::unexpected(ATTEMPT))
    }

    /// Decides by this gate's share.
    fn charge_here(
        &self,
        account: &AccountId,
        limits: Limits,
        redis: Timestamp,
        owed: bool,
    ) -> Result<Decision, TooManyAccounts> {
        let here = Instant::now();
        let known = self.memory().latest.get(account).copied();
        let now = Now { here, redis };
        self.standby
            .charge(account, limits, known.as_ref(), now, owed)
    }

    /// Notes the failure of a question that was asked at `asked`.
    fn failed(&self, error: &StoreError, asked: Instant) {
        tracing::debug!(error = %error, "the limiter's Redis failed");
        let now = Instant::now();
        self.standby.failed(error.reason(), now);
        if self.memory().breaker.failed(asked, now) {
            self.standby.opened();
        }
        self.trouble.notify_one();
    }

    fn memory(&self) -> MutexGuard<'_, DecisionMemory> {
        // It is whole between any two statements.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Requests per minute and per day, counted per account in Redis: one script checks and charges
//! both windows or neither, on the server's clock.

mod decision;
mod refusals;

use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use redis::Script;
use tokio::time::Instant;
use water_domain::{AccountId, Limits};

pub use decision::{Decision, Window, WindowName};
use refusals::{Recall, Refusals};

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

const SOURCE: &str = include_str!("limiter.lua");
static CHARGE: LazyLock<Script> = LazyLock::new(|| Script::new(SOURCE));
const ATTEMPT: &str = "check the limits";

/// Asks Redis for each request, except where it was refused a moment ago and nothing can have
/// changed: a flood of 429s costs Redis nothing.
#[derive(Debug)]
pub struct Limiter {
    connection: Connection,
    instance: Instance,
    refusals: Mutex<Refusals>,
}

impl Limiter {
    /// A limiter over a connection for [`crate::connection::Purpose::Limiter`]. `changes` is the
    /// replica's ([`crate::Replica::changes`]): when it grows, remembered refusals are forgotten,
    /// for a plan may have been raised.
    pub fn new(connection: Connection, instance: Instance, changes: Arc<AtomicU64>) -> Self {
        Self {
            connection,
            instance,
            refusals: Mutex::new(Refusals::new(changes)),
        }
    }

    /// Connects and loads the script, so that no request has to wait for either.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(SOURCE);
        self.connection
            .run("load the limiter's script", &load)
            .await
    }

    /// Charges one request to `account` if both windows of its key's plan have room.
    ///
    /// After an error it is unknown whether the request was charged; it is not tried again.
    pub async fn charge(
        &self,
        account: &AccountId,
        limits: Limits,
    ) -> Result<Decision, StoreError> {
        let sent = Instant::now();
        let version = match self.refusals().recall(account, limits, sent) {
            Recall::Refused(refusal) => return Ok(refusal),
            Recall::Ask(version) => version,
        };
        let mut call = CHARGE.key(self.instance.minute(account));
        call.key(self.instance.day(account));
        call.arg(limits.requests_per_minute.get())
            .arg(limits.requests_per_day.get());
        let reply = self.connection.run_script(ATTEMPT, &call).await?;
        let decision =
            Decision::read(reply, limits).ok_or_else(|| StoreError::unexpected(ATTEMPT))?;
        if !decision.accepted {
            self.refusals()
                .remember(account, limits, decision, sent, version);
        }
        Ok(decision)
    }

    fn refusals(&self) -> std::sync::MutexGuard<'_, Refusals> {
        self.refusals
            .lock()
            .expect("nothing panics while it holds the refusals")
    }
}

//! The way back: probes find out whether Redis answers again, what was admitted without it is
//! charged, and only then are requests decided there.

use std::convert::Infallible;
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep};
use water_domain::AccountId;

use super::share::UnchargedRequests;
use super::{CHARGE, Limiter, SOURCE};
use crate::failure::StoreError;

/// Between two probes. Two seconds after Redis is back everything shall be exact again.
const PROBE_EVERY: Duration = Duration::from_millis(500);
/// Charges under way at once.
const IN_FLIGHT: usize = 64;

impl Limiter {
    /// Connects and loads the script, so that no request has to wait for either.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(SOURCE);
        self.connection
            .run_patiently("load the limiter's script", &load)
            .await
    }

    /// Brings the limiter back after failures, for as long as it is polled. Must run beside the
    /// requests, on the runtime on which the connection lives.
    pub async fn attend(&self) -> Infallible {
        loop {
            self.trouble.notified().await;
            loop {
                sleep(PROBE_EVERY).await;
                if self.recover().await && self.standby.is_over(Instant::now()) {
                    break;
                }
            }
        }
    }

    /// One probe, and if it succeeds, charges what is owed. Returns whether Redis decides again.
    async fn recover(&self) -> bool {
        let asked = Instant::now();
        if let Err(error) = self.probe().await {
            // The other end may be gone without a word, or the name may stand for another server.
            self.connection.reopen();
            self.failed(&error, asked);
            return false;
        }
        self.standby.succeeded();
        self.charge_all().await;
        if self.memory().breaker.close() {
            self.standby.closed();
        }
        true
    }

    /// Connects where it has to, and then writes within the time that a request would wait: a Redis
    /// that only reads, or answers late, is of no use to the limits.
    async fn probe(&self) -> Result<(), StoreError> {
        self.prepare().await?;
        let mut write = redis::cmd("SET");
        write.arg(self.instance.probe()).arg(1).arg("PX").arg(1000);
        self.connection
            .run("write to the limiter's Redis", &write)
            .await
    }

    /// Charges what was admitted without Redis. What a failure leaves uncharged follows after the next
    /// probe, except where it may have been charged: that is never repeated.
    async fn charge_all(&self) {
        let uncharged = self.standby.settle(Instant::now());
        let charging = stream::iter(uncharged).map(|(account, uncharged)| async move {
            if let Err(error) = self.charge_later(&account, &uncharged).await {
                self.standby.failed(error.reason(), Instant::now());
                if !error.may_have_run() {
                    self.standby.owe(account, uncharged);
                }
            }
        });
        charging.buffer_unordered(IN_FLIGHT).collect::<()>().await;
    }

    async fn charge_later(
        &self,
        account: &AccountId,
        uncharged: &UnchargedRequests,
    ) -> Result<(), StoreError> {
        let mut call = CHARGE.key(self.instance.minute(account));
        call.key(self.instance.day(account));
        call.arg(0).arg(0).arg(uncharged.day).arg(uncharged.of_day);
        for (age, requests) in uncharged.slots(Instant::now()) {
            call.arg(age).arg(requests);
        }
        self.connection
            .run_script("charge what was admitted without Redis", &call)
            .await
    }
}

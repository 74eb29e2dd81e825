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

/// Interval between two probes. Two seconds after Redis is back everything shall be exact again.
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

    /// Brings the limiter back after failures, for as long as it is polled. Must run concurrently with the requests, on
    /// the runtime on which the connection lives.
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

    /// Probes once, and if that succeeds, charges what is owed. Returns whether Redis decides again.
    async fn recover(&self) -> bool {
        let asked = Instant::now();
        if let Err(error) = self.probe().await {
            // The server may have vanished silently, or the name may lead to another one.
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
                // Without requests nothing else would find out that this failure is over.
                self.trouble.notify_one();
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anyhow::ensure;
    use water_domain::{Limits, Timestamp};
    use water_harness::{Redis, wait_until};

    use super::super::share::Now;
    use super::*;
    use crate::connection::{ConnectionSettings, Purpose};

    #[tokio::test]
    async fn a_charge_that_fails_when_all_else_is_over_is_followed_by_a_probe() {
        let redis = Redis::start().await.unwrap();
        let settings = ConnectionSettings::new(&redis.url(), None).unwrap();
        let instance = "water.water-data".parse().unwrap();
        let connection = settings.connect(Purpose::Directory);
        let limiter = Limiter::new(connection, instance, Arc::default());
        let account = "acme".parse().unwrap();
        let limits = Limits {
            requests_per_minute: 10.try_into().unwrap(),
            requests_per_day: 10.try_into().unwrap(),
        };
        let long_ago = Now {
            here: Instant::now() - Duration::from_secs(61),
            redis: Timestamp::from_millis(0).unwrap(),
        };
        let owing = limiter
            .standby
            .charge(&account, limits, None, long_ago, true);
        assert!(owing.unwrap().accepted);
        let minute = limiter.instance.minute(&account);
        let no_list = ["SET", minute.as_str(), "the script cannot charge this"];
        redis.command(&no_list).await.unwrap();

        limiter.trouble.notify_one();
        let recovered = async || {
            let status = limiter.standby.status();
            let failures: u64 = status.failures.iter().map(|(_, count)| count).sum();
            ensure!(failures > 0 && status.failing.is_none(), "{status:?}");
            Ok(())
        };
        tokio::select! {
            never = limiter.attend() => match never {},
            found = wait_until("a probe", Duration::from_secs(60), recovered) => found.unwrap(),
        }
    }
}

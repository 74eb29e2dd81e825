//! Usage of each account on each UTC day, as the gates report it and the account's holder sees it: requests, and the
//! time at which each of its keys was last used.
//!
//! One hash an account and day: `accepted` and `limited` are counts, every other field is a key id and its last use in
//! ms. The last uses of all keys are in one sorted set too, for the operator.

pub(crate) mod day;

use std::sync::LazyLock;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use redis::{Script, cmd, pipe};
use water_domain::{AccountId, KeyId, Timestamp};

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

pub use day::UtcDay;

/// Time for which a day's counts are kept after they were last added to.
const KEPT: Duration = Duration::from_secs(UtcDay::KEPT as u64 * 86_400);
/// Accounts that are reported at once: enough that a batch takes no longer than Redis needs for it.
const AT_ONCE: usize = 32;
/// Keys in one command: Redis serves nobody else for the millisecond that it takes.
const KEYS_PER_COMMAND: usize = 1000;

static ADD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("usage.lua")));

/// Usage of an account in a part of a day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// Account that made the requests.
    pub account: AccountId,
    /// Day of the requests.
    pub day: UtcDay,
    /// Requests within its limits.
    pub accepted: u64,
    /// Requests that were answered 429.
    pub limited: u64,
    /// Last uses of its keys.
    pub keys: Vec<(KeyId, Timestamp)>,
}

/// Usage that Redis did not take.
#[derive(Debug)]
pub struct UnsentUsage {
    /// The first failure.
    pub error: StoreError,
    /// Uses that may be reported again: nothing of them has been counted. What Redis may have counted is not among
    /// them.
    pub uses: Vec<Use>,
}

/// The requests of one day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Day {
    /// Day of the requests.
    pub day: UtcDay,
    /// Requests within the account's limits.
    pub accepted: u64,
    /// Requests that were answered 429.
    pub limited: u64,
}

/// The accounts' usage: the gates add to it, the portal reads it.
#[derive(Clone, Debug)]
pub struct Usage {
    connection: Connection,
    instance: Instance,
}

impl Usage {
    /// Uses a connection for [`crate::connection::Purpose::Directory`].
    pub fn new(connection: Connection, instance: Instance) -> Self {
        Self {
            connection,
            instance,
        }
    }

    /// Adds uses. What may have been counted is not reported again: a few requests too few are a smaller error than the
    /// same ones twice.
    pub async fn add(&self, uses: Vec<Use>) -> Result<(), UnsentUsage> {
        let outcomes = stream::iter(uses)
            .map(|used| async move { self.add_one(&used).await.map_err(|error| (used, error)) })
            .buffer_unordered(AT_ONCE);
        let failures: Vec<(Use, StoreError)> = outcomes
            .filter_map(async |outcome| outcome.err())
            .collect()
            .await;
        let mut first = None;
        let mut uses = Vec::new();
        for (used, error) in failures {
            if !error.may_have_run() {
                uses.push(used);
            }
            first.get_or_insert(error);
        }
        first.map_or(Ok(()), |error| Err(UnsentUsage { error, uses }))
    }

    /// Writes last uses for the operator, each unless a later one of the same key is there already. After an error some
    /// may have been written; writing them again changes nothing.
    pub async fn write_last_uses(&self, uses: &[(KeyId, Timestamp)]) -> Result<(), StoreError> {
        for part in uses.chunks(KEYS_PER_COMMAND) {
            let mut command = cmd("ZADD");
            command.arg(self.instance.used()).arg("GT");
            for (key, at) in part {
                command.arg(at.as_millis()).arg(key.as_str());
            }
            let () = self.connection.run("write last uses", &command).await?;
        }
        Ok(())
    }

    async fn add_one(&self, used: &Use) -> Result<(), StoreError> {
        let mut call = ADD.key(self.instance.usage(&used.account, used.day));
        call.arg(used.accepted)
            .arg(used.limited)
            .arg(KEPT.as_millis() as u64);
        for (key, at) in &used.keys {
            call.arg(key.as_str()).arg(at.as_millis());
        }
        self.connection.run_script("add usage", &call).await
    }

    /// The requests of each of so many days, the oldest first; `last` is the last one.
    pub async fn days(
        &self,
        account: &AccountId,
        last: UtcDay,
        count: u32,
    ) -> Result<Vec<Day>, StoreError> {
        let days: Vec<UtcDay> = last.back_to(count).collect();
        let mut commands = pipe();
        for day in &days {
            commands.add_command(cmd("HMGET"));
            commands
                .arg(self.instance.usage(account, *day))
                .arg("accepted")
                .arg("limited");
        }
        let counts: Vec<[Option<u64>; 2]> =
            self.connection.run_all("read usage", &commands).await?;
        let day = |(day, [accepted, limited]): (UtcDay, [Option<u64>; 2])| Day {
            day,
            accepted: accepted.unwrap_or(0),
            limited: limited.unwrap_or(0),
        };
        Ok(days.into_iter().zip(counts).map(day).collect())
    }

    /// Times at which each of these keys of the account was last used in the days that are kept; `today` is the last
    /// one. A key id of another account's key says nothing here.
    pub async fn last_uses(
        &self,
        account: &AccountId,
        keys: &[KeyId],
        today: UtcDay,
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut commands = pipe();
        for day in today.back_to(UtcDay::KEPT) {
            commands.add_command(cmd("HMGET"));
            commands.arg(self.instance.usage(account, day));
            for key in keys {
                commands.arg(key.as_str());
            }
        }
        let days: Vec<Vec<Option<i64>>> = self
            .connection
            .run_all("read an account's last uses", &commands)
            .await?;
        let latest = |index: usize| {
            let times = days.iter().filter_map(|day| *day.get(index)?);
            times.max().and_then(Timestamp::from_millis)
        };
        Ok((0..keys.len()).map(latest).collect())
    }
}

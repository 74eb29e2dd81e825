//! How an account's limits stand, without charging anything: what the portal shows.

use std::sync::LazyLock;

use redis::{Cmd, Script};
use water_domain::{AccountId, Limits, Timestamp};

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;
use crate::limiter::Window;

const ATTEMPT: &str = "read the quota";
static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("quota.lua")));

/// How both windows of an account stand under one plan's limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Redis' time.
    pub at: Timestamp,
    /// Any 60 000 ms.
    pub minute: Window,
    /// The UTC calendar day.
    pub day: Window,
}

/// Reads what the gates' limiters have charged.
#[derive(Clone, Debug)]
pub struct Quotas {
    connection: Connection,
    instance: Instance,
}

impl Quotas {
    /// Over a connection for [`crate::connection::Purpose::Directory`], whose user needs no right to write.
    pub fn new(connection: Connection, instance: Instance) -> Self {
        Self {
            connection,
            instance,
        }
    }

    /// How the account stands under these limits.
    pub async fn of(&self, account: &AccountId, limits: Limits) -> Result<Quota, StoreError> {
        let mut call = Cmd::new();
        call.arg("EVALSHA_RO").arg(READ.get_hash()).arg(2);
        call.arg(self.instance.minute(account))
            .arg(self.instance.day(account))
            .arg(limits.requests_per_minute.get());
        let reply: String = self.connection.run_by_hash(ATTEMPT, &READ, &call).await?;
        read(&reply, limits).ok_or_else(|| StoreError::unexpected(ATTEMPT))
    }
}

fn read(reply: &str, limits: Limits) -> Option<Quota> {
    let numbers: Option<Vec<i64>> = reply
        .split_ascii_whitespace()
        .map(|number| number.parse().ok())
        .collect();
    let [now, minute, opens, day, ends] = numbers?[..] else {
        return None;
    };
    Some(Quota {
        at: Timestamp::from_millis(now / 1000)?,
        minute: Window::new(limits.requests_per_minute.get(), minute, opens)?,
        day: Window::new(limits.requests_per_day.get(), day, ends)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_five_numbers() {
        let limits = Limits {
            requests_per_minute: 10.try_into().unwrap(),
            requests_per_day: 100.try_into().unwrap(),
        };
        let quota = read("1800000000000000 3 1500000 200 60000000", limits).unwrap();
        assert_eq!((quota.minute.limit, quota.minute.remaining), (10, 7));
        assert_eq!(quota.minute.opens_in_seconds(), 2);
        assert_eq!((quota.day.limit, quota.day.remaining), (100, 0));
        for bad in ["", "1 2 3 4", "1 2 3 4 5 6", "1 2 3 4 x", "1 -2 3 4 5"] {
            assert_eq!(read(bad, limits), None, "{bad}");
        }
    }
}

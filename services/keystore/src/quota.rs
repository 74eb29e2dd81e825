//! State of an account's limits, which the portal shows, without charging anything.

use std::sync::LazyLock;

use redis::{Cmd, Script};
use water_domain::{AccountId, Limits};

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;
use crate::limiter::Decision;

const ATTEMPT: &str = "read the quota";
static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("quota.lua")));

/// Reads what the gates' limiters have charged.
#[derive(Clone, Debug)]
pub struct Quotas {
    connection: Connection,
    instance: Instance,
}

impl Quotas {
    /// Uses a connection for [`crate::connection::Purpose::Directory`], whose user needs no right to write.
    pub fn new(connection: Connection, instance: Instance) -> Self {
        Self {
            connection,
            instance,
        }
    }

    /// State of the account under these limits.
    pub async fn read(&self, account: &AccountId, limits: Limits) -> Result<Decision, StoreError> {
        let mut call = Cmd::new();
        call.arg("EVALSHA_RO").arg(READ.get_hash()).arg(2);
        call.arg(self.instance.minute(account))
            .arg(self.instance.day(account))
            .arg(limits.requests_per_minute.get());
        let reply: String = self.connection.run_by_hash(ATTEMPT, &READ, &call).await?;
        Decision::read(&reply, limits).ok_or_else(|| StoreError::unexpected(ATTEMPT))
    }
}

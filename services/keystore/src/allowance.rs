//! How often an account may ask the portal for something, counted by all of its replicas together.

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;
use water_domain::AccountId;

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("allowance.lua")));

/// What an account may do so many times within some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allowance {
    /// Changes of keys: 30 an hour. Each costs the operator a pass and every gate a change.
    Changes,
    /// Reads of data: 60 a minute. They are not charged to the account's plan.
    Reads,
}

impl Allowance {
    /// Its word in the key's name, how many, and within which time.
    fn bounds(self) -> (&'static str, u32, Duration) {
        match self {
            Self::Changes => ("changes", 30, Duration::from_hours(1)),
            Self::Reads => ("reads", 60, Duration::from_mins(1)),
        }
    }
}

/// What the portal's replicas count together.
#[derive(Clone, Debug)]
pub struct Allowances {
    connection: Connection,
    instance: Instance,
}

impl Allowances {
    /// Over a connection for [`crate::connection::Purpose::Directory`].
    pub fn new(connection: Connection, instance: Instance) -> Self {
        Self {
            connection,
            instance,
        }
    }

    /// Takes one and answers `None`. Where none is left, answers how long until there is one again.
    pub async fn take(
        &self,
        account: &AccountId,
        what: Allowance,
    ) -> Result<Option<Duration>, StoreError> {
        let (word, most, within) = what.bounds();
        let mut call = TAKE.key(self.instance.allowance(account, word));
        call.arg(most).arg(within.as_micros() as u64);
        let wait: u64 = self
            .connection
            .run_script("count what an account asks for", &call)
            .await?;
        Ok((wait > 0).then(|| Duration::from_micros(wait)))
    }
}

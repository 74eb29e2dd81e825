//! How often an account may ask the portal for something, counted by all of its replicas together.

pub(crate) mod bounds;

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;
use water_domain::AccountId;

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

pub use bounds::Allowance;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("allowance.lua")));

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
        let (most, within) = what.bounds();
        let mut call = TAKE.key(self.instance.allowance(account, what));
        call.arg(most).arg(within.as_micros() as u64);
        let wait: u64 = self
            .connection
            .run_script("count what an account asks for", &call)
            .await?;
        Ok((wait > 0).then(|| Duration::from_micros(wait)))
    }
}

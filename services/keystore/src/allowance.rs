//! Limits of an account's requests to the portal, counted by all of its replicas together.

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;
use water_domain::AccountId;

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("allowance.lua")));
static RETURN: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("allowance_return.lua")));

/// Action that an account may take so many times within some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allowance {
    /// Keys that are made: 30 an hour. Each costs the operator a pass and every gate a change, as a rotation does.
    Creations,
    /// Rotations: 60 an hour, so that all keys of an account can be replaced at once after a leak.
    Rotations,
    /// New titles of keys: 60 an hour.
    Renames,
    /// Reads of data: 60 a minute. They are not charged to the account's plan.
    Reads,
}

impl Allowance {
    /// Word in the key's name, number of times, and the time within which they count.
    fn bounds(self) -> (&'static str, u32, Duration) {
        match self {
            Self::Creations => ("creations", 30, Duration::from_hours(1)),
            Self::Rotations => ("rotations", 60, Duration::from_hours(1)),
            Self::Renames => ("renames", 60, Duration::from_hours(1)),
            Self::Reads => ("reads", 60, Duration::from_mins(1)),
        }
    }
}

/// Place in an allowance that is counted for an action before it is taken.
#[derive(Debug)]
pub struct Reservation {
    key: String,
    at: u64,
}

/// Reply to a request for one of an allowance.
#[derive(Debug)]
pub enum Reply {
    /// The place that is counted.
    Reserved(Reservation),
    /// Time until there is a place again.
    Full(Duration),
}

/// Counts that the portal's replicas share.
#[derive(Clone, Debug)]
pub struct Allowances {
    connection: Connection,
    instance: Instance,
}

impl Allowances {
    /// Uses a connection for [`crate::connection::Purpose::Directory`].
    pub fn new(connection: Connection, instance: Instance) -> Self {
        Self {
            connection,
            instance,
        }
    }

    /// Counts one, if one is left.
    pub async fn take(&self, account: &AccountId, what: Allowance) -> Result<Reply, StoreError> {
        let (word, most, within) = what.bounds();
        let key = self.instance.allowance(account, word);
        let mut call = TAKE.key(&key);
        call.arg(most).arg(within.as_micros() as u64);
        let (wait, at): (u64, u64) = self
            .connection
            .run_script("count what an account asks for", &call)
            .await?;
        if wait > 0 {
            return Ok(Reply::Full(Duration::from_micros(wait)));
        }
        Ok(Reply::Reserved(Reservation { key, at }))
    }

    /// Counts a reservation no longer: nothing came of the action.
    pub async fn give_back(&self, reservation: Reservation) -> Result<(), StoreError> {
        let mut call = RETURN.key(reservation.key);
        call.arg(reservation.at);
        self.connection
            .run_script("give back what an account asked for", &call)
            .await
    }
}

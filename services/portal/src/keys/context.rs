//! What every request about keys needs, and what holds for all of them: who may change something,
//! and how often.

use water_domain::KeyPrefix;
use water_http::{Code, Problem};
use water_keystore::{Allowance, Allowances, Usage};

use crate::cluster::Cluster;
use crate::member::{Member, Role};
use crate::metrics::Metrics;
use crate::plans::Plans;

/// How many keys there may be, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Keys of an account.
    pub max_keys: usize,
    /// Days of a key's life; none: without end.
    pub max_key_days: Option<u32>,
}

/// What the requests about keys need.
#[derive(Debug)]
pub struct Keys {
    /// The API server.
    pub cluster: Cluster,
    /// How often an account may change something.
    pub allowances: Allowances,
    /// Knows the last uses of texts that are no longer current.
    pub usage: Usage,
    /// What keys may be like.
    pub rules: Rules,
    /// What generated keys begin with.
    pub prefix: KeyPrefix,
    /// What the WaterDataApi allows.
    pub plans: Plans,
    /// What is counted.
    pub metrics: Metrics,
}

impl Keys {
    /// Managers change keys; viewers look at them.
    pub fn may_change(&self, member: &Member) -> Result<(), Problem> {
        match member.role() {
            Role::Manager => Ok(()),
            Role::Viewer => Err(Problem::read_only()),
        }
    }

    /// A text that opens nothing is not issued.
    pub fn may_issue(&self, member: &Member) -> Result<(), Problem> {
        self.may_change(member)?;
        match member.access() {
            true => Ok(()),
            false => Err(Problem::plan_insufficient()),
        }
    }

    /// One of the account's changes.
    pub async fn charge(&self, member: &Member) -> Result<(), Problem> {
        let taken = self.allowances.take(member.account(), Allowance::Changes);
        match taken.await? {
            None => Ok(()),
            Some(wait) => Err(Problem::too_many_requests(wait.as_secs() + 1)),
        }
    }
}

impl Rules {
    pub fn too_many(&self) -> Problem {
        let detail = format!(
            "An account may have {} keys: revoke one that is not used.",
            self.max_keys
        );
        Problem::conflict(Code::TooManyKeys, detail)
    }
}

/// The same for every path that is no key of the account.
pub fn no_key() -> Problem {
    Problem::not_found("There is no such path.")
}

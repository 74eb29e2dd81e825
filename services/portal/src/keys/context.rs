//! Parts and rules of all requests about keys: the right to change something, and how often.

use tracing::warn;
use water_domain::KeyPrefix;
use water_http::problem::texts;
use water_http::{Code, Problem};
use water_keystore::{Allowance, Allowances, Reply, Reservation, Usage};
use water_runtime::telemetry::chain;

use crate::cluster::{Barrier, Cluster, ClusterError};
use crate::member::{Member, Role};
use crate::metrics::Metrics;
use crate::plans::Plans;

/// Limits on the number and the life of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Keys of an account.
    pub max_keys: usize,
    /// Days of a key's life; none: without end.
    pub max_key_days: Option<u32>,
}

/// Parts that answer requests about keys.
#[derive(Debug)]
pub struct Keys {
    /// The API server.
    pub cluster: Cluster,
    /// Limits on an account's changes.
    pub allowances: Allowances,
    /// Last uses of texts that are no longer current.
    pub usage: Usage,
    /// Limits of keys.
    pub rules: Rules,
    /// Prefix of generated keys.
    pub prefix: KeyPrefix,
    /// Plans of the WaterDataApi.
    pub plans: Plans,
    /// Counters.
    pub metrics: Metrics,
}

impl Keys {
    /// Refuses a viewer's change: viewers only read keys.
    pub fn may_change(&self, member: &Member) -> Result<(), Problem> {
        match member.role() {
            Role::Manager => Ok(()),
            Role::Viewer => Err(Problem::read_only()),
        }
    }

    /// Refuses a text that opens nothing.
    pub fn may_issue(&self, member: &Member) -> Result<(), Problem> {
        self.may_change(member)?;
        if member.access() {
            Ok(())
        } else {
            Err(Problem::plan_insufficient())
        }
    }

    /// Reserves one of an account's changes before it is written.
    pub async fn reserve(&self, member: &Member, what: Allowance) -> Result<Reservation, Problem> {
        match self.allowances.take(member.account(), what).await? {
            Reply::Reserved(reservation) => Ok(reservation),
            Reply::Full(wait) => Err(Problem::too_many_requests(wait.as_secs() + 1)),
        }
    }

    /// Gives a change back that was not written. Where that fails the account can make one less until the hour is over.
    pub async fn give_back(&self, reservation: Reservation) {
        if let Err(error) = self.allowances.give_back(reservation).await {
            warn!(error = %chain(&error), "a change that was not written is counted");
        }
    }
}

impl Rules {
    pub fn too_many(&self) -> Problem {
        Problem::conflict(Code::TooManyKeys, texts::too_many_keys(self.max_keys))
    }
}

/// Problem of a write that the API server did not take.
pub fn unwritten(error: ClusterError) -> Problem {
    let detail = match error.barrier() {
        Some(Barrier::Quota(_) | Barrier::NoQuota) => texts::platform_is_full(),
        Some(Barrier::Policy(_) | Barrier::MutatingPolicy(_) | Barrier::Webhook(_)) => {
            texts::platform_refuses()
        }
        Some(Barrier::NamespaceEnds) => texts::platform_ends(),
        None => return error.into(),
    };
    // Its administrator finds the rule's name under the request id.
    Problem::conflict(Code::RefusedByPlatform, detail).caused_by(error)
}

/// Problem of every path that is no key of the account.
pub fn no_key() -> Problem {
    Problem::not_found(texts::no_such_path())
}

//! `/account/v1/accounts/{account}/keys`: an account's keys are listed, made, renamed, rotated and revoked.
//!
//! No key's text ever comes here: its holder's browser makes it and sends its SHA-256.

mod body;
mod change;
mod create;
mod fields;
mod name;
mod state;
mod view;

use http::{Method, StatusCode};
use kube::ResourceExt;
use water_domain::{KeyPrefix, Timestamp};
use water_http::{Code, Problem};
use water_keystore::{Allowance, Allowances, Usage, UtcDay};

use crate::asked::{Asked, Response};
use crate::cluster::Cluster;
use crate::json::{accepted, json};
use crate::member::{Member, Role};
pub use fields::{CREATE, RENAME, ROTATE};
use view::previous_ids;
pub use view::{Key, KeyList};

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
}

/// Answers what stands behind `keys` in the path.
pub async fn answer(
    keys: &Keys,
    member: &Member,
    asked: &Asked<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    let rest = asked.path.get(1..).unwrap_or_default();
    match (rest, asked.method()) {
        ([], &Method::GET | &Method::HEAD) => keys.list(member, now).await,
        ([], &Method::POST) => create::create(keys, member, asked, now).await,
        ([], _) => Err(Problem::only("GET, HEAD, POST")),
        ([name], &Method::PATCH) => change::rename(keys, member, name, asked, now).await,
        ([name], &Method::DELETE) => keys.revoke(member, name).await,
        ([_], _) => Err(Problem::only("PATCH, DELETE")),
        ([name, "rotation"], &Method::POST) => change::rotate(keys, member, name, asked, now).await,
        ([_, "rotation"], _) => Err(Problem::only("POST")),
        ([name, "previous"], &Method::DELETE) => change::end_overlap(keys, member, name, now).await,
        ([_, "previous"], _) => Err(Problem::only("DELETE")),
        _ => Err(no_key()),
    }
}

impl Keys {
    /// Newest first.
    async fn list(&self, member: &Member, now: Timestamp) -> Result<Response, Problem> {
        let mut found = self.cluster.keys(member).await?;
        found.sort_by_cached_key(|key| {
            let created = key.creation_timestamp().map(|at| at.0.as_millisecond());
            (std::cmp::Reverse(created), key.name_any())
        });
        let mut data: Vec<Key> = found.iter().map(|key| Key::of(key, now)).collect();
        let ids = previous_ids(&data);
        let uses = self
            .usage
            .last_uses(member.account(), &ids, UtcDay::of(now));
        let uses = uses.await?;
        for previous in data.iter_mut().filter_map(|key| key.previous.as_mut()) {
            let index = ids.iter().position(|id| id.as_str() == previous.key_id);
            previous.last_used_at = index.and_then(|index| uses[index]);
        }
        let count = data.len();
        Ok(json(StatusCode::OK, &KeyList { count, data }))
    }

    /// Answers `DELETE …/keys/{name}`: the key goes, once every gate has acknowledged.
    async fn revoke(&self, member: &Member, name: &str) -> Result<Response, Problem> {
        self.may_change(member)?;
        self.charge(member).await?;
        let key = self.cluster.key(member, name).await?.ok_or_else(no_key)?;
        if key.metadata.deletion_timestamp.is_some() {
            return Ok(accepted());
        }
        match self.cluster.delete(&key).await {
            Err(error) if error.is_gone() => Err(no_key()),
            Err(error) if error.is_conflict() => {
                let detail = "Another key has this name by now: look at it again.";
                Err(Problem::conflict(Code::ChangedMeanwhile, detail))
            }
            deleted => Ok(deleted.map(|()| accepted())?),
        }
    }

    /// Managers change keys; viewers look at them.
    fn may_change(&self, member: &Member) -> Result<(), Problem> {
        match member.role() {
            Role::Manager => Ok(()),
            Role::Viewer => Err(Problem::read_only()),
        }
    }

    /// A text that opens nothing is not issued.
    fn may_issue(&self, member: &Member) -> Result<(), Problem> {
        self.may_change(member)?;
        match member.access() {
            true => Ok(()),
            false => Err(Problem::plan_insufficient()),
        }
    }

    /// One of the account's changes.
    async fn charge(&self, member: &Member) -> Result<(), Problem> {
        let taken = self.allowances.take(member.account(), Allowance::Changes);
        match taken.await? {
            None => Ok(()),
            Some(wait) => Err(Problem::too_many_requests(wait.as_secs() + 1)),
        }
    }
}

impl Rules {
    fn too_many(&self) -> Problem {
        let detail = format!(
            "An account may have {} keys: revoke one that is not used.",
            self.max_keys
        );
        Problem::conflict(Code::TooManyKeys, detail)
    }
}

/// The same for every path that is no key of the account.
fn no_key() -> Problem {
    Problem::not_found("There is no such path.")
}

#[cfg(test)]
pub(crate) mod tests;

//! `/account/v1/accounts/{account}/keys`: an account's keys are listed, made, renamed, rotated and revoked.
//!
//! No key's text ever comes here: its holder's browser makes it and sends its SHA-256.

mod body;
mod change;
mod context;
mod create;
mod fields;
mod name;
mod state;
mod view;

use http::{Method, StatusCode};
use kube::ResourceExt;
use water_domain::Timestamp;
use water_http::problem::texts;
use water_http::{Code, Problem};
use water_keystore::UtcDay;

use crate::account_request::{AccountRequest, Response};
use crate::json::{accepted, json};
use crate::member::Member;
pub use context::{Keys, Rules};
use context::{no_key, unwritten};
use view::previous_ids;
pub use view::{Key, KeyList};

/// Answers the paths `…/keys` and below.
pub async fn answer(
    keys: &Keys,
    member: &Member,
    asked: &AccountRequest<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    asked.query.only(&[])?;
    let rest = asked.path.get(1..).unwrap_or_default();
    match (rest, asked.method()) {
        ([], &Method::GET | &Method::HEAD) => list(keys, member, now).await,
        ([], &Method::POST) => create::create(keys, member, asked, now).await,
        ([], _) => Err(Problem::only("GET, HEAD, POST")),
        ([name], &Method::PATCH) => change::rename(keys, member, name, asked, now).await,
        ([name], &Method::DELETE) => revoke(keys, member, name).await,
        ([_], _) => Err(Problem::only("PATCH, DELETE")),
        ([name, "rotation"], &Method::POST) => change::rotate(keys, member, name, asked, now).await,
        ([_, "rotation"], _) => Err(Problem::only("POST")),
        ([name, "previous"], &Method::DELETE) => change::end_overlap(keys, member, name, now).await,
        ([_, "previous"], _) => Err(Problem::only("DELETE")),
        _ => Err(no_key()),
    }
}

/// Lists the keys, newest first.
async fn list(keys: &Keys, member: &Member, now: Timestamp) -> Result<Response, Problem> {
    let mut found = keys.cluster.keys(member).await?;
    found.sort_by_cached_key(|key| {
        let created = key.creation_timestamp().map(|at| at.0.as_millisecond());
        (std::cmp::Reverse(created), key.name_any())
    });
    let mut data: Vec<Key> = found.iter().map(|key| Key::read(key, now)).collect();
    let ids = previous_ids(&data);
    let uses = keys
        .usage
        .last_uses(member.account(), &ids, UtcDay::from(now));
    let uses = uses.await?;
    for previous in data.iter_mut().filter_map(|key| key.previous.as_mut()) {
        let index = ids.iter().position(|id| id.as_str() == previous.key_id);
        previous.last_used_at = index.and_then(|index| uses[index]);
    }
    let on_other_plans = data.iter().filter(|key| key.plan != *member.plan());
    keys.metrics.keys_on_other_plans(on_other_plans.count());
    let list = KeyList {
        count: data.len(),
        data,
        keys_elsewhere: keys.plans.keys_elsewhere(),
    };
    Ok(json(StatusCode::OK, &list))
}

/// Answers `DELETE …/keys/{name}`: the key goes, once every gate has acknowledged. No budget of changes can be in its way.
async fn revoke(keys: &Keys, member: &Member, name: &str) -> Result<Response, Problem> {
    keys.may_change(member)?;
    let key = keys.cluster.key(member, name).await?.ok_or_else(no_key)?;
    if key.metadata.deletion_timestamp.is_some() {
        return Ok(accepted());
    }
    match keys.cluster.delete(&key).await {
        Err(error) if error.is_gone() => Err(no_key()),
        Err(error) if error.is_conflict() => Err(Problem::conflict(
            Code::ChangedMeanwhile,
            texts::key_replaced(),
        )),
        deleted => deleted.map(|()| accepted()).map_err(unwritten),
    }
}

#[cfg(test)]
pub(crate) mod tests;

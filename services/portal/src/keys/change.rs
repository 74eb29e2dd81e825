//! A key that the portal has made is renamed, rotated, or freed of its text before.
//!
//! The operator writes the same object whenever something happens, so a change may find another
//! version than it has read: it then looks again, and judges again.

use http::StatusCode;
use serde_json::{Value, json as value};
use water_domain::Timestamp;
use water_http::{Code, Problem};
use water_resources::ApiKey;

use super::body::Body;
use super::context::{Keys, no_key};
use super::create::{has_hash, is_new};
use super::fields::{self, Rotation};
use super::view::{Key, MadeBy, key_id, made_by, previous};
use crate::asked::{Asked, Response};
use crate::json::{accepted, json};
use crate::member::Member;

/// More writers in a row than an object of one account has.
const LOOKS: usize = 5;

/// What a change is, once its key was looked at.
enum Change {
    /// It is made already.
    Nothing,
    /// A merge patch of the spec.
    Spec(Value),
}

/// Answers `PATCH …/keys/{name}`.
pub async fn rename(
    keys: &Keys,
    member: &Member,
    name: &str,
    asked: &Asked<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    keys.may_change(member)?;
    let body = Body::read(asked, fields::RENAME, &keys.prefix)?;
    let title = fields::title(&body)?;
    let judge = |key: &ApiKey, _: &[ApiKey]| match key.spec.description.as_ref() == Some(&title) {
        true => Ok(Change::Nothing),
        false => Ok(Change::Spec(value!({ "description": title }))),
    };
    let key = changed(keys, member, name, judge).await?;
    Ok(json(StatusCode::OK, &Key::of(&key, now)))
}

/// Answers `POST …/keys/{name}/rotation`.
pub async fn rotate(
    keys: &Keys,
    member: &Member,
    name: &str,
    asked: &Asked<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    keys.may_issue(member)?;
    let body = Body::read(asked, fields::ROTATE, &keys.prefix)?;
    let rotation = fields::rotation(&body, keys.rules.max_key_days, now)?;
    let judge = |key: &ApiKey, known: &[ApiKey]| rotated(key, known, &rotation, member, now);
    let key = changed(keys, member, name, judge).await?;
    Ok(json(StatusCode::OK, &Key::of(&key, now)))
}

/// Answers `DELETE …/keys/{name}/previous`: the text before is refused from now on.
pub async fn end_overlap(
    keys: &Keys,
    member: &Member,
    name: &str,
    now: Timestamp,
) -> Result<Response, Problem> {
    keys.may_change(member)?;
    let judge = |key: &ApiKey, _: &[ApiKey]| match runs_overlap(key, now) {
        // Where it is 0 already, the operator is at it.
        true if key.spec.rotation.overlap_seconds == 0 => Ok(Change::Nothing),
        true => Ok(Change::Spec(
            value!({ "rotation": { "overlapSeconds": 0 } }),
        )),
        false => Err(no_key()),
    };
    changed(keys, member, name, judge).await?;
    Ok(accepted())
}

/// Changes a key as `judge` says of it and of all keys of the account.
async fn changed(
    keys: &Keys,
    member: &Member,
    name: &str,
    judge: impl Fn(&ApiKey, &[ApiKey]) -> Result<Change, Problem>,
) -> Result<ApiKey, Problem> {
    keys.charge(member).await?;
    for _ in 0..LOOKS {
        let known = keys.cluster.keys(member).await?;
        let key = known
            .iter()
            .find(|key| key.metadata.name.as_deref() == Some(name));
        let key = key.ok_or_else(no_key)?;
        may_be_changed(key)?;
        let Change::Spec(spec) = judge(key, &known)? else {
            return Ok(key.clone());
        };
        match keys.cluster.change(key, spec).await {
            Err(error) if error.is_conflict() => {}
            Err(error) if error.is_gone() => return Err(no_key()),
            changed => return Ok(changed?),
        }
    }
    Err(changed_meanwhile())
}

/// Only keys that were made here, and are not being revoked.
fn may_be_changed(key: &ApiKey) -> Result<(), Problem> {
    let detail = if made_by(key) != MadeBy::Portal {
        "The key was made in the cluster: change its manifest there."
    } else if key.metadata.deletion_timestamp.is_some() {
        "The key is being revoked: make another one."
    } else {
        return Ok(());
    };
    Err(Problem::conflict(Code::KeyConflict, detail))
}

fn rotated(
    key: &ApiKey,
    known: &[ApiKey],
    rotation: &Rotation,
    member: &Member,
    now: Timestamp,
) -> Result<Change, Problem> {
    let fresh = &rotation.fresh;
    if has_hash(key, fresh) {
        return Ok(Change::Nothing);
    }
    if key_id(key) != rotation.replaces.as_str() {
        return Err(changed_meanwhile());
    }
    if runs_overlap(key, now) && !rotation.end_previous {
        let detail = "A text of the key before this one still works: wait until it retires, end it, \
                      or send endPrevious.";
        return Err(Problem::conflict(Code::OverlapRunning, detail));
    }
    is_new(known, fresh)?;
    // The operator never lets a text live longer than it would have without the rotation.
    Ok(Change::Spec(value!({
        "plan": member.plan(),
        "expirationTime": fresh.expires,
        "material": { "hash": { "sha256": fresh.hash.to_string(), "keyId": fresh.key_id } },
        "rotation": { "overlapSeconds": rotation.overlap },
    })))
}

/// Whether two texts of the key work, or will once the gates know the declared one.
fn runs_overlap(key: &ApiKey, now: Timestamp) -> bool {
    let current = key
        .status
        .as_ref()
        .and_then(|status| status.current.as_ref());
    let declared = key.spec.material.hash.as_ref();
    let is_rotating = current
        .zip(declared)
        .is_some_and(|(current, declared)| current.hash != declared.sha256);
    is_rotating || previous(key, now).is_some()
}

fn changed_meanwhile() -> Problem {
    let detail = "Somebody else changed the key meanwhile: look at it again.";
    Problem::conflict(Code::ChangedMeanwhile, detail)
}

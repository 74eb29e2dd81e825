//! A key that the portal has made is renamed, rotated, or freed of its text before.
//!
//! The operator writes the same object whenever something happens, so a change may find another version
//! than it has read: it then reads again, and judges again.

use http::StatusCode;
use serde_json::{Value, json as value};
use water_domain::Timestamp;
use water_http::problem::texts;
use water_http::{Code, Problem};
use water_keystore::{Allowance, Reservation};
use water_resources::ApiKey;

use super::body::Body;
use super::context::{Keys, no_key, unwritten};
use super::create::{has_hash, is_new};
use super::fields::{self, Rotation};
use super::view::{Key, MadeBy, key_id, made_by, previous};
use crate::account_request::{AccountRequest, Response};
use crate::json::{accepted, json};
use crate::member::Member;

/// Tries of a change: more than an object of one account has writers in a row.
const LOOKS: usize = 5;

/// Verdict on a key that is to change.
enum Change {
    /// The change is made already.
    Nothing,
    /// A merge patch of the spec.
    Spec(Value),
}

/// Answers `PATCH …/keys/{name}`.
pub async fn rename(
    keys: &Keys,
    member: &Member,
    name: &str,
    asked: &AccountRequest<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    keys.may_change(member)?;
    let body = Body::read(asked, fields::RENAME, &keys.prefix)?;
    let title = fields::title(&body)?;
    let judge = |key: &ApiKey, _: &[ApiKey]| {
        if key.spec.description.as_ref() == Some(&title) {
            Ok(Change::Nothing)
        } else {
            Ok(Change::Spec(value!({ "description": title })))
        }
    };
    let key = changed(keys, member, name, Some(Allowance::Renames), judge).await?;
    Ok(json(StatusCode::OK, &Key::read(&key, now)))
}

/// Answers `POST …/keys/{name}/rotation`.
pub async fn rotate(
    keys: &Keys,
    member: &Member,
    name: &str,
    asked: &AccountRequest<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    keys.may_issue(member)?;
    let body = Body::read(asked, fields::ROTATE, &keys.prefix)?;
    let rotation = fields::rotation(&body, keys.rules.max_key_days, now)?;
    let judge = |key: &ApiKey, known: &[ApiKey]| rotated(key, known, &rotation, member, now);
    let key = changed(keys, member, name, Some(Allowance::Rotations), judge).await?;
    Ok(json(StatusCode::OK, &Key::read(&key, now)))
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
    changed(keys, member, name, None, judge).await?;
    Ok(accepted())
}

/// Changes a key as `judge` says of it and of all keys of the account, on the account's `allowance` if that has one for
/// the change.
async fn changed(
    keys: &Keys,
    member: &Member,
    name: &str,
    allowance: Option<Allowance>,
    judge: impl Fn(&ApiKey, &[ApiKey]) -> Result<Change, Problem>,
) -> Result<ApiKey, Problem> {
    let mut unused = None;
    let outcome = write(keys, member, name, allowance, &mut unused, judge).await;
    if let Some(reservation) = unused {
        keys.give_back(reservation).await;
    }
    outcome
}

/// Writes the change. A reservation that nothing was written with is left in `unused`.
async fn write(
    keys: &Keys,
    member: &Member,
    name: &str,
    allowance: Option<Allowance>,
    unused: &mut Option<Reservation>,
    judge: impl Fn(&ApiKey, &[ApiKey]) -> Result<Change, Problem>,
) -> Result<ApiKey, Problem> {
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
        if let (None, Some(allowance)) = (&unused, allowance) {
            *unused = Some(keys.reserve(member, allowance).await?);
        }
        match keys.cluster.change(key, spec).await {
            Err(error) if error.is_conflict() => {}
            Err(error) if error.is_gone() => return Err(no_key()),
            Err(error) if error.is_refusal() => return Err(unwritten(error)),
            changed => {
                *unused = None;
                return Ok(changed?);
            }
        }
    }
    Err(changed_meanwhile())
}

/// Checks that the key was made by the portal, and is not being revoked.
fn may_be_changed(key: &ApiKey) -> Result<(), Problem> {
    let detail = if made_by(key) != MadeBy::Portal {
        texts::key_made_in_cluster()
    } else if key.metadata.deletion_timestamp.is_some() {
        texts::key_being_revoked()
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
        let detail = texts::overlap_running();
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

/// Checks that two texts of the key work, or will once the gates know the declared one.
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
    Problem::conflict(Code::ChangedMeanwhile, texts::changed_meanwhile())
}

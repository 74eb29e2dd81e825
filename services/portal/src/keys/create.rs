//! A key is made: an ApiKey with the hash of a text that its holder alone has.
//!
//! The same request again finds what the first one made, so that a lost answer costs nothing.

use http::StatusCode;
use kube::ResourceExt;
use tracing::warn;
use water_domain::Timestamp;
use water_http::problem::texts;
use water_http::{Code, Problem};
use water_keystore::Allowance;
use water_resources::api_key::{Brought, Material};
use water_resources::{ApiKey, ApiKeySpec};
use water_runtime::telemetry::chain;

use super::body::Body;
use super::context::{Keys, unwritten};
use super::fields::{self, Fresh};
use super::name::name;
use super::view::{Key, key_ids};
use crate::account_request::{AccountRequest, Response};
use crate::cluster::{ClusterError, MANAGED_BY, MANAGER, REQUESTED_BY};
use crate::json::json;
use crate::member::Member;

/// Answers `POST …/keys`.
pub async fn create(
    keys: &Keys,
    member: &Member,
    asked: &AccountRequest<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    keys.may_issue(member)?;
    let body = Body::read(asked, fields::CREATE, &keys.prefix)?;
    let title = fields::title(&body)?;
    let fresh = fields::fresh(&body, keys.rules.max_key_days, now)?;
    let known = keys.cluster.keys(member).await?;
    if let Some(key) = known.iter().find(|key| has_hash(key, &fresh)) {
        return existing(key, now);
    }
    is_new(&known, &fresh)?;
    if living(&known) >= keys.rules.max_keys {
        return Err(keys.rules.too_many());
    }
    let object = object(keys, member, title, &fresh);
    let reservation = keys.reserve(member, Allowance::Creations).await?;
    let created = keys.cluster.create(&object).await;
    if created.as_ref().is_err_and(ClusterError::is_refusal) {
        keys.give_back(reservation).await;
    }
    let created = match created {
        Err(error) if error.is_name_taken() => {
            let other = keys.cluster.key(member, &object.name_any()).await?;
            let other = other.filter(|key| has_hash(key, &fresh));
            return other.map_or_else(|| Err(taken()), |key| existing(&key, now));
        }
        created => created.map_err(unwritten)?,
    };
    // Others may have been made at the same time: rather none of them than one too many.
    if living(&keys.cluster.keys(member).await?) > keys.rules.max_keys {
        match keys.cluster.delete(&created).await {
            Ok(()) => return Err(keys.rules.too_many()),
            Err(error) if error.is_gone() => return Err(keys.rules.too_many()),
            // It lives, and its holder alone has the text.
            Err(error) if error.barrier().is_some() => {
                warn!(
                    error = chain(&error),
                    "an account has one key more than it may"
                );
            }
            Err(error) => return Err(unwritten(error)),
        }
    }
    Ok(json(StatusCode::CREATED, &Key::read(&created, now)))
}

/// Refuses a public name that a key of the account has: last uses are reported by it.
pub fn is_new(known: &[ApiKey], fresh: &Fresh) -> Result<(), Problem> {
    let mut ids = known.iter().flat_map(key_ids);
    if ids.any(|id| id == fresh.key_id.as_str()) {
        Err(Problem::invalid_field("keyId", texts::key_id_taken()))
    } else {
        Ok(())
    }
}

/// Whether an ApiKey declares this hash.
pub fn has_hash(key: &ApiKey, fresh: &Fresh) -> bool {
    let declared = key.spec.material.hash.as_ref();
    declared.is_some_and(|declared| declared.sha256 == fresh.hash.to_string())
}

fn existing(key: &ApiKey, now: Timestamp) -> Result<Response, Problem> {
    match key.metadata.deletion_timestamp {
        Some(_) => Err(taken()),
        None => Ok(json(StatusCode::OK, &Key::read(key, now))),
    }
}

fn taken() -> Problem {
    Problem::conflict(Code::KeyConflict, texts::key_name_taken())
}

/// Counts the keys without those that are being revoked, which make room at once.
fn living(keys: &[ApiKey]) -> usize {
    let living = |key: &&ApiKey| key.metadata.deletion_timestamp.is_none();
    keys.iter().filter(living).count()
}

fn object(keys: &Keys, member: &Member, title: String, fresh: &Fresh) -> ApiKey {
    let spec = ApiKeySpec {
        account_id: member.account().clone(),
        plan: member.plan().clone(),
        api_ref: Some(keys.cluster.api_ref()),
        description: Some(title),
        suspend: false,
        not_before: None,
        expiration_time: fresh.expires,
        material: Material {
            generated: None,
            hash: Some(Brought {
                sha256: fresh.hash.to_string(),
                key_id: Some(fresh.key_id.to_string()),
            }),
        },
        rotation: Default::default(),
    };
    let mut object = ApiKey::new(&name(member.account(), &fresh.hash), spec);
    object
        .labels_mut()
        .insert(MANAGED_BY.into(), MANAGER.into());
    object
        .annotations_mut()
        .insert(REQUESTED_BY.into(), member.subject().into());
    object
}

//! Publish before reveal: a key's hash is in the directory, and every gate has acknowledged it, before
//! anybody can read its text.
//!
//! A generated key is made where there is no Secret ([`issue`]); where there is one, that decides.

use std::collections::BTreeSet;

use kube::ResourceExt;
use tokio::time::Instant;
use water_domain::{Fault, KeyHash, Timestamp};
use water_keystore::{Change, Removal, WriteError};

use super::issue::issue;
use super::record::{self, InvalidStatus};
use super::secret::{self, Found};
use super::{KeyError, Target};
use crate::conditions::{Aspect, Outcome, Reason, find, holds};
use crate::crd::api_key::{Brought, Generated, IssuedKey};
use crate::crd::{ApiKey, WaterDataApi};
use crate::directories::DirectoryError;
use crate::directories::waits::Standing;

/// Asks for a hash that was revoked: its first twelve hexadecimal digits.
const REINSTATE: &str = "waterdata.dev/reinstate";

/// A key that is in force.
pub struct Published {
    /// The ApiKey as last written.
    pub key: ApiKey,
    /// The key.
    pub issued: IssuedKey,
    /// The Secret's name and version, for a generated key.
    pub secret: Option<(String, Option<String>)>,
}

/// A key that is not in force.
pub struct Held {
    /// The ApiKey as last written.
    pub key: ApiKey,
    /// Why.
    pub hindrance: Hindrance,
}

/// Why a key is not in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hindrance {
    /// The directory stands in the way; the outcome is what the status says.
    Directory(Outcome),
    /// The Secret stands in the way.
    Secret(Outcome),
    /// It is written, and these pods may still act on what was there before.
    Gates {
        /// Their names.
        pods: BTreeSet<String>,
        /// When it was written.
        since: Instant,
    },
}

/// Publishes a key that was brought along by its hash; an edited hash replaces the old one at once.
pub async fn brought(
    key: ApiKey,
    brought: &Brought,
    target: &Target<'_>,
    now: Timestamp,
) -> Result<Result<Published, Held>, KeyError> {
    let before = key
        .status
        .as_ref()
        .and_then(|status| status.current.clone());
    let hash: KeyHash = brought.sha256.parse().map_err(|_| InvalidStatus)?;
    let issued = before
        .clone()
        .filter(|current| current.hash == brought.sha256)
        .unwrap_or_else(|| IssuedKey {
            revision: before.as_ref().map_or(0, |current| current.revision + 1),
            hash: brought.sha256.clone(),
            key_id: hash.key_id().to_string(),
            issued_time: now,
        });
    let replaced = before.filter(|current| current.hash != issued.hash);
    let replaced: Vec<_> = replaced
        .map(|old| (old, Removal::Revoke))
        .into_iter()
        .collect();
    Ok(match write(&key, &issued, &replaced, target).await? {
        Ok(()) => Ok(Published {
            key,
            issued,
            secret: None,
        }),
        Err(hindrance) => Err(Held { key, hindrance }),
    })
}

/// Publishes the key that the Secret holds, or makes one where there is no Secret.
pub async fn generated(
    key: ApiKey,
    generated: &Generated,
    api: &WaterDataApi,
    target: &Target<'_>,
    now: Timestamp,
) -> Result<Result<Published, Held>, KeyError> {
    let name = secret::name(&key, generated);
    match secret::find(&key, &name, target.context).await? {
        Found::Foreign => {
            let hindrance = Hindrance::Secret(conflict(&name));
            Ok(Err(Held { key, hindrance }))
        }
        Found::Missing => issue(key, generated, api, target, now).await,
        Found::Own { issued, version } => settle(key, issued, (name, version), target).await,
    }
}

/// The Secret stands, and decides: no other key that the status names can be revealed any more.
pub(super) async fn settle(
    key: ApiKey,
    issued: IssuedKey,
    secret: (String, Option<String>),
    target: &Target<'_>,
) -> Result<Result<Published, Held>, KeyError> {
    target.context.unrevealed.forget(&key);
    let status = key.status.clone().unwrap_or_default();
    let others = status.current.into_iter().chain(status.unrevealed);
    let others = others.filter(|other| other.hash != issued.hash);
    let others: Vec<_> = others.map(|other| (other, Removal::Withdraw)).collect();
    Ok(match write(&key, &issued, &others, target).await? {
        Ok(()) => Ok(Published {
            key,
            issued,
            secret: Some(secret),
        }),
        Err(hindrance) => Err(Held { key, hindrance }),
    })
}

/// Writes the record of `issued` and takes away those of `replaced`, in one script; done once every
/// gate has acknowledged that. The inner error is for the status; the outer one is tried again.
pub(super) async fn write(
    key: &ApiKey,
    issued: &IssuedKey,
    replaced: &[(IssuedKey, Removal)],
    target: &Target<'_>,
) -> Result<Result<(), Hindrance>, KeyError> {
    let (hash, owner) = (record::hash(issued)?, record::owner(key));
    let reinstate = key
        .annotations()
        .get(REINSTATE)
        .is_some_and(|digits| digits == hash.key_id().as_str());
    let mut changes = Vec::new();
    for (old, removal) in replaced {
        changes.push(remove(key, old, *removal)?);
    }
    changes.push(Change::Put {
        hash,
        record: record::record(key, issued)?,
        owner: owner.clone(),
        reinstate,
    });
    let waits = &target.open.waits;
    waits.announce(&owner, &changes, Instant::now());
    match target.apply(&changes).await {
        Ok(_) if is_told(key, issued) => {
            waits.forget(&owner);
            Ok(Ok(()))
        }
        Ok(applied) => Ok(match waits.confirm(&owner, applied, Instant::now()) {
            Standing::InForce => Ok(()),
            Standing::Awaiting { pods, since } => Err(Hindrance::Gates { pods, since }),
        }),
        Err(KeyError::Directory(error)) => {
            // What may have been written is carried by a rebuild.
            if !error.is_transient() {
                waits.forget(&owner);
            }
            Ok(Err(Hindrance::Directory(refusal(&error, key))))
        }
        Err(error) => Err(error),
    }
}

/// Whether the status says of the present declaration that every gate has acknowledged it. A status
/// that announces a key still says of the one before how that stands.
fn is_told(key: &ApiKey, issued: &IssuedKey) -> bool {
    let Some(status) = &key.status else {
        return false;
    };
    status.observed_generation == key.metadata.generation
        && status.current.as_ref() == Some(issued)
        && status.key_id.as_ref() == Some(&issued.key_id)
        && status.unrevealed.is_empty()
        && holds(&status.conditions, Aspect::Synced)
        && find(&status.conditions, Aspect::Ready)
            .is_some_and(|ready| ready.reason != Reason::AwaitingGates.as_str())
}

pub(super) fn remove(
    key: &ApiKey,
    issued: &IssuedKey,
    removal: Removal,
) -> Result<Change, InvalidStatus> {
    Ok(Change::Remove {
        hash: record::hash(issued)?,
        owner: record::owner(key),
        removal,
    })
}

fn refusal(error: &DirectoryError, key: &ApiKey) -> Outcome {
    use DirectoryError::Write;
    match error {
        Write(WriteError::Revoked(hash)) => Outcome::Stuck(
            Reason::RevokedInStore,
            match key.spec.material.hash {
                Some(_) => format!(
                    "spec.material.hash.sha256 was revoked before: bring another key, or annotate the ApiKey with \
                     {REINSTATE}: {} to accept it again",
                    hash.key_id()
                ),
                None => "the key in the Secret was revoked before: delete the Secret to have another key issued".into(),
            },
        ),
        Write(WriteError::Taken(_)) => Outcome::Stuck(
            Reason::KeyConflict,
            "spec.material.hash.sha256 is another ApiKey's: bring another key, or delete the other ApiKey".into(),
        ),
        Write(WriteError::Owned { .. }) => Outcome::Stuck(
            Reason::DirectoryOwned,
            "the WaterDataApi's key directory belongs to another installation: see the WaterDataApi's status".into(),
        ),
        error if error.is_transient() => {
            Outcome::Underway(Reason::StoreUnavailable, format!("{error}: tried again until it works"))
        }
        error => Outcome::Stuck(Reason::StoreUnavailable, error.to_string()),
    }
}

pub(super) fn conflict(name: &str) -> Outcome {
    let message = format!(
        "the Secret {name} exists and is not this ApiKey's: delete it, or create another ApiKey with another \
         spec.material.generated.secretName"
    );
    Outcome::Stuck(Reason::SecretConflict, message)
}

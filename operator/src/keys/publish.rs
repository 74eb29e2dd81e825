//! Publish before reveal: a key's hash is in the directory, and every gate has acknowledged it, before
//! anybody can read its text.
//!
//! For a generated key the order is: status names the hash, directory, acknowledgements, Secret,
//! status. A kill before the Secret is written loses a text that nobody saw; the next pass finds no
//! Secret, makes another key and takes the hash that the status names out of the directory in the
//! same script.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;
use tokio::time::Instant;
use water_domain::{Fault, KeyHash, KeyPrefix, PlainKey, Timestamp};
use water_keystore::{Change, Removal, WriteError};

use super::record::{self, InvalidStatus};
use super::secret::{self, Created, Found};
use super::unrevealed::UnrevealedKey;
use super::{KeyError, Target, status};
use crate::conditions::{Aspect, Outcome, Reason, holds};
use crate::crd::api_key::{Brought, Generated, IssuedKey, RetiringKey};
use crate::crd::{ApiKey, ApiKeyStatus, WaterDataApi};
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
        Found::Own { issued, version } => {
            target.context.unrevealed.forget(&key);
            // The Secret decides: another hash that the status names was never revealed.
            let current = key
                .status
                .as_ref()
                .and_then(|status| status.current.clone());
            let pending = current.filter(|current| current.hash != issued.hash);
            let pending: Vec<_> = pending
                .map(|old| (old, Removal::Withdraw))
                .into_iter()
                .collect();
            Ok(match write(&key, &issued, &pending, target).await? {
                Ok(()) => Ok(Published {
                    key,
                    issued,
                    secret: Some((name, version)),
                }),
                Err(hindrance) => Err(Held { key, hindrance }),
            })
        }
    }
}

/// Makes a key, publishes it and, once the gates have acknowledged that, writes its Secret.
async fn issue(
    key: ApiKey,
    generated: &Generated,
    api: &WaterDataApi,
    target: &Target<'_>,
    now: Timestamp,
) -> Result<Result<Published, Held>, KeyError> {
    let name = secret::name(&key, generated);
    let unrevealed = &target.context.unrevealed;
    let (key, made) = match unrevealed.get(&key) {
        Some(made) => (key, made),
        None => make(key, target, now).await?,
    };
    let UnrevealedKey {
        plain,
        issued,
        replaced,
    } = &*made;
    if let Err(hindrance) = write(&key, issued, replaced, target).await? {
        return Ok(Err(Held { key, hindrance }));
    }
    let created = secret::create(&key, generated, issued, plain, api, target.context).await?;
    unrevealed.forget(&key);
    let outcome = match created {
        Created::Written(version) => {
            return Ok(Ok(Published {
                key,
                issued: issued.clone(),
                secret: Some((name, version)),
            }));
        }
        Created::Taken => conflict(&name),
        Created::Rejected(message) => Outcome::Stuck(
            Reason::Rejected,
            format!("the API server does not accept the Secret {name}: {message}"),
        ),
    };
    let removal = remove(&key, issued, Removal::Withdraw)?;
    target.apply(&[removal]).await?;
    target.open.waits.forget(&record::owner(&key));
    let hindrance = Hindrance::Secret(outcome);
    Ok(Err(Held { key, hindrance }))
}

/// A new key, which the status names before anything else does.
async fn make(
    key: ApiKey,
    target: &Target<'_>,
    now: Timestamp,
) -> Result<(ApiKey, Arc<UnrevealedKey>), KeyError> {
    let before = key.status.clone().unwrap_or_default();
    let mut random = [0; 48];
    getrandom::fill(&mut random).map_err(KeyError::Random)?;
    let plain = PlainKey::generate(&KeyPrefix::default(), &random);
    let issued = IssuedKey {
        revision: key.spec.rotation.revision.unwrap_or(0),
        hash: plain.hash().to_string(),
        key_id: plain.key_id().to_string(),
        issued_time: now,
    };
    // A key that had been revealed is revoked for good; one that nobody saw leaves no trace.
    let (revealed, unseen): (Vec<_>, Vec<_>) = before
        .current
        .clone()
        .into_iter()
        .partition(|current| before.key_id.as_ref() == Some(&current.key_id));
    let ending = revealed.first().map(|old| retired(old, now));
    let previous = ending.or(before.previous.clone());
    let replaced = previous
        .iter()
        .map(|old| (issued_before(old), Removal::Revoke))
        .chain(unseen.into_iter().map(|old| (old, Removal::Withdraw)))
        .collect();
    let announced = ApiKeyStatus {
        api: Some(target.place.clone()),
        current: Some(issued.clone()),
        previous,
        ..before
    };
    let key = status::write(&key, announced, target.context).await?;
    let made = UnrevealedKey {
        plain,
        issued,
        replaced,
    };
    let made = target.context.unrevealed.keep(&key, made);
    Ok((key, made))
}

fn retired(old: &IssuedKey, at: Timestamp) -> RetiringKey {
    RetiringKey {
        revision: old.revision,
        hash: old.hash.clone(),
        key_id: old.key_id.clone(),
        issued_time: old.issued_time,
        retire_time: at,
    }
}

fn issued_before(old: &RetiringKey) -> IssuedKey {
    IssuedKey {
        revision: old.revision,
        hash: old.hash.clone(),
        key_id: old.key_id.clone(),
        issued_time: old.issued_time,
    }
}

/// Writes the record of `issued` and takes away those of `replaced`, in one script; done once every
/// gate has acknowledged that. The inner error is for the status; the outer one is tried again.
async fn write(
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

/// Whether the status says of the present declaration that every gate has acknowledged it.
fn is_told(key: &ApiKey, issued: &IssuedKey) -> bool {
    let Some(status) = &key.status else {
        return false;
    };
    status.observed_generation == key.metadata.generation
        && status.current.as_ref() == Some(issued)
        && holds(&status.conditions, Aspect::Synced)
        && status.waiting_for.is_empty()
}

fn remove(key: &ApiKey, issued: &IssuedKey, removal: Removal) -> Result<Change, InvalidStatus> {
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

fn conflict(name: &str) -> Outcome {
    let message = format!(
        "the Secret {name} exists and is not this ApiKey's: delete it, or create another ApiKey with another \
         spec.material.generated.secretName"
    );
    Outcome::Stuck(Reason::SecretConflict, message)
}

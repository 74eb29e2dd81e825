//! Publish before reveal: a key's hash is in the directory before anybody can read its text.
//!
//! For a generated key the order is: status names the hash, directory, Secret, status. A kill before
//! the Secret is written loses a text that nobody saw; the next pass finds no Secret, makes another
//! key and takes the hash that the status names out of the directory in the same script.

use kube::ResourceExt;
use water_domain::{Fault, KeyHash, KeyPrefix, PlainKey, Timestamp};
use water_keystore::{Change, Removal, WriteError};

use super::record::{self, InvalidStatus};
use super::secret::{self, Created, Found};
use super::{KeyError, Target, status};
use crate::conditions::{Outcome, Reason};
use crate::crd::api_key::{Brought, Generated, IssuedKey};
use crate::crd::{ApiKey, ApiKeyStatus, WaterDataApi};
use crate::directories::DirectoryError;

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

/// Why a key is not in force; the outcome is what the status says.
pub struct Held {
    /// The ApiKey as last written.
    pub key: ApiKey,
    /// What the status says.
    pub outcome: Outcome,
    /// Whether the directory, rather than the Secret, stands in the way.
    pub at_directory: bool,
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
    Ok(
        match write(&key, &issued, replaced.as_ref(), Removal::Revoke, target).await? {
            Ok(()) => Ok(Published {
                key,
                issued,
                secret: None,
            }),
            Err(outcome) => Err(Held {
                key,
                outcome,
                at_directory: true,
            }),
        },
    )
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
            let outcome = conflict(&name);
            Ok(Err(Held {
                key,
                outcome,
                at_directory: false,
            }))
        }
        Found::Missing => issue(key, generated, api, target, now).await,
        Found::Own { issued, version } => {
            // The Secret decides: another hash that the status names was never revealed.
            let current = key
                .status
                .as_ref()
                .and_then(|status| status.current.clone());
            let pending = current.filter(|current| current.hash != issued.hash);
            Ok(
                match write(&key, &issued, pending.as_ref(), Removal::Withdraw, target).await? {
                    Ok(()) => Ok(Published {
                        key,
                        issued,
                        secret: Some((name, version)),
                    }),
                    Err(outcome) => Err(Held {
                        key,
                        outcome,
                        at_directory: true,
                    }),
                },
            )
        }
    }
}

async fn issue(
    key: ApiKey,
    generated: &Generated,
    api: &WaterDataApi,
    target: &Target<'_>,
    now: Timestamp,
) -> Result<Result<Published, Held>, KeyError> {
    let name = secret::name(&key, generated);
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
    let announced = ApiKeyStatus {
        api: Some(target.place.clone()),
        current: Some(issued.clone()),
        ..before.clone()
    };
    let key = status::write(&key, announced, target.context).await?;
    // A key that had been revealed is revoked for good; one that nobody saw leaves no trace.
    let removal = if before.key_id.is_some() {
        Removal::Revoke
    } else {
        Removal::Withdraw
    };
    if let Err(outcome) = write(&key, &issued, before.current.as_ref(), removal, target).await? {
        return Ok(Err(Held {
            key,
            outcome,
            at_directory: true,
        }));
    }
    let hindrance =
        match secret::create(&key, generated, &issued, &plain, api, target.context).await? {
            Created::Written(version) => {
                return Ok(Ok(Published {
                    key,
                    issued,
                    secret: Some((name, version)),
                }));
            }
            Created::Taken => conflict(&name),
            Created::Rejected(message) => Outcome::Stuck(
                Reason::Rejected,
                format!("the API server does not accept the Secret {name}: {message}"),
            ),
        };
    target
        .apply(&[remove(&key, &issued, Removal::Withdraw)?])
        .await?;
    Ok(Err(Held {
        key,
        outcome: hindrance,
        at_directory: false,
    }))
}

/// Writes the record of `issued` and takes away that of `replaced`, in one script. The inner error
/// is for the status; the outer one is tried again.
async fn write(
    key: &ApiKey,
    issued: &IssuedKey,
    replaced: Option<&IssuedKey>,
    removal: Removal,
    target: &Target<'_>,
) -> Result<Result<(), Outcome>, KeyError> {
    let hash = record::hash(issued)?;
    let reinstate = key
        .annotations()
        .get(REINSTATE)
        .is_some_and(|digits| digits == hash.key_id().as_str());
    let mut changes = Vec::new();
    if let Some(replaced) = replaced {
        changes.push(remove(key, replaced, removal)?);
    }
    changes.push(Change::Put {
        hash,
        record: record::record(key, issued)?,
        owner: record::owner(key),
        reinstate,
    });
    match target.apply(&changes).await {
        Ok(()) => Ok(Ok(())),
        Err(KeyError::Directory(error)) => Ok(Err(refusal(&error, key))),
        Err(error) => Err(error),
    }
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

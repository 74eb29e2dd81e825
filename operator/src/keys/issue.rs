//! A new key: named in the status, published, acknowledged by every gate, and only then revealed in
//! its Secret.
//!
//! A leader that is lost before it writes the Secret loses a text that nobody saw. Its successor
//! makes another key, but cannot know whether the lost one will still write: until a Secret stands,
//! which no second one can replace, every announced hash stays in the directory and in the status.

use std::sync::Arc;

use water_domain::{KeyPrefix, PlainKey, Timestamp};
use water_keystore::Removal;

use super::publish::{Held, Hindrance, Published, conflict, remove, settle, write};
use super::secret::{self, Created, Found};
use super::unrevealed::UnrevealedKey;
use super::{KeyError, Target, record, status};
use crate::conditions::{Outcome, Reason};
use crate::crd::api_key::{Generated, IssuedKey, RetiringKey, UNREVEALED};
use crate::crd::{ApiKey, ApiKeyStatus, WaterDataApi};

/// Makes a key, publishes it and, once the gates have acknowledged that, writes its Secret.
pub async fn issue(
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
    let outcome = match created {
        Created::Written(version) => {
            return reveal(key, issued.clone(), (name, version), target).await;
        }
        Created::Taken => match secret::find(&key, &name, target.context).await? {
            // An earlier leader was not lost after all.
            Found::Own { issued, version } => {
                return settle(key, issued, (name, version), target).await;
            }
            Found::Missing | Found::Foreign => conflict(&name),
        },
        Created::Rejected(message) => Outcome::Stuck(
            Reason::Rejected,
            format!("the API server does not accept the Secret {name}: {message}"),
        ),
    };
    discard(key, issued, outcome, target).await
}

/// The Secret is written. Where no leader was lost before, nothing is left to be taken back.
async fn reveal(
    key: ApiKey,
    issued: IssuedKey,
    secret: (String, Option<String>),
    target: &Target<'_>,
) -> Result<Result<Published, Held>, KeyError> {
    let is_only = key
        .status
        .as_ref()
        .is_none_or(|status| status.unrevealed.is_empty());
    if !is_only {
        return settle(key, issued, secret, target).await;
    }
    target.context.unrevealed.forget(&key);
    Ok(Ok(Published {
        key,
        issued,
        secret: Some(secret),
    }))
}

/// Takes a key back that nobody will ever see.
async fn discard(
    mut key: ApiKey,
    issued: &IssuedKey,
    outcome: Outcome,
    target: &Target<'_>,
) -> Result<Result<Published, Held>, KeyError> {
    target.context.unrevealed.forget(&key);
    let removal = remove(&key, issued, Removal::Withdraw)?;
    target.apply(&[removal]).await?;
    target.open.waits.forget(&record::owner(&key));
    if let Some(status) = &mut key.status {
        status.current = None;
    }
    let hindrance = Hindrance::Secret(outcome);
    Ok(Err(Held { key, hindrance }))
}

/// A new key, which the status names before anything else does.
async fn make(
    key: ApiKey,
    target: &Target<'_>,
    now: Timestamp,
) -> Result<(ApiKey, Arc<UnrevealedKey>), KeyError> {
    let mut random = [0; 48];
    getrandom::fill(&mut random).map_err(KeyError::Random)?;
    let plain = PlainKey::generate(&KeyPrefix::default(), &random);
    let issued = IssuedKey {
        revision: key.spec.rotation.revision.unwrap_or(0),
        hash: plain.hash().to_string(),
        key_id: plain.key_id().to_string(),
        issued_time: now,
    };
    let before = key.status.clone().unwrap_or_default();
    let (announced, replaced) = announced(before, issued.clone(), now);
    let announced = ApiKeyStatus {
        api: Some(target.place.clone()),
        ..announced
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

/// The status that announces `issued`, and what is taken away when that is published: a key that had
/// been revealed, for good. One that nobody saw may yet be revealed, unless it is one too many: it
/// leaves no trace.
fn announced(
    before: ApiKeyStatus,
    issued: IssuedKey,
    now: Timestamp,
) -> (ApiKeyStatus, Vec<(IssuedKey, Removal)>) {
    let (revealed, unseen): (Vec<_>, Vec<_>) = before
        .current
        .into_iter()
        .partition(|current| before.key_id.as_ref() == Some(&current.key_id));
    let ending = revealed.first().map(|old| retired(old, now));
    let previous = ending.or(before.previous);
    let mut unrevealed: Vec<_> = unseen.into_iter().chain(before.unrevealed).collect();
    let forgotten = unrevealed.split_off(unrevealed.len().min(UNREVEALED));
    let replaced = previous
        .iter()
        .map(|old| (issued_before(old), Removal::Revoke))
        .chain(forgotten.into_iter().map(|old| (old, Removal::Withdraw)))
        .collect();
    let announced = ApiKeyStatus {
        current: Some(issued),
        previous,
        unrevealed,
        ..before
    };
    (announced, replaced)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn issued(digit: char) -> IssuedKey {
        IssuedKey {
            revision: 0,
            hash: digit.to_string().repeat(64),
            key_id: digit.to_string().repeat(12),
            issued_time: at(0),
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    /// Announces these, one after the other, without revealing any.
    fn announce(before: ApiKeyStatus, digits: &str) -> (ApiKeyStatus, String) {
        let mut withdrawn = String::new();
        let mut status = before;
        for digit in digits.chars() {
            let (announced, replaced) = announced(status, issued(digit), at(5));
            let gone = replaced
                .iter()
                .filter(|(_, removal)| *removal == Removal::Withdraw);
            withdrawn.extend(gone.map(|(key, _)| &key.key_id[..1]));
            status = announced;
        }
        (status, withdrawn)
    }

    fn ids(keys: &[IssuedKey]) -> String {
        keys.iter().map(|key| &key.key_id[..1]).collect()
    }

    #[test]
    fn what_nobody_saw_stays_announced_the_latest_first() {
        let (status, withdrawn) = announce(ApiKeyStatus::default(), "abc");
        assert_eq!(status.current, Some(issued('c')));
        assert_eq!(ids(&status.unrevealed), "ba");
        assert_eq!(withdrawn, "");
    }

    #[test]
    fn one_too_many_is_withdrawn() {
        let (status, withdrawn) = announce(ApiKeyStatus::default(), "abcdef0123");
        assert_eq!(ids(&status.unrevealed), "210fedcb");
        assert_eq!(withdrawn, "a");
    }

    #[test]
    fn a_key_that_had_been_revealed_is_revoked_however_many_are_announced_after_it() {
        let told = ApiKeyStatus {
            current: Some(issued('a')),
            key_id: Some(issued('a').key_id),
            ..ApiKeyStatus::default()
        };
        let (status, _) = announce(told, "bc");
        assert_eq!(status.previous, Some(retired(&issued('a'), at(5))));
        assert_eq!(ids(&status.unrevealed), "b");
        let (_, replaced) = announced(status, issued('d'), at(6));
        assert_eq!(replaced, [(issued('a'), Removal::Revoke)]);
    }
}

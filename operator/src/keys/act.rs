//! Carries a decision out: one arm a step, one write each.

use kube::Api;
use tokio::time::Instant;
use tracing::info;
use water_domain::{KeyHash, KeyPrefix, PlainKey, PlanName, Timestamp};
use water_keystore::{Owner, WriteError};

use super::error::KeyError;
use super::gather::{Reading, Scene};
use super::memory::MadeKey;
use super::record::{self, Issued};
use super::secret::{self, Created};
use super::seen::Terms;
use super::step::{Declaration, Release, Step};
use super::{finalizer, status};
use crate::context::Context;
use crate::crd::ApiKey;
use crate::crd::api_key::{ApiKeyStatus, IssuedKey, RetiringKey, UNREVEALED};
use crate::directories::DirectoryError;
use crate::directories::waits::Mark;
use crate::events::Happening;

/// What came of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// The next pass follows at once.
    Step,
    /// Nothing changed, or somebody else wrote first: the next pass waits a little.
    Nothing,
    /// The ApiKey may go.
    Released,
}

/// Takes one step.
pub async fn act(
    scene: &Scene,
    step: Step<KeyHash, PlanName>,
    context: &Context,
    now: Timestamp,
) -> Result<Done, KeyError> {
    match step {
        Step::Finalize => finalize(scene, context).await,
        Step::Make => make(scene, context, now),
        Step::Announce(hash) => announce(scene, hash, context, now).await,
        Step::Declare(declaration) => declare(scene, declaration, context).await,
        Step::Reveal(hash) => reveal(scene, hash, context).await,
        Step::Release(release) => let_go(scene, release, context).await,
    }
}

async fn finalize(scene: &Scene, context: &Context) -> Result<Done, KeyError> {
    let written = finalizer::add(decoded(scene)?, &api(scene, context)).await?;
    context.memory.keep_written(&written);
    Ok(Done::Step)
}

fn make(scene: &Scene, context: &Context, now: Timestamp) -> Result<Done, KeyError> {
    let mut random = [0; 48];
    getrandom::fill(&mut random)?;
    let plain = PlainKey::generate(&KeyPrefix::default(), &random);
    let revision = decoded(scene)?.spec.rotation.revision.unwrap_or(0);
    let issued = Issued {
        hash: plain.hash(),
        key_id: plain.key_id(),
        // The schema bounds it far below.
        revision: revision.try_into().unwrap_or(0),
        time: now,
    };
    let made = MadeKey {
        plain,
        issued,
        is_name_taken: false,
    };
    context.memory.keep_made(scene.subject.uid(), made);
    Ok(Done::Step)
}

async fn announce(
    scene: &Scene,
    hash: KeyHash,
    context: &Context,
    now: Timestamp,
) -> Result<Done, KeyError> {
    let key = decoded(scene)?;
    let issued = scene.issued.get(&hash).ok_or(KeyError::Unread("a key"))?;
    let announced = ApiKeyStatus {
        api: scene.place.clone(),
        ..announced(scene.subject.status.clone(), issued.told(), now)
    };
    status::put(key, announced, context).await?;
    Ok(Done::Step)
}

/// The status that announces `issued`. The key before it is to retire if its owner can have seen
/// it; otherwise it may still be revealed by whoever announced it. Of those the oldest are dropped.
fn announced(before: ApiKeyStatus, issued: IssuedKey, now: Timestamp) -> ApiKeyStatus {
    let current = before.current.filter(|current| current.hash != issued.hash);
    let (revealed, unseen): (Vec<_>, Vec<_>) = current
        .into_iter()
        .partition(|current| before.key_id.as_ref() == Some(&current.key_id));
    let retiring = revealed.into_iter().next().map(|old| RetiringKey {
        revision: old.revision,
        hash: old.hash,
        key_id: old.key_id,
        issued_time: old.issued_time,
        retire_time: now,
    });
    let mut unrevealed: Vec<IssuedKey> = unseen.into_iter().chain(before.unrevealed).collect();
    unrevealed.retain(|other| other.hash != issued.hash);
    unrevealed.truncate(UNREVEALED);
    ApiKeyStatus {
        current: Some(issued),
        previous: retiring.or(before.previous),
        unrevealed,
        ..before
    }
}

async fn declare(
    scene: &Scene,
    wanted: Declaration<KeyHash, PlanName>,
    context: &Context,
) -> Result<Done, KeyError> {
    let reading = scene
        .reading
        .as_ref()
        .ok_or(KeyError::Unread("a directory"))?;
    let owner = record::owner(&scene.subject.meta);
    let (number, is_last) = (wanted.number, wanted.is_last);
    let declaration = declaration(scene, reading, wanted, owner.clone())?;
    let directories = &context.directories;
    let declared = match directories
        .declare(&reading.open, &reading.writer, &declaration)
        .await
    {
        Ok(declared) => declared,
        // Another declaration came between: what it did is read first.
        Err(DirectoryError::Write(WriteError::Outdated { .. } | WriteError::OwnerGone)) => {
            return Ok(Done::Nothing);
        }
        Err(error) => return Err(error.into()),
    };
    let mark = Mark {
        generation: declared.applied.generation,
        // What is gone has no number any more.
        number: if is_last { 0 } else { declared.number },
        is_last,
    };
    reading
        .open
        .waits
        .begin(&owner, mark, declared.applied, Instant::now());
    let is_done = declared.refused.is_empty() && (is_last || declared.number != number);
    Ok(if is_done { Done::Step } else { Done::Nothing })
}

fn declaration(
    scene: &Scene,
    reading: &Reading,
    wanted: Declaration<KeyHash, PlanName>,
    owner: Owner,
) -> Result<water_keystore::Declaration, KeyError> {
    let account = scene.subject.account.as_ref();
    let record = |(hash, terms): (KeyHash, Terms<PlanName>)| {
        let record = match (scene.issued.get(&hash), reading.records.get(&hash)) {
            (Some(issued), _) => {
                issued.record(account.ok_or(KeyError::Unread("an account"))?, &terms)
            }
            (None, Some(Some(held))) => record::with_terms(held, &terms),
            (None, _) => return Err(KeyError::Unread("a key")),
        };
        Ok((hash, record))
    };
    let records: Result<_, KeyError> = wanted.records.into_iter().map(record).collect();
    Ok(water_keystore::Declaration {
        owner,
        number: wanted.number,
        records: records?,
        withdrawn: wanted.withdrawn,
        revoked: wanted.revoked,
        reinstated: wanted.reinstated,
        origin: reading.origin.clone(),
        is_last: wanted.is_last,
    })
}

async fn reveal(scene: &Scene, hash: KeyHash, context: &Context) -> Result<Done, KeyError> {
    let (uid, key) = (scene.subject.uid(), decoded(scene)?);
    let made = scene.made.as_ref().filter(|made| made.issued.hash == hash);
    let made = made.ok_or(KeyError::Unread("a key's text"))?;
    let installation = scene
        .api
        .as_ref()
        .ok_or(KeyError::Unread("a WaterDataApi"))?;
    match secret::create(key, &made.issued, &made.plain, installation, context).await? {
        Created::Written => context.memory.forget_made(uid),
        // A lost leader's, somebody else's, or our own of which no answer came.
        Created::Taken => {
            let taken = MadeKey {
                plain: made.plain.clone(),
                issued: made.issued.clone(),
                is_name_taken: true,
            };
            context.memory.keep_made(uid, taken);
            return Ok(if made.is_name_taken {
                Done::Nothing
            } else {
                Done::Step
            });
        }
        Created::Rejected(message) => return Err(KeyError::Rejected(message)),
    }
    Ok(Done::Step)
}

async fn let_go(scene: &Scene, release: Release, context: &Context) -> Result<Done, KeyError> {
    let subject = &scene.subject;
    finalizer::remove(&subject.meta, &api(scene, context)).await?;
    context.memory.forget_made(subject.uid());
    if let Some(reading) = &scene.reading {
        reading.open.waits.forget(subject.uid());
    }
    let shown = subject.status.key_id.as_deref();
    let happened = match (release, shown) {
        (Release::Revoked, Some(key_id)) => {
            info!(
                namespace = subject.namespace(),
                name = subject.name(),
                key.id = key_id,
                "key revoked"
            );
            Happening::normal("KeyRevoked", format!("key {key_id} is refused for good"))
        }
        (Release::Unreachable, _) => Happening::warning(
            "KeyNotRevoked",
            "the WaterDataApi is gone and no gate of it runs, so nothing accepts the key; its Redis was not \
             reached, and a WaterDataApi that is created again rebuilds the key directory without it",
        ),
        (Release::Revoked | Release::NeverDeclared, _) => return Ok(Done::Released),
    };
    let about = subject.reference();
    context.events.report(&about, &[happened]);
    Ok(Done::Released)
}

fn decoded(scene: &Scene) -> Result<&ApiKey, KeyError> {
    let key = scene.subject.key.as_ref();
    key.map_err(|_| KeyError::Unread("an ApiKey that can be decoded"))
}

fn api(scene: &Scene, context: &Context) -> Api<ApiKey> {
    context.api(scene.subject.namespace())
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
    fn announce(before: ApiKeyStatus, digits: &str) -> ApiKeyStatus {
        let announce = |status, digit| announced(status, issued(digit), at(5));
        digits.chars().fold(before, announce)
    }

    fn ids(keys: &[IssuedKey]) -> String {
        keys.iter().map(|key| &key.key_id[..1]).collect()
    }

    #[test]
    fn what_nobody_saw_stays_announced_the_latest_first() {
        let status = announce(ApiKeyStatus::default(), "abc");
        assert_eq!(status.current, Some(issued('c')));
        assert_eq!(ids(&status.unrevealed), "ba");
    }

    #[test]
    fn one_too_many_is_dropped() {
        let status = announce(ApiKeyStatus::default(), "abcdef0123");
        assert_eq!(ids(&status.unrevealed), "210fedcb");
    }

    #[test]
    fn announcing_the_same_key_again_changes_nothing() {
        let once = announce(ApiKeyStatus::default(), "ab");
        assert_eq!(announce(once.clone(), "b"), once);
    }

    #[test]
    fn a_key_that_had_been_revealed_retires_however_many_are_announced_after_it() {
        let told = ApiKeyStatus {
            current: Some(issued('a')),
            key_id: Some(issued('a').key_id),
            ..ApiKeyStatus::default()
        };
        let status = announce(told, "bc");
        assert_eq!(status.previous.map(|old| old.hash), Some(issued('a').hash));
        assert_eq!(ids(&status.unrevealed), "b");
    }
}

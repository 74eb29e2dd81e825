//! Carries a decision out: one arm a step, one write each.

use kube::Api;
use tokio::time::Instant;
use tracing::info;
use water_domain::{KeyHash, KeyPrefix, PlainKey, PlanName, Timestamp};
use water_keystore::{Owner, WriteError};
use water_resources::api_key::{
    ApiKeyStatus, IssuedKey, REISSUES, Reissue, RetiringKey, UNREVEALED,
};
use water_resources::{ApiKey, WaterDataApi};

use super::changes;
use super::error::KeyError;
use super::gather::{DirectoryReading, Gathered};
use super::memory::MadeKey;
use super::record::{self, Issued};
use super::seen::{KeyRules, Secret};
use super::step::{Declaration, Handover, Release, Step};
use super::{finalizer, status};
use crate::context::Context;
use crate::directories::DirectoryError;
use crate::directories::pending::DeclarationId;
use crate::events::Transition;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// The next pass follows at once.
    Step,
    /// Nothing changed, or another writer was first: the next pass follows after a pause.
    Nothing,
    /// The ApiKey may go.
    Released,
}

pub async fn act(
    gathered: &Gathered,
    step: Step<KeyHash, PlanName>,
    context: &Context,
) -> Result<Done, KeyError> {
    match step {
        Step::Finalize => finalize(gathered, context).await,
        Step::Make => make(gathered, context),
        Step::Announce { hash, is_reissue } => announce(gathered, hash, is_reissue, context).await,
        Step::Retire { hash, at } => retire(gathered, hash, at, context).await,
        Step::Declare(declaration) => declare(gathered, declaration, context).await,
        Step::Reveal(handover) | Step::Replace(handover) => {
            hand_over(gathered, handover, context).await
        }
        Step::Amend => amend(gathered, context).await,
        Step::Release(release) => let_go(gathered, release, context).await,
    }
}

async fn finalize(gathered: &Gathered, context: &Context) -> Result<Done, KeyError> {
    let written = finalizer::add(decoded(gathered)?, &api(gathered, context)).await?;
    context.memory.keep_written(&written);
    Ok(Done::Step)
}

fn make(gathered: &Gathered, context: &Context) -> Result<Done, KeyError> {
    let mut random = [0; 48];
    getrandom::fill(&mut random)?;
    let plain = PlainKey::generate(&KeyPrefix::default(), &random);
    let spec = gathered.seen.spec.as_ref();
    let wanted = spec.map_or(0, |spec| spec.rotation.revision);
    let issued = Issued {
        hash: plain.hash(),
        key_id: plain.key_id(),
        revision: wanted.max(gathered.seen.status.revision),
        time: reading(gathered)?.now,
    };
    let made = MadeKey {
        plain,
        issued,
        is_overtaken: false,
    };
    context.memory.keep_made(gathered.subject.uid(), made);
    Ok(Done::Step)
}

async fn announce(
    gathered: &Gathered,
    hash: KeyHash,
    is_reissue: bool,
    context: &Context,
) -> Result<Done, KeyError> {
    let key = decoded(gathered)?;
    let issued = gathered
        .issued
        .get(&hash)
        .ok_or(KeyError::Unread("a key"))?;
    let reissue = Reissue {
        key_id: issued.key_id.to_string(),
        time: reading(gathered)?.now,
    };
    let reissue = is_reissue.then_some(reissue);
    let announced = ApiKeyStatus {
        api: gathered.place.clone(),
        ..announced(gathered.subject.status.clone(), issued.told(), reissue)
    };
    status::put(key, announced, context).await?;
    Ok(Done::Step)
}

async fn retire(
    gathered: &Gathered,
    hash: KeyHash,
    at: Timestamp,
    context: &Context,
) -> Result<Done, KeyError> {
    let issued = gathered
        .issued
        .get(&hash)
        .ok_or(KeyError::Unread("a key"))?;
    let before = gathered.subject.status.clone();
    let status = retired(before, issued.retiring(at), gathered.subject.brought);
    status::put(decoded(gathered)?, status, context).await?;
    Ok(Done::Step)
}

/// The status that names the end of a key. A key whose end it named before stays announced if it is the
/// one that is declared again.
fn retired(before: ApiKeyStatus, retiring: RetiringKey, declared: Option<KeyHash>) -> ApiKeyStatus {
    let declared = declared.map(|hash| hash.to_string());
    let again = before
        .previous
        .map(|before| before.issued)
        .filter(|before| Some(&before.hash) == declared.as_ref());
    let unrevealed = again.into_iter().chain(before.unrevealed);
    ApiKeyStatus {
        unrevealed: unrevealed.take(UNREVEALED).collect(),
        previous: Some(retiring),
        ..before
    }
}

/// The status that announces `issued`. A current key that is in the Secret stays current, and the new
/// key is unrevealed. Otherwise the new key is current, and the one before it, which a stopped leader
/// may still write into the Secret, becomes unrevealed. The oldest unrevealed ones are dropped.
fn announced(before: ApiKeyStatus, issued: IssuedKey, reissue: Option<Reissue>) -> ApiKeyStatus {
    let is_other = |other: &IssuedKey| other.hash != issued.hash;
    let is_shown = |current: &IssuedKey| before.key_id.as_ref() == Some(&current.key_id);
    let reissues = reissues(&before, reissue);
    let (current, latest) = match before.current {
        Some(current) if is_shown(&current) => (current, Some(issued.clone())),
        current => (issued.clone(), current),
    };
    let is_told = |other: &IssuedKey| other.hash == current.hash;
    let rest = before.unrevealed.into_iter().filter(is_other);
    let unrevealed = latest.into_iter().filter(|latest| !is_told(latest));
    ApiKeyStatus {
        unrevealed: unrevealed.chain(rest).take(UNREVEALED).collect(),
        current: Some(current),
        reissues,
        ..before
    }
}

/// A reissue that another leader began and did not finish is counted once.
fn reissues(before: &ApiKeyStatus, reissue: Option<Reissue>) -> Vec<Reissue> {
    let mut reissues = before.reissues.clone();
    if let Some(reissue) = reissue {
        let is_unended = |last: &mut Reissue| {
            let mut announced = before.unrevealed.iter();
            announced.any(|issued| issued.key_id == last.key_id)
        };
        reissues.pop_if(is_unended);
        reissues.push(reissue);
    }
    let old = reissues.len().saturating_sub(REISSUES);
    reissues.split_off(old)
}

async fn declare(
    gathered: &Gathered,
    wanted: Declaration<KeyHash, PlanName>,
    context: &Context,
) -> Result<Done, KeyError> {
    let reading = reading(gathered)?;
    let owner = record::owner(&gathered.subject.meta);
    let (number, is_last) = (wanted.number, wanted.is_last);
    let declaration = declaration(gathered, reading, wanted, owner.clone())?;
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
    let happened = changes::told(&reading.records, &declaration, &declared.refused);
    context
        .events
        .report(&gathered.subject.reference(), &happened);
    let id = DeclarationId {
        generation: declared.applied.generation,
        // What is gone has no number any more.
        number: if is_last { 0 } else { declared.number },
        is_last,
    };
    reading
        .open
        .pending
        .begin(&owner, id, declared.applied, Instant::now());
    let is_done = declared.refused.is_empty() && (is_last || declared.number != number);
    Ok(if is_done { Done::Step } else { Done::Nothing })
}

fn declaration(
    gathered: &Gathered,
    reading: &DirectoryReading,
    wanted: Declaration<KeyHash, PlanName>,
    owner: Owner,
) -> Result<water_keystore::Declaration, KeyError> {
    let account = gathered.subject.account.as_ref();
    let record = |(hash, rules): (KeyHash, KeyRules<PlanName>)| {
        let record = match (gathered.issued.get(&hash), reading.records.get(&hash)) {
            (Some(issued), _) => {
                issued.record(account.ok_or(KeyError::Unread("an account"))?, &rules)
            }
            (None, Some(Some(held))) => {
                record::record(&held.key_id, &held.account, held.revision, &rules)
            }
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

/// Creates the Secret, or writes the existing one.
async fn hand_over(
    gathered: &Gathered,
    handover: Handover<KeyHash>,
    context: &Context,
) -> Result<Done, KeyError> {
    let (uid, key, api) = (
        gathered.subject.uid(),
        decoded(gathered)?,
        installation(gathered)?,
    );
    let made = gathered.made.as_ref();
    let made = made.filter(|made| made.issued.hash == handover.hash);
    let made = made.ok_or(KeyError::Unread("a key's text"))?;
    let before = |(hash, at)| Some((gathered.issued.get(&hash)?.clone(), at));
    let before = handover.retiring.and_then(before);
    let secrets = &context.secrets;
    let written = match &gathered.secret {
        None => secrets.create(key, made, before.as_ref(), api).await?,
        Some(secret) => {
            secrets
                .replace(key, made, before.as_ref(), api, secret)
                .await?
        }
    };
    match written {
        Some(meta) => {
            context.memory.forget_made(uid);
            secrets.kept.keep(uid, meta, Some(handover.hash));
            Ok(Done::Step)
        }
        // A lost leader's, somebody else's, or our own of which no answer came.
        None => {
            let overtaken = MadeKey {
                plain: made.plain.clone(),
                issued: made.issued.clone(),
                is_overtaken: true,
            };
            context.memory.keep_made(uid, overtaken);
            Ok(if made.is_overtaken {
                Done::Nothing
            } else {
                Done::Step
            })
        }
    }
}

async fn amend(gathered: &Gathered, context: &Context) -> Result<Done, KeyError> {
    let (key, api) = (decoded(gathered)?, installation(gathered)?);
    let secret = gathered.secret.as_ref();
    let (secret, issued) = secret
        .and_then(|secret| Some((secret, secret.issued.as_ref()?)))
        .ok_or(KeyError::Unread("a Secret"))?;
    let before = &secret.meta.resource_version;
    match context.secrets.amend(key, issued, api, secret).await? {
        // Admission undid it: another try would, too.
        Some(meta) if meta.resource_version == *before => Err(KeyError::Rejected(
            "its labels, annotations or owners are changed back when they are written".into(),
        )),
        Some(meta) => {
            let subject = &gathered.subject;
            info!(
                namespace = subject.namespace(), name = subject.name(), key.id = %issued.key_id,
                "wrote what else is declared into the key's Secret"
            );
            if matches!(gathered.seen.secret, Secret::Orphan { .. }) {
                let name = meta.name.as_deref().unwrap_or_default();
                let note = format!("the Secret {name} is taken over with key {}", issued.key_id);
                let adopted = [Transition::normal("SecretAdopted", note)];
                context.events.report(&subject.reference(), &adopted);
            }
            let kept = &context.secrets.kept;
            kept.keep(subject.uid(), meta, Some(issued.hash));
            Ok(Done::Step)
        }
        None => Ok(Done::Nothing),
    }
}

async fn let_go(
    gathered: &Gathered,
    release: Release,
    context: &Context,
) -> Result<Done, KeyError> {
    let subject = &gathered.subject;
    finalizer::remove(&subject.meta, &api(gathered, context)).await?;
    context.memory.release(subject.uid());
    if let Some(reading) = &gathered.reading {
        reading.open.pending.forget(subject.uid());
    }
    let happened = match release {
        Release::Revoked => {
            let key_id = subject.status.key_id.as_ref();
            let key = key_id.map_or("its key".into(), |key_id| format!("key {key_id}"));
            Transition::normal("KeyRevoked", format!("{key} is refused for good"))
        }
        Release::Unreachable => Transition::warning(
            "KeyNotRevoked",
            "the WaterDataApi is gone and no gate of it runs, so nothing accepts the key; its Redis was not \
             reached, and a WaterDataApi that is created again rebuilds the key directory without it",
        ),
        Release::NeverDeclared => return Ok(Done::Released),
    };
    let about = subject.reference();
    context.events.report(&about, &[happened]);
    Ok(Done::Released)
}

fn decoded(gathered: &Gathered) -> Result<&ApiKey, KeyError> {
    let key = gathered.subject.key.as_ref();
    key.map_err(|_| KeyError::Unread("an ApiKey that can be decoded"))
}

fn installation(gathered: &Gathered) -> Result<&WaterDataApi, KeyError> {
    let api = gathered.api.as_ref();
    api.ok_or(KeyError::Unread("a WaterDataApi"))
}

fn reading(gathered: &Gathered) -> Result<&DirectoryReading, KeyError> {
    let reading = gathered.reading.as_ref();
    reading.ok_or(KeyError::Unread("a directory"))
}

fn api(gathered: &Gathered, context: &Context) -> Api<ApiKey> {
    context.api(gathered.subject.namespace())
}

#[cfg(test)]
mod tests;

//! Carries a decision out: one arm a step, one write each.

use kube::Api;
use tokio::time::Instant;
use tracing::info;
use water_domain::{KeyHash, KeyPrefix, PlainKey, PlanName, Timestamp};
use water_keystore::{Owner, WriteError};
use water_operator_core::key::facts::{Issue, KeyRules, Secret};
use water_operator_core::key::ledger::{self, Ledger};
use water_operator_core::key::step::{Declaration, Handover, Release, Step};
use water_resources::api_key::{ApiKeyStatus, ApiName, Reissue};
use water_resources::{ApiKey, WaterDataApi};

use super::changes;
use super::error::KeyError;
use super::gather::{DirectoryReading, PassInput};
use super::memory::MadeKey;
use super::record::{self, Issuance};
use super::secret::SecretData;
use super::{finalizer, status};
use crate::context::Context;
use crate::directories::DirectoryError;
use crate::directories::pending::DeclarationId;
use crate::events::Transition;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepOutcome {
    /// The next pass follows at once.
    Step,
    /// Nothing changed, or another writer was first: the next pass follows after a pause.
    Nothing,
    /// The ApiKey may go.
    Released,
}

pub async fn act(
    gathered: &PassInput,
    step: Step<KeyHash, PlanName>,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
    let written = step.written();
    // An ApiKey that is being deleted is released once.
    let is_limited = !step.restricts() && !matches!(step, Step::Make(_) | Step::Release(_));
    let (uid, progress) = (gathered.subject.uid(), gathered.progress());
    let (limit, now) = (&context.memory.writes, Instant::now());
    if is_limited
        && let Some(written) = written
        && !limit.allows(uid, progress, now)
    {
        return Err(KeyError::Undone(written));
    }
    let done = carried_out(gathered, step, context).await;
    match &done {
        Ok(StepOutcome::Step) if is_limited => limit.count(uid, progress, now),
        Err(KeyError::Undone(_)) if is_limited => limit.exhaust(uid, progress, now),
        _ => {}
    }
    done.map_err(|error| error.of_write(written))
}

async fn carried_out(
    gathered: &PassInput,
    step: Step<KeyHash, PlanName>,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
    match step {
        Step::Finalize => finalize(gathered, context).await,
        Step::Make(issue) => make(gathered, issue, context),
        Step::Announce { hash, reissued } => announce(gathered, hash, reissued, context).await,
        Step::Retire { hash, at } => retire(gathered, hash, at, context).await,
        Step::Declare(declaration) => declare(gathered, declaration, context).await,
        Step::Reveal(handover) | Step::Replace(handover) => {
            hand_over(gathered, handover, context).await
        }
        Step::Amend => amend(gathered, context).await,
        Step::Release(release) => let_go(gathered, release, context).await,
    }
}

async fn finalize(gathered: &PassInput, context: &Context) -> Result<StepOutcome, KeyError> {
    let written = finalizer::add(decoded(gathered)?, &api(gathered, context)).await?;
    context.memory.keep_written(&written);
    Ok(StepOutcome::Step)
}

fn make(gathered: &PassInput, issue: Issue, context: &Context) -> Result<StepOutcome, KeyError> {
    let mut random = [0; 48];
    getrandom::fill(&mut random)?;
    let plain = PlainKey::generate(&KeyPrefix::default(), &random);
    let issued = Issuance {
        hash: plain.hash(),
        key_id: plain.key_id(),
        revision: issue.revision,
        time: issue.time,
    };
    let made = MadeKey {
        plain,
        issued,
        is_overtaken: false,
    };
    context.memory.keep_made(gathered.subject.uid(), made);
    Ok(StepOutcome::Step)
}

async fn announce(
    gathered: &PassInput,
    hash: KeyHash,
    reissued: Option<Timestamp>,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
    let issued = issued(gathered, &hash)?;
    let before = gathered.subject.status.clone();
    let mut reissues = before.reissues;
    if let Some(time) = reissued {
        let next = Reissue {
            key_id: issued.key_id.to_string(),
            time,
        };
        let announced = &before.unrevealed;
        let is_begun = |last: &Reissue| announced.iter().any(|issued| issued.key_id == last.key_id);
        reissues = ledger::reissues(reissues, is_begun, next);
    }
    let before = ApiKeyStatus {
        api: gathered.place.clone(),
        reissues,
        ..before
    };
    let ledger = gathered.facts.ledger.clone().announce(hash);
    put(gathered, before, &ledger, context).await
}

async fn retire(
    gathered: &PassInput,
    hash: KeyHash,
    at: Timestamp,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
    issued(gathered, &hash)?;
    let ledger = gathered.facts.ledger.clone();
    let ledger = ledger.retire(hash, at, gathered.subject.brought);
    put(gathered, gathered.subject.status.clone(), &ledger, context).await
}

/// Writes the status with the keys of this ledger.
async fn put(
    gathered: &PassInput,
    before: ApiKeyStatus,
    ledger: &Ledger<KeyHash>,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
    let status = record::named(before, ledger, &gathered.issued);
    status::put(decoded(gathered)?, status, context).await?;
    Ok(StepOutcome::Step)
}

async fn declare(
    gathered: &PassInput,
    wanted: Declaration<KeyHash, PlanName>,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
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
            return Ok(StepOutcome::Nothing);
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
    Ok(if is_done {
        StepOutcome::Step
    } else {
        StepOutcome::Nothing
    })
}

fn declaration(
    gathered: &PassInput,
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
    gathered: &PassInput,
    handover: Handover<KeyHash>,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
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
            report_revoked(gathered, context);
            secrets
                .kept
                .keep(uid, meta, SecretData::written(handover.hash));
            Ok(StepOutcome::Step)
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
                StepOutcome::Nothing
            } else {
                StepOutcome::Step
            })
        }
    }
}

/// Reports that the Secret held a revoked key before its ApiKey had any: no two statuses show that.
fn report_revoked(gathered: &PassInput, context: &Context) {
    let is_orphan = matches!(gathered.facts.secret, Secret::Orphan { .. });
    let secret = gathered.secret.as_ref();
    let before = secret.and_then(|secret| Some((&secret.meta.name, secret.issued.as_ref()?)));
    if let Some((name, issued)) = before
        && is_orphan
        && !gathered.facts.ledger.has_revealed()
    {
        let name = name.as_deref().unwrap_or_default();
        let note = format!(
            "the Secret {name} held key {}, which was revoked before: another one is in it",
            issued.key_id
        );
        let happened = [Transition::warning("SecretReissued", note)];
        context
            .events
            .report(&gathered.subject.reference(), &happened);
    }
}

async fn amend(gathered: &PassInput, context: &Context) -> Result<StepOutcome, KeyError> {
    let (key, api) = (decoded(gathered)?, installation(gathered)?);
    let secret = gathered.secret.as_ref();
    let (secret, issued) = secret
        .and_then(|secret| Some((secret, secret.issued.as_ref()?)))
        .ok_or(KeyError::Unread("a Secret"))?;
    match context.secrets.amend(key, issued, api, secret).await? {
        Some(meta) => {
            let subject = &gathered.subject;
            info!(
                namespace = subject.namespace(), name = subject.name(), key.id = %issued.key_id,
                "wrote what else is declared into the key's Secret"
            );
            if matches!(gathered.facts.secret, Secret::Orphan { .. }) {
                let name = meta.name.as_deref().unwrap_or_default();
                let note = format!("the Secret {name} is taken over with key {}", issued.key_id);
                let adopted = [Transition::normal("SecretAdopted", note)];
                context.events.report(&subject.reference(), &adopted);
            }
            let kept = &context.secrets.kept;
            kept.keep(subject.uid(), meta, SecretData::written(issued.hash));
            Ok(StepOutcome::Step)
        }
        None => Ok(StepOutcome::Nothing),
    }
}

async fn let_go(
    gathered: &PassInput,
    release: Release,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
    let subject = &gathered.subject;
    if !finalizer::remove(&subject.meta, &api(gathered, context)).await? {
        return Err(KeyError::Undone("the removal of the ApiKey's finalizer"));
    }
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
        Release::Unreachable => {
            Transition::warning("KeyNotRevoked", not_revoked(gathered.place.as_ref()))
        }
        Release::NeverDeclared => return Ok(StepOutcome::Released),
    };
    let about = subject.reference();
    context.events.report(&about, &[happened]);
    Ok(StepOutcome::Released)
}

/// Sentence about an ApiKey of that WaterDataApi, which goes though its key was revoked nowhere: what is known, not
/// what follows from it.
fn not_revoked(place: Option<&ApiName>) -> String {
    let (namespace, name) = place.map_or(("", ""), |place| (&*place.namespace, &*place.name));
    format!(
        "the WaterDataApi {namespace}/{name} does not exist, no pod of its gates was found, and no other key directory \
         of this operator that could be read holds a key of the ApiKey; its own Redis was not reached and may hold the \
         key still: a WaterDataApi that is created again rebuilds the key directory without it"
    )
}

fn decoded(gathered: &PassInput) -> Result<&ApiKey, KeyError> {
    let key = gathered.subject.key.as_ref();
    key.map_err(|_| KeyError::Unread("an ApiKey that can be decoded"))
}

fn issued<'a>(gathered: &'a PassInput, hash: &KeyHash) -> Result<&'a Issuance, KeyError> {
    let issued = gathered.issued.get(hash);
    issued.ok_or(KeyError::Unread("a key"))
}

fn installation(gathered: &PassInput) -> Result<&WaterDataApi, KeyError> {
    let api = gathered.api.as_ref();
    api.ok_or(KeyError::Unread("a WaterDataApi"))
}

fn reading(gathered: &PassInput) -> Result<&DirectoryReading, KeyError> {
    let reading = gathered.reading.as_ref();
    reading.ok_or(KeyError::Unread("a directory"))
}

fn api(gathered: &PassInput, context: &Context) -> Api<ApiKey> {
    context.api(gathered.subject.namespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_about_a_key_that_was_not_revoked_says_what_is_known() {
        let place = ApiName {
            namespace: "team".into(),
            name: "water-data".into(),
        };
        let told = "the WaterDataApi team/water-data does not exist, no pod of its gates was found, and no other key \
                    directory of this operator that could be read holds a key of the ApiKey; its own Redis was not \
                    reached and may hold the key still: a WaterDataApi that is created again rebuilds the key \
                    directory without it";
        assert_eq!(not_revoked(Some(&place)), told);
    }
}

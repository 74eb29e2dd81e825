//! Carries a decision out: one arm a step, one write each.

use kube::Api;
use tokio::time::Instant;
use tracing::info;
use water_domain::{KeyHash, KeyPrefix, PlainKey, PlanName, Timestamp};
use water_keystore::WriteError;
use water_operator_core::key::facts::{Issue, KeyRules, Secret};
use water_operator_core::key::ledger;
use water_operator_core::key::step::{Declaration, Handover, Release, Step};
use water_resources::api_key::{ApiKeyStatus, ApiName, Reissue};
use water_resources::{ApiKey, WaterDataApi};

use super::changes;
use super::error::KeyError;
use super::gather::{DirectoryReading, PassInput};
use super::memory::MadeKey;
use super::record::{self, Issuance};
use super::secret::{SecretData, StoredSecret};
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
    let done = done.unwrap_or(Err(KeyError::Unread));
    match &done {
        Ok(StepOutcome::Step) if is_limited => limit.count(uid, progress, now),
        Err(KeyError::Undone(_)) if is_limited => limit.exhaust(uid, progress, now),
        _ => {}
    }
    done.map_err(|error| error.of_write(written))
}

/// Carries a step out, with what was read for it; `None`: that is incomplete.
async fn carried_out(
    gathered: &PassInput,
    step: Step<KeyHash, PlanName>,
    context: &Context,
) -> Option<Result<StepOutcome, KeyError>> {
    let key = gathered.subject.key.as_ref().ok();
    let admitted = key.zip(gathered.api.as_ref());
    Some(match step {
        Step::Finalize => finalize(gathered, context).await,
        Step::Make(issue) => make(gathered, issue, context),
        Step::Announce { hash, reissued } => {
            let status = announced(gathered, gathered.issued.get(&hash)?, reissued);
            put(key?, status, context).await
        }
        Step::Retire { hash, at } => {
            let status = retiring(gathered, gathered.issued.get(&hash)?, at);
            put(key?, status, context).await
        }
        Step::Declare(wanted) => {
            let reading = gathered.reading.as_ref()?;
            let declaration = declaration(gathered, reading, wanted)?;
            declare(gathered, reading, &declaration, context).await
        }
        Step::Reveal(handover) | Step::Replace(handover) => {
            let made = gathered.made.as_ref();
            let made = made.filter(|made| made.issued.hash == handover.hash)?;
            hand_over(gathered, admitted?, made, handover, context).await
        }
        Step::Amend => {
            let (admitted, secret) = (admitted?, gathered.secret.as_ref()?);
            let issued = secret.issued.as_ref()?;
            amend(gathered, admitted, secret, issued, context).await
        }
        Step::Release(release) => let_go(gathered, release, context).await,
    })
}

async fn finalize(gathered: &PassInput, context: &Context) -> Result<StepOutcome, KeyError> {
    let written = finalizer::add(&gathered.subject.meta, &api(gathered, context)).await?;
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

/// The status that names a key which is about to be published.
fn announced(gathered: &PassInput, issued: &Issuance, reissued: Option<Timestamp>) -> ApiKeyStatus {
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
    let ledger = gathered.facts.ledger.clone().announce(issued.hash);
    record::named(before, &ledger, &gathered.issued)
}

/// The status that names the end of a key.
fn retiring(gathered: &PassInput, issued: &Issuance, at: Timestamp) -> ApiKeyStatus {
    let (subject, ledger) = (&gathered.subject, gathered.facts.ledger.clone());
    let ledger = ledger.retire(issued.hash, at, subject.brought);
    record::named(subject.status.clone(), &ledger, &gathered.issued)
}

/// Writes a status that names other keys.
async fn put(
    key: &ApiKey,
    status: ApiKeyStatus,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
    status::put(key, status, context).await?;
    Ok(StepOutcome::Step)
}

async fn declare(
    gathered: &PassInput,
    reading: &DirectoryReading,
    declaration: &water_keystore::Declaration,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
    let directories = &context.directories;
    let declared = match directories
        .declare(&reading.open, &reading.writer, declaration)
        .await
    {
        Ok(declared) => declared,
        // Another declaration came between: what it did is read first.
        Err(DirectoryError::Write(WriteError::Outdated { .. } | WriteError::OwnerGone)) => {
            return Ok(StepOutcome::Nothing);
        }
        Err(error) => return Err(error.into()),
    };
    let happened = changes::told(&reading.records, declaration, &declared.refused);
    context
        .events
        .report(&gathered.subject.reference(), &happened);
    let is_last = declaration.is_last;
    let id = DeclarationId {
        generation: declared.applied.generation,
        // What is gone has no number any more.
        number: if is_last { 0 } else { declared.number },
        is_last,
    };
    reading
        .open
        .pending
        .begin(&declaration.owner, id, declared.applied, Instant::now());
    let is_changed = is_last || declared.number != declaration.number;
    let is_done = declared.refused.is_empty() && is_changed;
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
) -> Option<water_keystore::Declaration> {
    let subject = &gathered.subject;
    let record = |(hash, rules): (KeyHash, KeyRules<PlanName>)| {
        let record = match gathered.issued.get(&hash) {
            Some(issued) => issued.record(subject.account.as_ref()?, &rules),
            None => {
                let held = reading.records.get(&hash)?.as_ref()?;
                record::record(&held.key_id, &held.account, held.revision, &rules)
            }
        };
        Some((hash, record))
    };
    let records: Option<_> = wanted.records.into_iter().map(record).collect();
    Some(water_keystore::Declaration {
        owner: record::owner(&subject.meta),
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
    (key, api): (&ApiKey, &WaterDataApi),
    made: &MadeKey,
    handover: Handover<KeyHash>,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
    let uid = gathered.subject.uid();
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

async fn amend(
    gathered: &PassInput,
    (key, api): (&ApiKey, &WaterDataApi),
    secret: &StoredSecret,
    issued: &Issuance,
    context: &Context,
) -> Result<StepOutcome, KeyError> {
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

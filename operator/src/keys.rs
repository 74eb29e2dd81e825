//! The ApiKey controller: gather → decide → act → report.
//!
//! A pass reads all that it needs to know of one ApiKey, decides, and takes one step; the next pass, which follows at
//! once, sees the result. Each step can be repeated, and after a kill between any two the next leader completes them.
//! Without a step the pass reports the state of the ApiKey. A wait is another pass later, never a held worker.

mod act;
mod admission;
pub(crate) mod changes;
mod claim;
mod contents;
mod error;
pub(crate) mod finalizer;
mod gather;
mod key_ids;
mod label;
mod limit;
pub(crate) mod memory;
pub(crate) mod metadata;
mod pause;
mod plans;
pub(crate) mod queues;
mod readiness;
pub(crate) mod record;
pub(crate) mod secret;
mod status;
pub(crate) mod subject;
mod times;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use tokio::time::{Instant, timeout};
use tracing::warn;
use water_domain::{KeyHash, PlanName, Timestamp};
use water_operator_core::key::step::Decision::{Do, Report};
use water_operator_core::key::step::{Refusal, STATUS, Step, Verdict};
use water_operator_core::key::{decide, unwritten_restriction};

use crate::backoff::chance;
use crate::caches::{Key, is_done};
use crate::clock;
use crate::conditions::{Readiness, Reason};
use crate::context::Context;
use crate::directories::DirectoryError;
use act::StepOutcome;
pub use admission::may_hold;
pub use error::KeyError;
use error::PASS_WITHIN;
use gather::PassInput;
use label::LABEL;
use subject::Subject;

/// Time limit of the write of a status that reports why a pass was given up.
const REPORTED_WITHIN: Duration = Duration::from_secs(5);

/// Reconciles an ApiKey once. The wait for a turn is no part of the pass.
pub async fn reconcile(key: Arc<Key>, context: Arc<Context>) -> Result<Action, KeyError> {
    let turn = context.queues.turn(queues::directory_of(&key)).await;
    // Boxed, so that thousands that wait for their turn take little memory.
    let pass = Box::pin(pass(&key, &context, clock::now()));
    let pass = timeout(PASS_WITHIN, pass).await;
    drop(turn);
    let result = pass.unwrap_or(Err(KeyError::TooLong));
    let is_delay =
        |error: &KeyError| matches!(error, KeyError::Directory(error) if error.is_delay());
    if !result.as_ref().is_err_and(is_delay) {
        context.metrics.pass("ApiKey", &result);
    }
    if let Err(error) = &result {
        interrupted(&key, error, &context, clock::now()).await;
    }
    result
}

/// Reports in the status why a pass was given up.
async fn interrupted(watched: &Key, error: &KeyError, context: &Context, now: Timestamp) {
    if let Some(failure) = error.api_failure() {
        context.metrics.api_server_failure(failure);
    }
    let meta = watched.meta();
    let Some(outcome) = error.outcome(context.backoff.failures(uid(watched))) else {
        return;
    };
    let written = async {
        let Some(watched) = context.keys.get(&ObjectRef::from_obj(watched)) else {
            return Ok(());
        };
        let subject = Subject::read(&watched, &context.memory, &context.client).await?;
        let generation = subject.meta.generation.unwrap_or_default();
        let ends = subject.spec().and_then(|spec| spec.expiration_time);
        let mut before = subject.status.clone();
        if ends.is_some_and(|end| end <= now) {
            // What was reported of it was before.
            before.observed_generation = None;
        }
        let status = status::interrupted(before, &outcome, generation, now);
        status::write(&subject, status, context).await
    };
    let written = timeout(REPORTED_WITHIN, written).await;
    if !matches!(written, Ok(Ok(()))) {
        let (namespace, name) = (&meta.namespace, &meta.name);
        warn!(namespace, name, %error, "an ApiKey's status cannot say why a pass was given up");
    }
}

/// Schedules a pass again that was given up.
pub fn retry(key: Arc<Key>, error: &KeyError, context: Arc<Context>) -> Action {
    let meta = key.meta();
    if error.is_worth_telling() {
        warn!(namespace = meta.namespace, name = meta.name, %error, "an ApiKey's pass was given up");
    }
    Action::requeue(hindered(uid(&key), &context))
}

fn uid(key: &Key) -> &str {
    key.meta().uid.as_deref().unwrap_or_default()
}

fn hindered(uid: &str, context: &Context) -> Duration {
    context.backoff.failed(uid, pause::HINDERED, chance())
}

async fn pass(watched: &Key, context: &Context, now: Timestamp) -> Result<Action, KeyError> {
    // What this leadership began with may be older than the claim of a directory.
    let epoch = context.directories.epoch();
    let watched = context.keys.get(&ObjectRef::from_obj(watched));
    let Some(watched) = watched.filter(|key| !context.memory.is_released(uid(key))) else {
        return Ok(Action::await_change());
    };
    if let Some(open) = context.directories.get(&queues::directory_of(&watched)) {
        let is_settled = watched.0.as_ref().is_ok_and(is_done);
        open.is_readable_soon(is_settled)?;
    }
    let mut gathered = match gather::gather(&watched, epoch, context, now).await {
        Err(KeyError::Directory(DirectoryError::ReadBefore)) => {
            return Ok(Action::requeue(Duration::ZERO));
        }
        gathered => gathered?,
    };
    let decision = match gathered.failure.take() {
        None => decide(&gathered.facts),
        Some(failure) => Do(unwritten_restriction(&gathered.facts).ok_or(failure)?),
    };
    match decision {
        // The label is last: no key needs it.
        Report(_) if gathered.lacks_label() && label(&mut gathered, context).await? => {
            Ok(Action::requeue(Duration::ZERO))
        }
        Report(Verdict::Released) => Ok(Action::await_change()),
        Report(verdict) => reported(&gathered, &verdict, context, now).await,
        Do(step) => match act::act(&gathered, step, context).await {
            Ok(StepOutcome::Step) => Ok(Action::requeue(Duration::ZERO)),
            Ok(StepOutcome::Nothing) => Ok(Action::requeue(hindered(uid(&watched), context))),
            Ok(StepOutcome::Released) => Ok(Action::await_change()),
            Err(error) => match unwritten(&gathered, &error) {
                // What it restricts does not wait for a write that fails. The next pass reports the error.
                Some(restriction) => {
                    act::act(&gathered, restriction, context).await?;
                    Ok(Action::requeue(Duration::ZERO))
                }
                None => {
                    let verdict = verdict::of_failure(&mut gathered, error, context)?;
                    reported(&gathered, &verdict, context, now).await
                }
            },
        },
    }
}

/// Reports a verdict, and schedules the next pass.
async fn reported(
    gathered: &PassInput,
    verdict: &Verdict<KeyHash>,
    context: &Context,
    now: Timestamp,
) -> Result<Action, KeyError> {
    let uid = gathered.subject.uid();
    let pause = if !verdict::is_news(gathered, verdict) {
        pause::until_told(chance())
    } else if report(gathered, verdict, context, now).await? {
        context.backoff.succeeded(uid);
        Duration::ZERO
    } else {
        let left = left(gathered, verdict);
        let pause = pause::after(verdict, left, uid, &context.backoff, chance());
        if gathered.unlabelled.is_some() {
            let limited = label::pause(uid, context, Instant::now());
            pause.min(pause::after_limit(limited, chance()))
        } else {
            pause
        }
    };
    Ok(Action::requeue(pause))
}

/// Writes the label of the account, and returns whether it is there now. A reason why not is reported.
async fn label(gathered: &mut PassInput, context: &Context) -> Result<bool, KeyError> {
    let Ok(key) = &gathered.subject.key else {
        return Ok(false);
    };
    let written = label::write(key, context, Instant::now()).await;
    let failure = written.map_err(|error| KeyError::from(error).of_write(Some(LABEL)))?;
    gathered.unlabelled = failure;
    Ok(gathered.unlabelled.is_none())
}

/// The restriction that is left after a step whose write to Kubernetes failed.
fn unwritten(gathered: &PassInput, error: &KeyError) -> Option<Step<KeyHash, PlanName>> {
    let is_write = matches!(error, KeyError::Write { .. } | KeyError::Undone(_));
    let restriction = is_write.then(|| unwritten_restriction(&gathered.facts));
    restriction.flatten()
}

/// Writes the status; returns whether the next pass follows at once, since it may decide otherwise for it.
async fn report(
    gathered: &PassInput,
    verdict: &Verdict<KeyHash>,
    context: &Context,
    now: Timestamp,
) -> Result<bool, KeyError> {
    let subject = &gathered.subject;
    let report = if gathered.facts.is_deleting {
        verdict::deleting(gathered, verdict)
    } else {
        verdict::living(gathered, verdict, now)
    };
    let generation = subject.meta.generation.unwrap_or_default();
    let status = status::status(subject.status.clone(), &report, generation, now);
    let names_others = status::names_other_keys(&subject.status, &status);
    let is_news = subject.status != status;
    let written = status::write(subject, status, context).await;
    written.map_err(|error| KeyError::from(error).of_write(Some(STATUS)))?;
    if is_news && let Some(trouble) = &gathered.trouble {
        log_refusal(subject, trouble);
    }
    if report.in_force.is_some() {
        context.memory.forget_made(subject.uid());
    }
    // A webhook may undo what the status names.
    let (limit, progress) = (&context.memory.writes, gathered.progress());
    let is_allowed = names_others && limit.allows(subject.uid(), progress, Instant::now());
    if names_others {
        limit.count(subject.uid(), progress, Instant::now());
    }
    Ok(is_allowed)
}

/// Logs that Redis refuses something of an ApiKey. A Redis that is away is logged for its directory.
fn log_refusal(subject: &Subject, trouble: &Readiness) {
    const REFUSALS: [Reason; 3] = [
        Reason::StoreDenied,
        Reason::StoreOutOfMemory,
        Reason::StoreReadOnly,
    ];
    let reason = trouble.reason();
    if REFUSALS.contains(&reason) {
        let (namespace, name) = (subject.namespace(), subject.name());
        let (reason, error) = (reason.as_str(), trouble.message());
        warn!(
            namespace,
            name, reason, error, "Redis refuses what an ApiKey declares"
        );
    }
}

/// The time until something has to be done about the ApiKey, though nothing happens.
fn left(gathered: &PassInput, verdict: &Verdict<KeyHash>) -> Option<Duration> {
    match verdict {
        Verdict::InForce(hash) => times::next_boundary(gathered, hash),
        Verdict::Refused(Refusal::ReissueLimit(until)) => times::left(gathered, *until),
        _ => None,
    }
}

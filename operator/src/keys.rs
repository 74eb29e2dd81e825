//! The ApiKey controller: gather → decide → act → report.
//!
//! A pass reads all that it needs to know of one ApiKey, decides, and takes one step; the next pass,
//! which follows at once, sees what came of it. Each step can be repeated, and a kill between any two
//! is made good by the next leader. Without a step the pass reports how the ApiKey stands. Waiting is
//! coming back later, never a held worker.

mod act;
mod admission;
pub(crate) mod changes;
mod claim;
mod contents;
pub mod decide;
mod error;
pub(crate) mod finalizer;
mod gather;
mod key_ids;
pub(crate) mod memory;
mod pause;
mod plans;
mod readiness;
pub(crate) mod record;
pub(crate) mod secret;
pub mod seen;
mod status;
pub mod step;
mod subject;
mod times;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use tracing::warn;
use water_domain::{KeyHash, Timestamp};
use water_resources::ApiKey;

use crate::backoff::chance;
use crate::clock;
use crate::context::Context;
use crate::directories::DirectoryError;
use act::Done;
pub use error::KeyError;
use error::PASS_WITHIN;
use gather::Gathered;
use step::{Refusal, Verdict};

/// One pass over an ApiKey, in the controller's words.
pub async fn reconcile(
    key: Arc<DeserializeGuard<ApiKey>>,
    context: Arc<Context>,
) -> Result<Action, KeyError> {
    let pass = tokio::time::timeout(PASS_WITHIN, pass(&key, &context, clock::now()));
    let result = pass.await.unwrap_or(Err(KeyError::TooLong));
    context.metrics.pass("ApiKey", &result);
    result
}

/// When a pass that was given up is tried again.
pub fn retry(
    key: Arc<DeserializeGuard<ApiKey>>,
    error: &KeyError,
    context: Arc<Context>,
) -> Action {
    let meta = key.meta();
    if error.is_worth_telling() {
        warn!(namespace = meta.namespace, name = meta.name, %error, "an ApiKey's pass was given up");
    }
    let uid = meta.uid.as_deref().unwrap_or_default();
    Action::requeue(hindered(uid, &context))
}

fn hindered(uid: &str, context: &Context) -> Duration {
    context.backoff.failed(uid, pause::HINDERED, chance())
}

async fn pass(
    watched: &DeserializeGuard<ApiKey>,
    context: &Context,
    now: Timestamp,
) -> Result<Action, KeyError> {
    // What this leadership began with may be older than the claim of a directory.
    let epoch = context.directories.epoch();
    let Some(watched) = context.keys.get(&ObjectRef::from_obj(watched)) else {
        return Ok(Action::await_change());
    };
    let uid = watched.meta().uid.as_deref().unwrap_or_default();
    if context.memory.is_released(uid) {
        return Ok(Action::await_change());
    }
    let mut gathered = match gather::gather(&watched, epoch, context, now).await {
        Err(KeyError::Directory(DirectoryError::ReadBefore)) => {
            return Ok(Action::requeue(Duration::ZERO));
        }
        gathered => gathered?,
    };
    let (verdict, step) = decide::decide(&gathered.seen);
    let verdict = match step {
        None => verdict,
        Some(step) => match act::act(&gathered, step, context).await {
            Ok(Done::Step) => return Ok(Action::requeue(Duration::ZERO)),
            Ok(Done::Nothing) => return Ok(Action::requeue(hindered(uid, context))),
            Ok(Done::Released) => Verdict::Released,
            Err(error) => verdict::of_failure(&mut gathered, error)?,
        },
    };
    if verdict == Verdict::Released {
        return Ok(Action::await_change());
    }
    if !verdict::is_news(&gathered, &verdict) {
        return Ok(Action::requeue(pause::until_told(chance())));
    }
    if report(&gathered, &verdict, context, now).await? {
        context.backoff.succeeded(uid);
        return Ok(Action::requeue(Duration::ZERO));
    }
    let left = left(&gathered, &verdict);
    let pause = pause::after(&verdict, left, uid, &context.backoff, chance());
    Ok(Action::requeue(pause))
}

/// Writes the status; answers whether the next pass may decide otherwise for it.
async fn report(
    gathered: &Gathered,
    verdict: &Verdict<KeyHash>,
    context: &Context,
    now: Timestamp,
) -> Result<bool, KeyError> {
    let subject = &gathered.subject;
    let report = if gathered.seen.is_deleting {
        verdict::deleting(gathered, verdict)
    } else {
        verdict::living(gathered, verdict)
    };
    let generation = subject.meta.generation.unwrap_or_default();
    let status = status::status(subject.status.clone(), &report, generation, now);
    let names_others = status::names_other_keys(&subject.status, &status);
    status::write(subject, status, context).await?;
    if report.in_force.is_some() {
        context.memory.forget_made(subject.uid());
    }
    Ok(names_others)
}

/// The time until something is to be done about the ApiKey, though nothing happens.
fn left(gathered: &Gathered, verdict: &Verdict<KeyHash>) -> Option<Duration> {
    match verdict {
        Verdict::InForce(hash) => times::next_boundary(gathered, hash),
        Verdict::Refused(Refusal::ReissueLimit(until)) => times::left(gathered, *until),
        _ => None,
    }
}

//! Looks after one directory while this pod leads: `meta` and the server once a second, the gates while a
//! declaration waits for them, last uses, the sweep, and once a minute the number of records, which shows
//! evictions.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};
use water_keystore::{Observation, Reason as StoreReason, StoreError};
use water_resources::ApiKey;
use water_resources::api_key::ApiName;

use super::duties::Duty;
use super::health::{Damage, damage, miscount};
use super::{OpenDirectory, acknowledgements, claims, former, sweep, uses};
use crate::context::Context;
use crate::events::Transition;
use crate::metrics::Metrics;

/// Interval between two checks of the directory and its server.
const EVERY: Duration = Duration::from_secs(1);
/// Number of checks in a minute.
const MINUTE: u64 = 60;
/// Number of the check in each minute that counts records: soon after a leadership has begun.
const COUNT_AT: u64 = 5;
/// Interval, in checks, at which gone objects are forgotten.
const FORGET_EVERY: u64 = 30;

/// Looks after a directory until nothing refers to it any more. A replaced directory is still written for as long as
/// gates read it.
pub async fn run(open: Arc<OpenDirectory>, context: Arc<Context>) {
    let mut claims = pin!(claims::follow(&open, &context));
    tokio::select! {
        () = open.closed.notified() => {}
        never = claims.as_mut() => match never {},
        never = acknowledgements::follow(&open, &context) => match never {},
        never = observe(&open, &context) => match never {},
        never = sweep::follow(&open, &context) => match never {},
        never = uses::follow(&open, &context) => match never {},
    }
    // A rebuild that broke off would leave the gates that read it without a directory.
    let mut ended = open.claims.subscribe();
    if open.claiming().is_some() {
        tokio::select! {
            _ = ended.changed() => {}
            never = claims => match never {},
        }
    }
    former::follow(&open, &context).await;
}

async fn observe(open: &OpenDirectory, context: &Context) -> Infallible {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = 0;
    let mut failing = None;
    let mut last_damage: Option<Damage> = None;
    loop {
        ticks.tick().await;
        looks += 1;
        let (before, was_claimed) = (open.observed(), open.was_claimed());
        match look(open, looks % MINUTE == COUNT_AT, &context.metrics).await {
            Ok((seen, damage)) => {
                let was_unguarded = before.as_ref().is_some_and(|before| before.is_unguarded);
                let was_away = open.known().away.take().is_some();
                let is_news = failing.take().is_some() || was_unguarded != seen.is_unguarded;
                open.known().observed = Some(seen);
                if was_away {
                    context.revisit_unsettled_keys_of(&open.api);
                }
                if is_news {
                    context.revisit_api(&open.api);
                }
                let repaired = open.known().repaired.take();
                if let Some(cause) = repaired {
                    tell(open, &cause, context);
                    // The same from here on is new damage.
                    last_damage = None;
                }
                // A rebuild that is under way looks like an unfinished one.
                if was_claimed && open.claiming().is_none() {
                    if let Some(found) = damage {
                        if last_damage != Some(found) {
                            warn!(damage = %found, "rebuilding the key directory");
                        }
                        open.repair(found);
                    }
                    last_damage = damage;
                }
            }
            Err(error) => {
                context.metrics.store_failure(error.reason());
                let refusal = match error.reason() {
                    StoreReason::Down | StoreReason::Slow => None,
                    refusal => Some(refusal),
                };
                if failing.replace(refusal) != Some(refusal) {
                    warn!(error = %error, "the key directory cannot be checked");
                    context.revisit_api(&open.api);
                }
                // What Redis refuses is refused at once: nobody waits for that.
                if refusal.is_none() {
                    let first = || (Instant::now(), Arc::new(error));
                    open.known().away.get_or_insert_with(first);
                } else if open.known().away.take().is_some() {
                    context.revisit_unsettled_keys_of(&open.api);
                }
            }
        }
        if looks % FORGET_EVERY == 0 {
            let living = context.forget_gone();
            open.pending.retain(&living);
        }
        close_unused(open, context);
    }
}

/// Closes a directory whose WaterDataApi is gone, once no keys remain to be revoked from it. An ApiKey may have its
/// keys here though its status names a WaterDataApi that does not exist, unless its spec does so, too.
fn close_unused(open: &OpenDirectory, context: &Context) {
    let is_used = |key: &ApiKey| {
        let is_missing = |named: ApiName| {
            context.api_at(&named).is_none() && context.directories.get(&named).is_none()
        };
        let may_be_any = key.spec.api_ref.is_none() && key.issued_at().is_some_and(is_missing);
        key.may_be_at(&open.api) || may_be_any
    };
    let is_gone = context.api_at(&open.api).is_none();
    let keys = &context.keys;
    if is_gone
        && keys
            .find(|key| key.0.as_ref().map_or(true, is_used))
            .is_none()
    {
        info!(
            namespace = open.api.namespace,
            name = open.api.name,
            "closing the key directory of a WaterDataApi that is gone"
        );
        context.directories.close(open);
    }
}

async fn look(
    open: &OpenDirectory,
    count: bool,
    metrics: &Metrics,
) -> Result<(Observation, Option<Damage>), StoreError> {
    let reached = open.known().reached;
    let seen = open.directory.observe().await?;
    let damage = damage(reached, &seen, &open.place.owner);
    if let (None, Some(meta)) = (damage, &seen.meta) {
        open.has_reached(meta.position());
    }
    if damage.is_some() || !count {
        return Ok((seen, damage));
    }
    let stored = open.directory.counts().await.map_err(Into::into);
    open.note_duty(Duty::Count, &stored, metrics);
    // It has just answered: it is not away.
    let Ok(stored) = stored else {
        return Ok((seen, None));
    };
    let after = open.directory.observe().await?;
    let damage = miscount(&seen, stored, &after);
    Ok((after, damage))
}

/// Reports a rebuild: an event, and a pass over every ApiKey, which reports its state.
fn tell(open: &OpenDirectory, cause: &str, context: &Context) {
    context.revisit_keys_of(&open.api);
    if let Some(api) = context.decoded_api(&open.api) {
        let note = format!("the key directory was rebuilt from the cluster: {cause}");
        let happened = [Transition::warning("DirectoryRebuilt", note)];
        let about = api.object_ref(&());
        context.events.report(&about, &happened);
    }
}

//! Looks after one directory while this pod leads: `meta` and the server once a second, the gates while a
//! declaration waits for them, last uses, the sweep, and once a minute the number of records, which shows
//! evictions.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::runtime::utils::Backoff;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::{debug, info, warn};
use water_keystore::{Observation, StoreError};
use water_resources::ApiKey;

use super::health::{Damage, damage, miscount};
use super::{OpenDirectory, acknowledgements, former, sweep, uses};
use crate::context::Context;
use crate::events::Transition;
use crate::watches::Patience;

/// Between two looks at the directory and its server.
const EVERY: Duration = Duration::from_secs(1);
/// What is done once a minute is done at every so many looks.
const MINUTE: u64 = 60;
/// Records are counted at this look of each minute: soon after a leadership has begun.
const COUNT_AT: u64 = 5;
/// What is gone is forgotten at the looks that this divides.
const FORGET_EVERY: u64 = 30;
/// A rebuild is given up after this long, and begun again.
const MEND_WITHIN: Duration = Duration::from_secs(15);

/// Looks after a directory until nothing refers to it any more. One that another has taken the place of is
/// still written for as long as gates read it.
pub async fn of(open: Arc<OpenDirectory>, context: Arc<Context>) {
    tokio::select! {
        () = open.closed.notified() => {}
        never = acknowledgements::follow(&open, &context.gate_pods, |owner| context.revisit_owner(owner)) => match never {},
        never = observe(&open, &context) => match never {},
        never = sweep::follow(&open, &context) => match never {},
        never = uses::follow(&open, &context) => match never {},
    }
    former::follow(&open, &context).await;
}

async fn observe(open: &OpenDirectory, context: &Context) -> Infallible {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = 0;
    let mut away = false;
    let mut last_damage: Option<Damage> = None;
    let (mut patience, mut mend_from) = (Patience::default(), Instant::now());
    loop {
        ticks.tick().await;
        looks += 1;
        let (before, was_claimed) = (open.observed(), open.was_claimed());
        match look(open, looks % MINUTE == COUNT_AT).await {
            Ok((seen, damage)) => {
                let was_unguarded = before.as_ref().is_some_and(|before| before.is_unguarded);
                let is_news = away || was_unguarded != seen.is_unguarded;
                away = false;
                open.known().observed = Some(seen);
                let damage = damage.filter(|_| was_claimed);
                if let Some(damage) = damage {
                    let is_new = last_damage != Some(damage);
                    if is_new {
                        warn!(damage = %damage, "rebuilding the key directory");
                        patience.reset();
                    }
                    if is_new || mend_from <= Instant::now() {
                        if mend(open, damage, context).await {
                            patience.reset();
                        } else {
                            mend_from = Instant::now() + patience.pause();
                        }
                    }
                } else if is_news {
                    context.revisit_api(&open.api);
                }
                last_damage = damage;
                let repaired = open.known().repaired.take();
                if let Some(cause) = repaired {
                    tell(open, &cause, context);
                }
            }
            Err(error) => {
                context.metrics.store_failure(error.reason());
                if !away {
                    warn!(error = %error, "the key directory cannot be looked at");
                    context.revisit_api(&open.api);
                }
                away = true;
            }
        }
        if looks % FORGET_EVERY == 0 {
            let living = context.forget_gone();
            open.pending.retain(&living);
        }
        close_unused(open, context);
    }
}

/// A directory whose WaterDataApi is gone is kept while keys are to be revoked from it.
fn close_unused(open: &OpenDirectory, context: &Context) {
    let is_used = |key: &ApiKey| {
        let status = key.status.as_ref();
        status.and_then(|status| status.api.as_ref()) == Some(&open.api)
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
    let stored = open.directory.counts().await?;
    let after = open.directory.observe().await?;
    let damage = miscount(&seen, stored, &after);
    Ok((after, damage))
}

/// Rebuilds the directory; answers whether that worked.
async fn mend(open: &OpenDirectory, damage: Damage, context: &Context) -> bool {
    let restored = context.directories.restore(open, damage, context);
    let restored = timeout(MEND_WITHIN, restored).await;
    match &restored {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(error = %error, "cannot rebuild the key directory"),
        Err(_) => warn!("the rebuild of the key directory took longer than {MEND_WITHIN:?}"),
    }
    context.revisit_api(&open.api);
    matches!(restored, Ok(Ok(())))
}

/// After a rebuild every key says how it stands.
fn tell(open: &OpenDirectory, cause: &str, context: &Context) {
    context.revisit_keys_of(&open.api);
    if let Some(api) = context.decoded_api(&open.api) {
        let note = format!("the key directory was rebuilt from the cluster: {cause}");
        let happened = [Transition::warning("DirectoryRebuilt", note)];
        let about = api.object_ref(&());
        context.events.report(&about, &happened);
    }
}

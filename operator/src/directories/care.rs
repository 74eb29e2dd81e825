//! Looking after one directory while this pod leads: its server once a second, its gates whenever a
//! change waits for them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{debug, warn};
use water_keystore::{Observation, StoreError};

use super::health::{Damage, damage, is_unguarded, miscount};
use super::{OpenDirectory, acknowledgements};
use crate::context::Context;
use crate::events::Happening;
use crate::keys;

/// Between two looks at the directory and its server.
const EVERY: Duration = Duration::from_secs(1);
/// Records are counted at every so many looks: once a minute.
const COUNT_EVERY: u64 = 60;
/// A rebuild is given up after this long, and begun again.
const MEND_WITHIN: Duration = Duration::from_secs(15);
/// The first time soon after the leadership began.
const FIRST_COUNT: u64 = 5;

/// Looks after a directory until another takes its place.
pub async fn of(open: Arc<OpenDirectory>, context: Arc<Context>) {
    let pods = context.api::<Pod>(&open.api.namespace);
    tokio::select! {
        () = open.closed() => {}
        never = acknowledgements::follow(&open, &pods, |owner| context.revisit_owner(owner)) => match never {},
        never = observe(&open, &context) => match never {},
    }
}

async fn observe(open: &OpenDirectory, context: &Context) -> Infallible {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = 0;
    let mut away = false;
    let mut known: Option<Damage> = None;
    loop {
        ticks.tick().await;
        looks += 1;
        let (before, was_claimed) = (open.observed(), open.was_claimed());
        match look(open, before.as_ref(), looks % COUNT_EVERY == FIRST_COUNT).await {
            Ok((seen, damage)) => {
                let was_unguarded = before.as_ref().is_some_and(is_unguarded);
                let is_news = away || was_unguarded != is_unguarded(&seen);
                away = false;
                open.observe(Some(seen));
                let damage = damage.filter(|_| was_claimed);
                if let Some(damage) = damage {
                    if known != Some(damage) {
                        warn!(damage = %damage, "rebuilding the key directory");
                    }
                    mend(open, damage, context).await;
                } else if is_news {
                    context.revisit_api(&open.api);
                }
                known = damage;
                if let Some(cause) = open.take_rebuild() {
                    tell(open, &cause, context).await;
                }
            }
            Err(error) if !away => {
                away = true;
                warn!(error = %error, "the key directory cannot be looked at");
                context.revisit_api(&open.api);
            }
            Err(_) => {}
        }
    }
}

async fn look(
    open: &OpenDirectory,
    before: Option<&Observation>,
    count: bool,
) -> Result<(Observation, Option<Damage>), StoreError> {
    let seen = open.directory.observe().await?;
    let damage = damage(before, &seen, &open.place.owner);
    if damage.is_some() || !count {
        return Ok((seen, damage));
    }
    let stored = open.directory.count().await?;
    let after = open.directory.observe().await?;
    let damage = miscount(&seen, stored, &after);
    Ok((after, damage))
}

async fn mend(open: &OpenDirectory, damage: Damage, context: &Context) {
    let wanted = |plans| keys::contents(context, &open.api, plans);
    let restored = context.directories.restore(open, damage, &wanted);
    match timeout(MEND_WITHIN, restored).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(error = %error, "cannot rebuild the key directory"),
        Err(_) => warn!("the rebuild of the key directory took longer than {MEND_WITHIN:?}"),
    }
    context.revisit_api(&open.api);
}

/// After a rebuild every key says how it stands.
async fn tell(open: &OpenDirectory, cause: &str, context: &Context) {
    context.revisit_keys_of(&open.api);
    if let Some(api) = context.api_at(&open.api) {
        let note = format!("the key directory was rebuilt from the cluster: {cause}");
        let happened = [Happening::warning("DirectoryRebuilt", note)];
        let about = api.object_ref(&());
        // The status tells the rest: an API server that hangs must not keep this from looking.
        let _ = timeout(MEND_WITHIN, context.events.report(&about, &happened)).await;
    }
}

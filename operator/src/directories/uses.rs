//! Has the passes over ApiKeys show when keys were last used.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::core::DeserializeGuard;
use kube::runtime::reflector::ObjectRef;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};
use water_domain::{KeyId, Timestamp};
use water_keystore::StoreError;
use water_resources::ApiKey;
use water_resources::condition::ConditionStatus;

use super::OpenDirectory;
use super::duties::Duty;
use crate::caches::Key;
use crate::clock;
use crate::conditions::{ConditionType, Reason, find};
use crate::context::Context;

/// Interval between two checks. With the 15 s in which gates write last uses, a first use shows within a minute.
const EVERY: Duration = Duration::from_secs(30);
/// The accuracy of the last use in a status.
const GRAIN: Duration = Duration::from_secs(600);
/// Keys asked for in one command.
const AT_ONCE: usize = 500;
/// First uses that are shown after one check: more would keep others waiting.
const FIRST: usize = 2000;
/// Later uses that are shown after one check.
const LATER: usize = 500;
/// Pause between two passes, which leaves room for ApiKeys that change: 200 a second.
const PACE: Duration = Duration::from_millis(5);

/// A use that no status shows.
struct Use {
    key: ObjectRef<Key>,
    key_id: KeyId,
    /// Use that the status shows.
    shown: Option<Timestamp>,
    time: Timestamp,
}

impl Use {
    fn is_first(&self) -> bool {
        self.shown.is_none()
    }
}

/// Looks for uses for as long as it runs.
pub async fn follow(open: &OpenDirectory, context: &Context) -> Infallible {
    let mut looks = interval_at(Instant::now() + EVERY, EVERY);
    let mut pace = interval(PACE);
    for interval in [&mut looks, &mut pace] {
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    loop {
        looks.tick().await;
        let uses = unshown(open, context, clock::now()).await;
        let uses = uses.map_err(Into::into);
        if open.note_duty(Duty::ReadUses, &uses, &context.metrics) {
            context.revisit_api(&open.api);
        }
        let Ok(uses) = uses else {
            continue;
        };
        let noted = uses.iter().map(|used| (used.key_id.clone(), used.time));
        open.known().uses = noted.collect();
        for used in uses {
            pace.tick().await;
            context.caches.let_claims_pass().await;
            context.revisit_key(used.key);
        }
    }
}

/// Whether a later use than the one that a status shows may be looked up.
fn is_due(shown: Option<Timestamp>, now: Timestamp) -> bool {
    shown.is_none_or(|shown| shown.plus(GRAIN) <= now)
}

/// First uses, then the oldest that are shown and were followed by one [`GRAIN`] later.
async fn unshown(
    open: &OpenDirectory,
    context: &Context,
    now: Timestamp,
) -> Result<Vec<Use>, StoreError> {
    let due = |key: &Arc<DeserializeGuard<ApiKey>>| {
        let status = key.0.as_ref().ok()?.status.as_ref()?;
        // The status of any other shows no use.
        let ready = find(&status.conditions, ConditionType::Ready)?;
        let is_expired = ready.reason == Reason::Expired.as_str();
        (is_expired || ready.status == ConditionStatus::True).then_some(())?;
        let shown = status.last_used_time;
        let key_id = status.key_id.as_ref()?.parse().ok()?;
        let is_here = status.api.as_ref() == Some(&open.api);
        (is_due(shown, now) && is_here).then(|| (shown, key_id, ObjectRef::from_obj(&**key)))
    };
    let keys = context.keys.state();
    let mut due: Vec<(Option<Timestamp>, KeyId, _)> = keys.iter().filter_map(due).collect();
    due.sort_by_key(|(shown, ..)| *shown);
    let mut uses = Vec::new();
    for part in due.chunks(AT_ONCE) {
        let asked: Vec<KeyId> = part.iter().map(|(_, key_id, _)| key_id.clone()).collect();
        let used = open.directory.last_used(&asked).await?;
        for ((shown, key_id, key), time) in part.iter().zip(used) {
            if let Some(time) = time.filter(|time| Some(*time) > *shown) {
                uses.push(Use {
                    key: key.clone(),
                    key_id: key_id.clone(),
                    shown: *shown,
                    time,
                });
            }
        }
    }
    let (mut first, mut later): (Vec<Use>, Vec<Use>) = uses.into_iter().partition(Use::is_first);
    first.truncate(FIRST);
    later.truncate(LATER);
    first.append(&mut later);
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_looked_up_at_first_and_then_every_ten_minutes() {
        let shown = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
        let second = Duration::from_secs(1);
        assert!(is_due(None, shown) && is_due(Some(shown), shown.plus(600 * second)));
        assert!(!is_due(Some(shown), shown.plus(599 * second)));
    }
}

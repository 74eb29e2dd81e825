//! Terms of keys that are held back or replaced.

use std::collections::BTreeSet;

use water_domain::Timestamp;

use crate::key::facts::{DirectoryContent, KeyRules, Spec};

/// Takes the stricter one of each field. A plan gives way only to one that exceeds it nowhere.
pub fn stricter<P: Clone + Ord>(
    held: &KeyRules<P>,
    declared: &KeyRules<P>,
    wider_plans: &BTreeSet<P>,
) -> KeyRules<P> {
    let is_lowered = wider_plans.contains(&held.plan);
    KeyRules {
        plan: if is_lowered {
            &declared.plan
        } else {
            &held.plan
        }
        .clone(),
        suspended: held.suspended || declared.suspended,
        not_before: held.not_before.max(declared.not_before),
        expires: earlier(held.expires, declared.expires),
        retires: held.retires,
    }
}

/// Time from which a key is refused that is replaced now: after the overlap, never after the end that a
/// lost successor gave it, and never after its own, though the ApiKey's may be put off in the same edit.
pub fn retirement<H, P>(
    held: Option<&KeyRules<P>>,
    spec: &Spec<H, P>,
    directory: &DirectoryContent<H, P>,
) -> Timestamp {
    let after_overlap = directory.now.plus(spec.rotation.overlap);
    let held = held.map(|held| [held.expires, held.retires]);
    let held = held.into_iter().flatten();
    held.chain([spec.rules.expires])
        .flatten()
        .fold(after_overlap, Timestamp::min)
}

/// Terms of a key that is or will be replaced: the declared ones, but for its own end.
pub fn replaced<H, P: Clone>(held: Option<&KeyRules<P>>, spec: &Spec<H, P>) -> KeyRules<P> {
    KeyRules {
        expires: earlier(held.and_then(|held| held.expires), spec.rules.expires),
        retires: held.and_then(|held| held.retires),
        ..spec.rules.clone()
    }
}

/// The earlier of two times, if any.
pub fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    [one, other].into_iter().flatten().min()
}

/// Whether this time has come by Redis' clock.
pub fn is_past<H, P>(time: Option<Timestamp>, directory: &DirectoryContent<H, P>) -> bool {
    time.is_some_and(|time| time <= directory.now)
}

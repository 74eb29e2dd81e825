//! A key that was brought along. Its hash is announced and declared beside the hash before it; that one
//! retires once every gate has the new one.

use std::collections::{BTreeMap, BTreeSet};

use super::goal::{Goal, Then};
use super::terms::{is_past, replaced, retirement};
use crate::keys::seen::{Admission, Seen, Sight, Spec, Terms};
use crate::keys::step::{Declaration, Refusal, Step};

pub fn brought<H: Copy + Ord, P: Clone + Ord>(
    seen: &Seen<H, P>,
    spec: &Spec<H, P>,
    hash: H,
    sight: &Sight<H, P>,
) -> Goal<H, P> {
    let retires =
        |other: &H, held: &Terms<P>| (*other != hash).then(|| retirement(Some(held), spec, sight));
    match seen.admission {
        Admission::Refused => return Goal::withdrawn(Refusal::NotAdmitted, sight),
        Admission::Hindered => {
            return Goal::restricted(seen, spec, sight, Refusal::NotAdmitted, retires);
        }
        Admission::Admitted => {}
    }
    let revoked = sight.barred.get(&hash).copied();
    let refusal = match revoked {
        Some(at) if spec.reinstate != Some(at) => Some(Refusal::Revoked(at)),
        _ if sight.taken.contains(&hash) || seen.is_id_taken => Some(Refusal::Taken),
        _ => None,
    };
    if let Some(refusal) = refusal {
        // A hash that was replaced retires although its successor is refused.
        let mut goal = Goal::restricted(seen, spec, sight, refusal, retires);
        if goal.records.remove(&hash).is_some() && revoked.is_none() {
            goal.withdrawn.insert(hash);
        }
        return goal;
    }
    let before = seen.status.current.filter(|before| {
        let held = sight.held.get(before).and_then(Option::as_ref);
        *before != hash
            && seen.status.revealed.contains(before)
            && held.is_some_and(|held| held.retires.is_none())
    });
    let mut records: BTreeMap<H, Terms<P>> = others(spec, hash, before, sight);
    records.insert(hash, spec.terms.clone());
    if !seen.status.all.contains(&hash) {
        let is_reissue = false;
        return Goal::new(records, Then::First(Step::Announce { hash, is_reissue }));
    }
    let then = match before {
        None => Then::Stands(hash),
        Some(before) => {
            let held = sight.held.get(&before).and_then(Option::as_ref);
            let retires = Some(retirement(held, spec, sight));
            let mut records = records.clone();
            records
                .entry(before)
                .and_modify(|terms| terms.retires = retires);
            records.retain(|_, terms| !is_past(terms.retires, sight));
            Then::Acknowledged(Step::Declare(Declaration {
                number: sight.number,
                records,
                withdrawn: BTreeSet::new(),
                revoked: BTreeSet::new(),
                reinstated: BTreeMap::new(),
                is_last: false,
            }))
        }
    };
    Goal {
        reinstated: revoked.map(|at| (hash, at)).into_iter().collect(),
        ..Goal::new(records, then)
    }
}

/// The other keys that stay published: the one that is to be replaced, or else one that was replaced and
/// has not retired, which an overlap of 0 cuts at once, though it was declared later. Two keys work at most.
fn others<H: Copy + Ord, P: Clone>(
    spec: &Spec<H, P>,
    hash: H,
    before: Option<H>,
    sight: &Sight<H, P>,
) -> BTreeMap<H, Terms<P>> {
    let held = sight.held.iter();
    let held = held.filter_map(|(other, held)| Some((*other, held.as_ref()?)));
    let stays = |(other, held): &(H, &Terms<P>)| match (before, held.retires) {
        (Some(before), _) => *other == before,
        (None, None) => false,
        (None, retires) => !spec.rotation.overlap.is_zero() && !is_past(retires, sight),
    };
    held.filter(|(other, _)| *other != hash)
        .filter(stays)
        .map(|(other, held)| (other, replaced(Some(held), spec)))
        .collect()
}

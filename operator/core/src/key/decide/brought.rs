//! A key that was brought along. Its hash is announced and declared beside the hash before it; that one
//! retires once every gate has the new one. When it does is named in the status first, so that no
//! rebuild forgets it.

use std::collections::BTreeMap;

use water_domain::Timestamp;

use super::goal::{After, Goal};
use super::rules::{is_past, replaced, retirement};
use crate::key::facts::{Admission, DirectoryContent, Facts, KeyRules, Spec};
use crate::key::step::Decision::{Do, Report};
use crate::key::step::{Refusal, Step, Verdict};

pub fn brought<H: Copy + Ord, P: Clone + Ord>(
    facts: &Facts<H, P>,
    spec: &Spec<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> Goal<H, P> {
    // One that was never in force gets no overlap.
    let is_overlapping = |other: &H, held: &KeyRules<P>| {
        held.retires.is_some() || replaced_by(facts, hash, directory) == Some(*other)
    };
    let retires = |other: &H, held: &KeyRules<P>| {
        (*other != hash).then(|| {
            if is_overlapping(other, held) {
                end(facts, spec, other, Some(held), directory)
            } else {
                directory.now
            }
        })
    };
    // A hash that was replaced retires although something hinders its successor.
    let restricted = |refusal| {
        let goal = Goal::restricted(facts, spec, directory, refusal, retires);
        match untold(facts, spec, hash, directory) {
            Some(step) => Goal {
                then: After::Nothing(step),
                ..goal
            },
            None => goal,
        }
    };
    if facts.admission == Admission::Hindered {
        return restricted(Refusal::NotAdmitted);
    }
    let revoked = directory.barred.get(&hash).copied();
    let refusal = match revoked {
        Some(at) if spec.reinstate != Some(at) => Some(Refusal::Revoked(at)),
        _ if directory.taken.contains(&hash) || facts.is_id_taken => Some(Refusal::Taken),
        _ => None,
    };
    if let Some(refusal) = refusal {
        let mut goal = restricted(refusal);
        if goal.records.remove(&hash).is_some() && revoked.is_none() {
            goal.withdrawn.insert(hash);
        }
        return goal;
    }
    let only = replaced_by(facts, hash, directory);
    let mut records: BTreeMap<H, KeyRules<P>> = others(facts, spec, hash, only, directory);
    records.insert(hash, spec.rules.clone());
    if !facts.ledger.names(&hash) {
        let reissued = None;
        return Goal::new(records, After::Nothing(Step::Announce { hash, reissued }));
    }
    let in_force = After::Acknowledged(Report(Verdict::InForce(hash)));
    let then = match replaceable(facts, hash, directory) {
        None => in_force,
        Some(before) => {
            let held = directory.held.get(&before).and_then(Option::as_ref);
            let retires = Some(end(facts, spec, &before, held, directory));
            let mut ended = records.clone();
            ended
                .entry(before)
                .and_modify(|rules| rules.retires = retires);
            ended.retain(|_, rules| !is_past(rules.retires, directory));
            let ended = Goal::new(ended, in_force).next(directory);
            let untold = untold(facts, spec, hash, directory);
            After::Acknowledged(untold.map_or(ended, Do))
        }
    };
    Goal {
        reinstated: revoked.map(|at| (hash, at)).into_iter().collect(),
        ..Goal::new(records, then)
    }
}

/// Hash in force that this one replaces.
fn replaced_by<H: Copy + Ord, P>(
    facts: &Facts<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> Option<H> {
    facts.ledger.current.filter(|before| {
        *before != hash
            && facts.ledger.is_revealed(before)
            && directory.held.get(before).is_some_and(Option::is_some)
    })
}

/// Hash in force that this one replaces, if it has no end yet.
fn replaceable<H: Copy + Ord, P>(
    facts: &Facts<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> Option<H> {
    replaced_by(facts, hash, directory).filter(|before| {
        let held = directory.held.get(before).and_then(Option::as_ref);
        held.is_some_and(|held| held.retires.is_none())
    })
}

/// Step that names its end in the status, unless that names it already, or names the end of another
/// hash that still works.
fn untold<H: Copy + Ord, P>(
    facts: &Facts<H, P>,
    spec: &Spec<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> Option<Step<H, P>> {
    let before = replaceable(facts, hash, directory)?;
    let is_told = |(told, _): (H, Timestamp)| {
        told == before || told != hash && directory.held.contains_key(&told)
    };
    let held = directory.held.get(&before).and_then(Option::as_ref);
    let step = Step::Retire {
        hash: before,
        at: retirement(held, spec, directory),
    };
    (!facts.ledger.retiring.is_some_and(is_told)).then_some(step)
}

/// Time from which a replaced hash is refused: the one that the status names, if any, but never later than an overlap
/// from now, since others may have written it; and now where no overlap is declared any more.
fn end<H: Copy + Ord, P>(
    facts: &Facts<H, P>,
    spec: &Spec<H, P>,
    before: &H,
    held: Option<&KeyRules<P>>,
    directory: &DirectoryContent<H, P>,
) -> Timestamp {
    let latest = retirement(held, spec, directory);
    let told = facts.ledger.retires(before);
    told.map_or(latest, |at| at.min(latest))
}

/// Other keys that stay published: the one that is replaced, or else one that was replaced before, in
/// their overlap, which is cut at once where none is declared any more. Two keys work at most.
fn others<H: Copy + Ord, P: Clone>(
    facts: &Facts<H, P>,
    spec: &Spec<H, P>,
    hash: H,
    replaced_now: Option<H>,
    directory: &DirectoryContent<H, P>,
) -> BTreeMap<H, KeyRules<P>> {
    let held = directory.held.iter();
    let held = held.filter_map(|(other, held)| {
        let rules = replaced(Some(held.as_ref()?), spec);
        // A hash that was brought along again meanwhile keeps the end that the status names.
        let named = facts.ledger.retires(other);
        let named = named.filter(|_| replaced_now != Some(*other));
        let latest = || retirement(held.as_ref(), spec, directory);
        let retires = rules.retires.or(named.map(|at| at.min(latest())));
        Some((*other, KeyRules { retires, ..rules }))
    });
    let stays = |(other, rules): &(H, KeyRules<P>)| match rules.retires {
        None => replaced_now == Some(*other),
        Some(at) => {
            replaced_now.is_none_or(|replaced| replaced == *other)
                && !spec.rotation.overlap.is_zero()
                && !is_past(Some(at), directory)
        }
    };
    held.filter(|(other, _)| *other != hash)
        .filter(stays)
        .collect()
}

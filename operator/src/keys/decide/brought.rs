//! A key that was brought along. Its hash is announced and declared beside the hash before it; that one
//! retires once every gate has the new one. When it does is named in the status first, so that no
//! rebuild forgets it.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::Timestamp;

use super::goal::{FollowUp, Goal};
use super::rules::{is_past, replaced, retirement};
use crate::keys::seen::{Admission, DirectoryContent, KeyRules, Seen, Spec};
use crate::keys::step::{Declaration, Refusal, Step};

pub fn brought<H: Copy + Ord, P: Clone + Ord>(
    seen: &Seen<H, P>,
    spec: &Spec<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> Goal<H, P> {
    // One that was never in force gets no overlap.
    let is_overlapping = |other: &H, held: &KeyRules<P>| {
        held.retires.is_some() || replaced_by(seen, hash, directory) == Some(*other)
    };
    let retires = |other: &H, held: &KeyRules<P>| {
        (*other != hash).then(|| match is_overlapping(other, held) {
            true => end(seen, spec, other, Some(held), directory),
            false => directory.now,
        })
    };
    // A hash that was replaced retires although something hinders its successor.
    let restricted = |refusal| {
        let goal = Goal::restricted(seen, spec, directory, refusal, retires);
        match untold(seen, spec, hash, directory) {
            Some(step) => Goal {
                then: FollowUp::First(step),
                ..goal
            },
            None => goal,
        }
    };
    if seen.admission == Admission::Hindered {
        return restricted(Refusal::NotAdmitted);
    }
    let revoked = directory.barred.get(&hash).copied();
    let refusal = match revoked {
        Some(at) if spec.reinstate != Some(at) => Some(Refusal::Revoked(at)),
        _ if directory.taken.contains(&hash) || seen.is_id_taken => Some(Refusal::Taken),
        _ => None,
    };
    if let Some(refusal) = refusal {
        let mut goal = restricted(refusal);
        if goal.records.remove(&hash).is_some() && revoked.is_none() {
            goal.withdrawn.insert(hash);
        }
        return goal;
    }
    let before = replaceable(seen, hash, directory);
    let only = replaced_by(seen, hash, directory);
    let mut records: BTreeMap<H, KeyRules<P>> = others(spec, hash, only, directory);
    records.insert(hash, spec.rules.clone());
    if !seen.status.all.contains(&hash) {
        let is_reissue = false;
        return Goal::new(
            records,
            FollowUp::First(Step::Announce { hash, is_reissue }),
        );
    }
    let then = match before {
        None => FollowUp::Stands(hash),
        Some(before) => {
            let held = directory.held.get(&before).and_then(Option::as_ref);
            let retires = Some(end(seen, spec, &before, held, directory));
            let mut records = records.clone();
            records
                .entry(before)
                .and_modify(|rules| rules.retires = retires);
            records.retain(|_, rules| !is_past(rules.retires, directory));
            let declaration = Step::Declare(Declaration {
                number: directory.number,
                records,
                withdrawn: BTreeSet::new(),
                revoked: BTreeSet::new(),
                reinstated: BTreeMap::new(),
                is_last: false,
            });
            let untold = untold(seen, spec, hash, directory);
            FollowUp::Acknowledged(untold.unwrap_or(declaration))
        }
    };
    Goal {
        reinstated: revoked.map(|at| (hash, at)).into_iter().collect(),
        ..Goal::new(records, then)
    }
}

/// The hash that is in force and that this one takes the place of.
fn replaced_by<H: Copy + Ord, P>(
    seen: &Seen<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> Option<H> {
    seen.status.current.filter(|before| {
        *before != hash
            && seen.status.revealed.contains(before)
            && directory.held.get(before).is_some_and(Option::is_some)
    })
}

/// The same, if it has no end yet.
fn replaceable<H: Copy + Ord, P>(
    seen: &Seen<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> Option<H> {
    replaced_by(seen, hash, directory).filter(|before| {
        let held = directory.held.get(before).and_then(Option::as_ref);
        held.is_some_and(|held| held.retires.is_none())
    })
}

/// The step that names its end in the status, unless that names it already, or names the end of another
/// hash that still works.
fn untold<H: Copy + Ord, P>(
    seen: &Seen<H, P>,
    spec: &Spec<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> Option<Step<H, P>> {
    let before = replaceable(seen, hash, directory)?;
    let is_told = |(told, _): (H, Timestamp)| {
        told == before || told != hash && directory.held.contains_key(&told)
    };
    let held = directory.held.get(&before).and_then(Option::as_ref);
    let step = Step::Retire {
        hash: before,
        at: retirement(held, spec, directory),
    };
    (!seen.status.retiring.is_some_and(is_told)).then_some(step)
}

/// From when on a hash is refused that is replaced: as the status says, if it does, or at once where no
/// overlap is declared any more.
fn end<H: Copy + Ord, P>(
    seen: &Seen<H, P>,
    spec: &Spec<H, P>,
    before: &H,
    held: Option<&KeyRules<P>>,
    directory: &DirectoryContent<H, P>,
) -> Timestamp {
    match seen.status.retiring {
        Some((told, at)) if told == *before && !spec.rotation.overlap.is_zero() => at,
        _ => retirement(held, spec, directory),
    }
}

/// The other keys that stay published: the one that is replaced, or else one that was replaced before, in
/// their overlap, which is cut at once where none is declared any more. Two keys work at most.
fn others<H: Copy + Ord, P: Clone>(
    spec: &Spec<H, P>,
    hash: H,
    replaced_now: Option<H>,
    directory: &DirectoryContent<H, P>,
) -> BTreeMap<H, KeyRules<P>> {
    let held = directory.held.iter();
    let held = held.filter_map(|(other, held)| Some((*other, held.as_ref()?)));
    let stays = |(other, held): &(H, &KeyRules<P>)| match held.retires {
        None => replaced_now == Some(*other),
        Some(at) => {
            replaced_now.is_none_or(|replaced| replaced == *other)
                && !spec.rotation.overlap.is_zero()
                && !is_past(Some(at), directory)
        }
    };
    held.filter(|(other, _)| *other != hash)
        .filter(stays)
        .map(|(other, held)| (other, replaced(Some(held), spec)))
        .collect()
}

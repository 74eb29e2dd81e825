//! Steps with a mistake in them.

use std::collections::BTreeMap;

use water_domain::Timestamp;
use water_operator_core::key::facts::{Admission, Directory, Facts, Material, Secret as Found};
use water_operator_core::key::step::{Declaration as Wanted, Handover, Step};

use crate::mistake::Mistake;

/// A step with a mistake in it.
pub fn mistaken(
    step: Step<u8, ()>,
    seen: &Facts<u8, ()>,
    mistake: Option<Mistake>,
) -> Option<Step<u8, ()>> {
    let is_hindered = seen.admission == Admission::Hindered || seen.secret == Found::Foreign;
    match (step, mistake) {
        (Step::Declare(wanted), Some(Mistake::HeldUp)) if is_hindered && !wanted.is_last => None,
        (Step::Declare(_), Some(Mistake::AnnounceFirst)) if unannounced(seen).is_some() => {
            unannounced(seen)
        }
        // The API server refuses it for ever.
        (step, Some(Mistake::LabelFirst)) if !seen.is_deleting && step != Step::Finalize => None,
        (Step::Declare(wanted), Some(Mistake::RevealBeforePublish)) => {
            let made = seen.made.filter(|made| seen.ledger.names(made));
            let is_missing = seen.secret == Found::Missing;
            match made {
                Some(hash) if is_missing => Some(Step::Reveal(Handover {
                    hash,
                    retiring: None,
                })),
                _ => Some(Step::Declare(wanted)),
            }
        }
        (Step::Declare(wanted), Some(Mistake::WithdrawBeforeReveal))
            if seen.secret == Found::Missing =>
        {
            withdrawing(wanted, seen)
        }
        (Step::Declare(wanted), Some(Mistake::EndedByLostSuccessor)) => {
            Some(Step::Declare(without_current(wanted, seen)))
        }
        (Step::Retire { hash, at }, Some(Mistake::EndUntold)) => ended(hash, at, seen),
        (Step::Replace(handover), Some(Mistake::NoOverlap)) => Some(Step::Replace(Handover {
            retiring: None,
            ..handover
        })),
        (step, _) => Some(step),
    }
}

/// Names a hash that is brought along and not announced.
fn unannounced(seen: &Facts<u8, ()>) -> Option<Step<u8, ()>> {
    let Material::Brought(hash) = seen.spec.as_ref()?.material else {
        return None;
    };
    let is_unannounced = !seen.is_deleting && !seen.ledger.names(&hash);
    is_unannounced.then_some(Step::Announce {
        hash,
        reissued: None,
    })
}

/// Takes away the current key, if it retires already, with the publication of another key.
fn without_current(mut wanted: Wanted<u8, ()>, seen: &Facts<u8, ()>) -> Wanted<u8, ()> {
    let is_next_announced = seen.made.is_some_and(|made| seen.ledger.names(&made));
    let current = seen.ledger.current.filter(|_| is_next_announced);
    wanted
        .records
        .retain(|hash, rules| Some(*hash) != current || rules.retires.is_none());
    wanted
}

/// Declares the end of a hash.
fn ended(hash: u8, at: Timestamp, seen: &Facts<u8, ()>) -> Option<Step<u8, ()>> {
    let Directory::Open(directory) = &seen.directory else {
        return None;
    };
    let held = directory.held.iter();
    let mut records: BTreeMap<_, _> = held
        .filter_map(|(hash, rules)| Some((*hash, rules.clone()?)))
        .collect();
    let rules = records.get_mut(&hash)?;
    rules.retires = Some(at);
    Some(Step::Declare(Wanted {
        number: directory.number,
        records,
        withdrawn: Default::default(),
        revoked: Default::default(),
        reinstated: Default::default(),
        is_last: false,
    }))
}

/// Takes away what an earlier leader may still reveal, with the publication of another key, which is
/// then revealed.
fn withdrawing(wanted: Wanted<u8, ()>, seen: &Facts<u8, ()>) -> Option<Step<u8, ()>> {
    let made = seen.made.filter(|made| seen.ledger.names(made));
    let (Some(hash), Directory::Open(directory)) = (made, &seen.directory) else {
        return Some(Step::Declare(wanted));
    };
    let is_seen = |other: &u8| *other == hash || seen.ledger.is_revealed(other);
    let (records, unseen): (BTreeMap<_, _>, BTreeMap<_, _>) = wanted
        .records
        .into_iter()
        .partition(|(other, _)| is_seen(other));
    if !records.keys().eq(directory.held.keys()) {
        return Some(Step::Declare(Wanted {
            records,
            withdrawn: unseen.into_keys().collect(),
            ..wanted
        }));
    }
    let reveal = Step::Reveal(Handover {
        hash,
        retiring: None,
    });
    directory.is_acknowledged.then_some(reveal)
}

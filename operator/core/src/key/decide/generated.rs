//! A key that the operator makes. Once the Secret exists and holds a key of this ApiKey, that key is the
//! one to be in force.

use std::collections::BTreeMap;
use std::time::Duration;

use water_domain::{REISSUES, Timestamp};

use super::goal::{After, Goal};
use super::rules::{earlier, is_past, replaced, retirement};
use crate::key::facts::{
    Admission, Content, DirectoryContent, Facts, Issue, KeyRules, Secret, Spec,
};
use crate::key::step::Decision::{Do, Report};
use crate::key::step::{Handover, Hindrance, Refusal, Step, Verdict};

/// At most [`REISSUES`] keys are issued within this time because the Secret was deleted or edited.
const REISSUES_WITHIN: Duration = Duration::from_secs(600);

pub fn generated<H: Copy + Ord, P: Clone + Ord>(
    facts: &Facts<H, P>,
    spec: &Spec<H, P>,
    directory: &DirectoryContent<H, P>,
) -> Goal<H, P> {
    let retiring = match facts.secret {
        Secret::Own(content) => content.retiring,
        _ => None,
    };
    let is_cut = spec.rotation.overlap.is_zero();
    let retires = |hash: &H, _: &KeyRules<P>| {
        let retiring = retiring.filter(|(retiring, _)| retiring == hash);
        retiring.map(|(_, at)| if is_cut { directory.now } else { at })
    };
    let restricted = |refusal| Goal::restricted(facts, spec, directory, refusal, retires);
    if facts.admission == Admission::Hindered {
        return restricted(Refusal::NotAdmitted);
    }
    // Nobody can have lost a first key.
    let has_revealed = facts.ledger.has_revealed();
    match facts.secret {
        Secret::Own(content) if is_believed(facts, content.hash, directory) => {
            if is_due(facts, spec, content.hash, directory) {
                renewed(facts, spec, false, directory)
            } else {
                settled(facts, spec, content, directory)
            }
        }
        Secret::Missing => renewed(facts, spec, has_revealed, directory),
        Secret::Own(_) | Secret::Edited => renewed(facts, spec, true, directory),
        Secret::Orphan {
            content,
            is_requested,
            ..
        } if (is_requested || facts.ledger.names(&content.hash))
            && is_adoptable(facts, content.hash, directory) =>
        {
            let (hash, reissued) = (content.hash, None);
            let step = if facts.ledger.names(&hash) {
                Step::Amend
            } else {
                Step::Announce { hash, reissued }
            };
            Goal::new(BTreeMap::new(), After::Nothing(step))
        }
        Secret::Orphan { is_collected, .. } if is_collected && !has_revealed => Goal {
            then: After::Declared(Report(Verdict::Held(Hindrance::SecretRemains))),
            ..restricted(Refusal::SecretConflict)
        },
        // Restored after its ApiKey was deleted, or retained then: its text is of no use to anybody.
        Secret::Orphan { content, .. } if directory.barred.contains_key(&content.hash) => {
            renewed(facts, spec, has_revealed, directory)
        }
        // Its watch and that of the ApiKey report what could change that.
        Secret::Orphan { .. } => restricted(Refusal::NotAdopted),
        Secret::Foreign => restricted(Refusal::SecretConflict),
    }
}

/// Checks that the key in the Secret was announced or published for this ApiKey, and not replaced since.
fn is_believed<H: Copy + Ord, P>(
    facts: &Facts<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> bool {
    let ledger = &facts.ledger;
    let held = directory.held.get(&hash);
    let retires = held.and_then(Option::as_ref).and_then(|held| held.retires);
    let is_ours = ledger.names(&hash) || held.is_some();
    is_ours && retires.is_none() && (ledger.current == Some(hash) || !ledger.is_revealed(&hash))
}

/// Checks that the key in a restored Secret may be adopted: not by an ApiKey that has another key.
fn is_adoptable<H: Copy + Ord, P>(
    facts: &Facts<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> bool {
    let ledger = &facts.ledger;
    let retiring = ledger.retiring.map(|(retiring, _)| retiring);
    let mut revealed = ledger.shown().into_iter().chain(retiring);
    let has_another = revealed.any(|revealed| revealed != hash);
    is_free(&hash, directory) && !has_another
}

fn is_free<H: Ord, P>(hash: &H, directory: &DirectoryContent<H, P>) -> bool {
    !directory.barred.contains_key(hash) && !directory.taken.contains(hash)
}

/// Checks whether the key in the Secret is to be replaced. An announced replacement is always completed, since
/// the leader that announced it may still write it into the Secret. No replacement begins before the
/// status names the key in the Secret.
fn is_due<H: Copy + Ord, P>(
    facts: &Facts<H, P>,
    spec: &Spec<H, P>,
    hash: H,
    directory: &DirectoryContent<H, P>,
) -> bool {
    let ledger = &facts.ledger;
    let period = spec.rotation.period;
    let ends = period.and_then(|period| Some(facts.issue?.time.plus(period)));
    let is_too_old = is_past(ends, directory) && !is_past(spec.rules.expires, directory);
    let is_raised = spec.rotation.revision > facts.revision();
    ledger.shown() == Some(hash) && (is_raised || is_too_old || !ledger.is_settled())
}

/// The Secret holds the key that shall be in force.
fn settled<H: Copy + Ord, P: Clone + Ord>(
    facts: &Facts<H, P>,
    spec: &Spec<H, P>,
    content: Content<H>,
    directory: &DirectoryContent<H, P>,
) -> Goal<H, P> {
    let hash = content.hash;
    let mut records = BTreeMap::new();
    if let Some((before, at)) = content.retiring
        && before != hash
        && !spec.rotation.overlap.is_zero()
        && (facts.ledger.names(&before) || directory.held.contains_key(&before))
        && is_free(&before, directory)
    {
        let held = directory.held.get(&before).and_then(Option::as_ref);
        let rules = replaced(held, spec);
        let retires = earlier(rules.retires, Some(at));
        if !is_past(retires, directory) {
            records.insert(before, KeyRules { retires, ..rules });
        }
    }
    let then = match directory.barred.get(&hash) {
        Some(&at) => After::Declared(Report(Verdict::Refused(Refusal::Revoked(at)))),
        None if directory.taken.contains(&hash) => {
            After::Declared(Report(Verdict::Refused(Refusal::Taken)))
        }
        None => {
            records.insert(hash, spec.rules.clone());
            if content.is_as_declared {
                After::Acknowledged(Report(Verdict::InForce(hash)))
            } else {
                After::Declared(Do(Step::Amend))
            }
        }
    };
    let is_unseen = |other: &&H| {
        **other != hash && facts.ledger.names(other) && !facts.ledger.is_revealed(other)
    };
    Goal {
        withdrawn: directory.held.keys().filter(is_unseen).copied().collect(),
        ..Goal::new(records, then)
    }
}

/// Makes another key, publishes it beside the present ones and writes it into the Secret. Until that
/// write every key stays published that was declared, since the leader that announced it may still reveal it.
/// A key that only the status names is not published: others may have written it there, and one that a lost
/// leader did not declare never comes into the Secret, since its declaration is refused for its term.
fn renewed<H: Copy + Ord, P: Clone + Ord>(
    facts: &Facts<H, P>,
    spec: &Spec<H, P>,
    is_lost: bool,
    directory: &DirectoryContent<H, P>,
) -> Goal<H, P> {
    let ledger = &facts.ledger;
    let held = |hash: &H| directory.held.get(hash).and_then(Option::as_ref);
    let is_retiring = |hash: &H| held(hash).is_some_and(|held| held.retires.is_some());
    // Not the current key, though it may be retiring: its successor was lost before the status told of it.
    let is_replaced =
        |hash: &H| ledger.current != Some(*hash) && (ledger.is_revealed(hash) || is_retiring(hash));
    let is_next_announced = facts.made.is_some_and(|made| ledger.names(&made));
    let in_secret = match facts.secret {
        Secret::Own(content) => Some(content.hash),
        _ => None,
    };
    let is_witnessed = |hash: &H| {
        directory.held.contains_key(hash) || [facts.made, in_secret].contains(&Some(*hash))
    };
    let before = ledger.current.filter(|hash| {
        ledger.is_revealed(hash)
            && is_witnessed(hash)
            && is_free(hash, directory)
            && !is_replaced(hash)
    });
    let is_reissue = is_lost && spec.rotation.revision <= facts.revision();
    let is_begun = !ledger.is_settled();
    let halted = match exhausted(&facts.reissues, directory.now) {
        _ if facts.is_terminating => Some(Verdict::Held(Hindrance::Terminating)),
        Some(until) if is_reissue && !is_begun => {
            Some(Verdict::Refused(Refusal::ReissueLimit(until)))
        }
        _ => None,
    };
    let rules = |hash: &H| {
        let is_next_replaced = halted.is_none() && before == Some(*hash);
        if is_replaced(hash) || is_retiring(hash) || is_next_replaced {
            replaced(held(hash), spec)
        } else {
            spec.rules.clone()
        }
    };
    // A record that cannot be decoded is dropped: gates cannot decode it either, and the status does not
    // hold its terms.
    let readable = directory.held.iter().filter(|(_, held)| held.is_some());
    let records: BTreeMap<H, KeyRules<P>> = ledger
        .all()
        .iter()
        .chain(readable.map(|(hash, _)| hash))
        .filter(|hash| is_witnessed(hash) && is_free(*hash, directory))
        // Two keys work at most, besides announced ones.
        .filter(|hash| {
            let is_over = is_begun || spec.rotation.overlap.is_zero();
            !is_replaced(hash) || directory.held.contains_key(hash) && !is_over
        })
        .map(|hash| (*hash, rules(hash)))
        .filter(|(_, rules)| !is_past(rules.retires, directory))
        .collect();
    let handover = |hash| Handover {
        hash,
        retiring: before.map(|before| (before, retirement(held(&before), spec, directory))),
    };
    let then = match (halted, facts.made) {
        (Some(verdict), _) => After::Declared(Report(verdict)),
        (None, Some(hash)) if !is_next_announced => {
            let reissued = is_reissue.then_some(directory.now);
            After::Declared(Do(Step::Announce { hash, reissued }))
        }
        (None, Some(made)) if records.contains_key(&made) => {
            After::Acknowledged(Do(match facts.secret {
                Secret::Missing => Step::Reveal(handover(made)),
                _ => Step::Replace(handover(made)),
            }))
        }
        (None, _) => After::Declared(Do(Step::Make(Issue {
            // Not what the status says of the key before, where others may have written more.
            revision: spec.rotation.revision,
            time: directory.now,
        }))),
    };
    Goal::new(records, then)
}

/// Time at which the next key may be issued for a lost Secret, if the limit is reached. One in the future does not
/// count: others may have written it.
fn exhausted(reissues: &[Timestamp], now: Timestamp) -> Option<Timestamp> {
    let past = reissues.iter().filter(|at| **at <= now);
    let ends = past.map(|at| at.plus(REISSUES_WITHIN));
    let counting: Vec<Timestamp> = ends.filter(|end| *end > now).collect();
    let oldest = counting.iter().min().copied();
    oldest.filter(|_| counting.len() >= REISSUES)
}

//! What to do with an ApiKey: pure rules over what a pass has seen.
//!
//! Restrictions come first: a removed hash, a suspension, an earlier end or a deletion is declared
//! whatever else hinders. What widens waits until nothing does. A generated key is published and
//! acknowledged before its Secret is written, and while no Secret stands no key that may yet be
//! revealed is taken away.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::Timestamp;

use super::seen::{Admission, Directory, Material, Secret, Seen, Sight, Spec, Terms};
use super::step::{Declaration, Hindrance, Refusal, Release, Step, Verdict};

/// How the ApiKey stands, and the one thing to do about it. With a step the verdict is provisional.
pub fn decide<H, P>(seen: &Seen<H, P>) -> (Verdict<H>, Option<Step<H, P>>)
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    if seen.is_deleting {
        return deletion(seen);
    }
    let Some(spec) = &seen.spec else {
        return (Verdict::Refused(Refusal::Undecodable), None);
    };
    if !seen.has_finalizer || !seen.has_label {
        return (Verdict::Underway, Some(Step::Finalize));
    }
    let sight = match &seen.directory {
        Directory::Open(sight) => sight,
        Directory::Away => return (Verdict::Held(Hindrance::Directory), None),
        Directory::Unnamed | Directory::Lost { .. } => {
            return (Verdict::Refused(Refusal::NotAdmitted), None);
        }
    };
    if sight.is_gone {
        return (Verdict::Refused(Refusal::OwnerRevoked), None);
    }
    let goal = match spec.material {
        Material::Brought(hash) => brought(seen, spec, hash, sight),
        Material::Generated => generated(seen, spec, sight),
    };
    goal.next(sight)
}

/// What the directory shall hold, and what follows once it does.
struct Goal<H, P> {
    records: BTreeMap<H, Terms<P>>,
    withdrawn: BTreeSet<H>,
    reinstated: BTreeMap<H, Timestamp>,
    then: Then<H, P>,
}

enum Then<H, P> {
    /// A step that must come before the declaration.
    First(Step<H, P>),
    /// A step that can follow at once.
    Next(Step<H, P>),
    /// A step that needs the gates' acknowledgement.
    Acknowledged(Step<H, P>),
    /// Nothing: this key is in force with the gates' acknowledgement.
    Stands(H),
    /// Nothing, until something changes.
    Stays(Verdict<H>),
}

impl<H: Copy + Ord, P: Clone + Ord> Goal<H, P> {
    fn new(records: BTreeMap<H, Terms<P>>, then: Then<H, P>) -> Self {
        Self {
            records,
            withdrawn: BTreeSet::new(),
            reinstated: BTreeMap::new(),
            then,
        }
    }

    /// Nothing is published, for a reason that somebody has to remove.
    fn refused(refusal: Refusal) -> Self {
        Self::new(BTreeMap::new(), Then::Stays(Verdict::Refused(refusal)))
    }

    /// The same, and what was published may come back.
    fn withdrawn(refusal: Refusal, sight: &Sight<H, P>) -> Self {
        Self {
            withdrawn: sight.held.keys().copied().collect(),
            ..Self::refused(refusal)
        }
    }

    /// What is published of these keys stays with every restriction; nothing is widened.
    fn restricted(
        seen: &Seen<H, P>,
        spec: &Spec<H, P>,
        keys: impl Fn(&H) -> bool,
        refusal: Refusal,
        sight: &Sight<H, P>,
    ) -> Self {
        let mut goal = Self::refused(refusal);
        for (&hash, held) in sight.held.iter().filter(|(hash, _)| keys(hash)) {
            match held {
                Some(held) => {
                    let terms = stricter(held, &spec.terms, &seen.wider_plans);
                    goal.records.insert(hash, terms);
                }
                // No gate can read it either; its plan is unknown.
                None => {
                    goal.withdrawn.insert(hash);
                }
            }
        }
        goal
    }

    fn next(self, sight: &Sight<H, P>) -> (Verdict<H>, Option<Step<H, P>>) {
        if let Then::First(step) = self.then {
            return (Verdict::Underway, Some(step));
        }
        let is_held = |(hash, terms): (&H, &Terms<P>)| {
            sight.held.get(hash).and_then(Option::as_ref) == Some(terms)
        };
        if self.records.len() != sight.held.len() || !self.records.iter().all(is_held) {
            let declaration = Declaration {
                number: sight.number,
                records: self.records,
                withdrawn: self.withdrawn,
                revoked: BTreeSet::new(),
                reinstated: self.reinstated,
                is_last: false,
            };
            return (Verdict::Underway, Some(Step::Declare(declaration)));
        }
        match self.then {
            Then::First(step) | Then::Next(step) => (Verdict::Underway, Some(step)),
            Then::Stays(verdict) => (verdict, None),
            _ if !sight.is_acknowledged => (Verdict::Awaiting, None),
            Then::Acknowledged(step) => (Verdict::Underway, Some(step)),
            Then::Stands(hash) => (Verdict::InForce(hash), None),
        }
    }
}

/// A key that was brought along: its hash is announced, then declared in the place of any other.
fn brought<H: Copy + Ord, P: Clone + Ord>(
    seen: &Seen<H, P>,
    spec: &Spec<H, P>,
    hash: H,
    sight: &Sight<H, P>,
) -> Goal<H, P> {
    match seen.admission {
        Admission::Refused => return Goal::withdrawn(Refusal::NotAdmitted, sight),
        Admission::Hindered => {
            return Goal::restricted(
                seen,
                spec,
                |held| *held == hash,
                Refusal::NotAdmitted,
                sight,
            );
        }
        Admission::Admitted => {}
    }
    let revoked = sight.barred.get(&hash).copied();
    match revoked {
        Some(at) if spec.reinstate != Some(at) => return Goal::refused(Refusal::Revoked(at)),
        _ if sight.taken.contains(&hash) => return Goal::refused(Refusal::Taken),
        _ => {}
    }
    let records = BTreeMap::from([(hash, spec.terms.clone())]);
    if seen.status.current != Some(hash) {
        return Goal::new(records, Then::First(Step::Announce(hash)));
    }
    Goal {
        reinstated: revoked.map(|at| (hash, at)).into_iter().collect(),
        ..Goal::new(records, Then::Stands(hash))
    }
}

/// A key that the operator makes. The Secret decides which, once one stands.
fn generated<H: Copy + Ord, P: Clone + Ord>(
    seen: &Seen<H, P>,
    spec: &Spec<H, P>,
    sight: &Sight<H, P>,
) -> Goal<H, P> {
    let all = |_: &H| true;
    match seen.admission {
        Admission::Refused => return Goal::withdrawn(Refusal::NotAdmitted, sight),
        Admission::Hindered => {
            return Goal::restricted(seen, spec, all, Refusal::NotAdmitted, sight);
        }
        Admission::Admitted => {}
    }
    let is_ours = |hash: &H| seen.status.all.contains(hash) || sight.held.contains_key(hash);
    match seen.secret {
        Secret::Missing => unrevealed(seen, spec, sight),
        Secret::Own(hash) if is_ours(&hash) => revealed(seen, spec, hash, sight),
        Secret::Own(_) | Secret::Foreign => {
            Goal::restricted(seen, spec, all, Refusal::SecretConflict, sight)
        }
    }
}

/// A Secret stands: no other key can be revealed any more.
fn revealed<H: Copy + Ord, P: Clone + Ord>(
    seen: &Seen<H, P>,
    spec: &Spec<H, P>,
    hash: H,
    sight: &Sight<H, P>,
) -> Goal<H, P> {
    let goal = if let Some(&at) = sight.barred.get(&hash) {
        Goal::refused(Refusal::Revoked(at))
    } else if sight.taken.contains(&hash) {
        Goal::refused(Refusal::Taken)
    } else {
        let records = BTreeMap::from([(hash, spec.terms.clone())]);
        Goal::new(records, Then::Stands(hash))
    };
    let is_unseen = |other: &&H| {
        **other != hash && seen.status.all.contains(other) && !seen.status.revealed.contains(other)
    };
    Goal {
        withdrawn: sight.held.keys().filter(is_unseen).copied().collect(),
        ..goal
    }
}

/// No Secret stands: whoever announced a key may still reveal it, so every one stays published.
fn unrevealed<H: Copy + Ord, P: Clone + Ord>(
    seen: &Seen<H, P>,
    spec: &Spec<H, P>,
    sight: &Sight<H, P>,
) -> Goal<H, P> {
    let is_free = |hash: &&H| !sight.barred.contains_key(hash) && !sight.taken.contains(hash);
    let keys = seen.status.all.iter().chain(sight.held.keys());
    let records: BTreeMap<H, Terms<P>> = keys
        .filter(is_free)
        .map(|&hash| {
            let held = sight.held.get(&hash).and_then(Option::as_ref);
            let retires = held.and_then(|held| held.retires);
            let terms = Terms {
                retires,
                ..spec.terms.clone()
            };
            (hash, terms)
        })
        .collect();
    let then = match seen.made {
        _ if seen.is_terminating => Then::Stays(Verdict::Held(Hindrance::Terminating)),
        Some(made) if seen.status.current != Some(made) => Then::Next(Step::Announce(made)),
        Some(made) if records.contains_key(&made) => Then::Acknowledged(Step::Reveal(made)),
        _ => Then::Next(Step::Make),
    };
    Goal::new(records, then)
}

/// Revoke before release: whatever spec, status, Secret and index name.
fn deletion<H: Copy + Ord, P>(seen: &Seen<H, P>) -> (Verdict<H>, Option<Step<H, P>>) {
    if !seen.has_finalizer {
        return (Verdict::Released, None);
    }
    let release = |release| (Verdict::Underway, Some(Step::Release(release)));
    match &seen.directory {
        Directory::Unnamed => release(Release::NeverDeclared),
        Directory::Away => (Verdict::Held(Hindrance::Directory), None),
        Directory::Lost { gates: true } => (Verdict::Held(Hindrance::GatesRemain), None),
        Directory::Lost { gates: false } => release(Release::Unreachable),
        Directory::Open(sight) if !sight.is_gone => {
            let declaration = Declaration {
                number: sight.number,
                records: BTreeMap::new(),
                withdrawn: BTreeSet::new(),
                revoked: seen
                    .named
                    .iter()
                    .chain(sight.held.keys())
                    .copied()
                    .collect(),
                reinstated: BTreeMap::new(),
                is_last: true,
            };
            (Verdict::Underway, Some(Step::Declare(declaration)))
        }
        Directory::Open(sight) if !sight.is_acknowledged => (Verdict::Awaiting, None),
        Directory::Open(_) => release(Release::Revoked),
    }
}

/// Of each field the stricter one. A plan gives way only to one that exceeds it nowhere.
pub fn stricter<P: Clone + Ord>(
    held: &Terms<P>,
    declared: &Terms<P>,
    wider_plans: &BTreeSet<P>,
) -> Terms<P> {
    let is_lowered = wider_plans.contains(&held.plan);
    let ends = [held.expires, declared.expires];
    Terms {
        plan: if is_lowered {
            &declared.plan
        } else {
            &held.plan
        }
        .clone(),
        suspended: held.suspended || declared.suspended,
        not_before: held.not_before.max(declared.not_before),
        expires: ends.into_iter().flatten().min(),
        retires: held.retires,
    }
}

#[cfg(test)]
mod tests;

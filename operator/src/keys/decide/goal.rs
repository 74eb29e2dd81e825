//! What the directory shall hold of an ApiKey, and the next step towards it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use water_domain::Timestamp;

use super::rules::{earlier, is_past, stricter};
use crate::keys::seen::{DirectoryContent, KeyRules, Restrictions, Seen, Spec};
use crate::keys::step::{Declaration, Refusal, Step, Verdict};

/// What the directory shall hold, and what follows once it does.
pub struct Goal<H, P> {
    /// The keys that the gates shall know.
    pub records: BTreeMap<H, KeyRules<P>>,
    /// Keys whose removal leaves no tombstone.
    pub withdrawn: BTreeSet<H>,
    /// Tombstones to lift, each by its time.
    pub reinstated: BTreeMap<H, Timestamp>,
    /// What follows.
    pub then: FollowUp<H, P>,
}

/// What follows once the directory holds what it shall.
pub enum FollowUp<H, P> {
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
    /// These records and nothing else.
    pub fn new(records: BTreeMap<H, KeyRules<P>>, then: FollowUp<H, P>) -> Self {
        Self {
            records,
            withdrawn: BTreeSet::new(),
            reinstated: BTreeMap::new(),
            then,
        }
    }

    /// Nothing is published, for a reason that somebody has to remove.
    pub fn refused(refusal: Refusal) -> Self {
        Self::new(BTreeMap::new(), FollowUp::Stays(Verdict::Refused(refusal)))
    }

    /// Nothing, since the key is not admitted; what was published may come back.
    pub fn withdrawn(directory: &DirectoryContent<H, P>) -> Self {
        Self {
            withdrawn: directory.held.keys().copied().collect(),
            ..Self::refused(Refusal::NotAdmitted)
        }
    }

    /// What is published stays with every restriction, and each key until it is replaced: `replaced`
    /// says from when on. Nothing is widened.
    pub fn restricted(
        seen: &Seen<H, P>,
        spec: &Spec<H, P>,
        directory: &DirectoryContent<H, P>,
        refusal: Refusal,
        replaced: impl Fn(&H, &KeyRules<P>) -> Option<Timestamp>,
    ) -> Self {
        let mut goal = Self::refused(refusal);
        for (&hash, held) in &directory.held {
            match held {
                Some(held) => {
                    let retires = earlier(held.retires, replaced(&hash, held));
                    if !is_past(retires, directory) {
                        let rules = stricter(held, &spec.rules, &seen.wider_plans);
                        goal.records.insert(hash, KeyRules { retires, ..rules });
                    }
                }
                // No gate can read it either; its plan is unknown.
                None => {
                    goal.withdrawn.insert(hash);
                }
            }
        }
        goal
    }

    /// What is published stays, with these restrictions. `None`: some of it cannot be decoded either, and would
    /// be removed by a declaration.
    pub fn kept(seen: &Seen<H, P>, directory: &DirectoryContent<H, P>) -> Option<Self> {
        let Restrictions {
            suspended,
            expires,
            brought,
        } = seen.restrictions;
        let retired = |hash: &H| {
            let (_, overlap) = brought.filter(|(brought, _)| brought != hash)?;
            // One that was never in force gets no overlap.
            let was_in_force = seen.status.revealed.contains(hash);
            Some(directory.now.plus(if was_in_force {
                overlap
            } else {
                Duration::ZERO
            }))
        };
        let restricted = |(hash, held): (&H, &Option<KeyRules<P>>)| {
            let held = held.clone()?;
            let rules = KeyRules {
                suspended: held.suspended || suspended,
                expires: earlier(held.expires, expires),
                retires: earlier(held.retires, retired(hash)),
                ..held
            };
            Some((*hash, rules))
        };
        let records: Option<BTreeMap<_, _>> = directory.held.iter().map(restricted).collect();
        let mut records = records?;
        records.retain(|_, rules| !is_past(rules.retires, directory));
        let then = FollowUp::Stays(Verdict::Refused(Refusal::Undecodable));
        Some(Self::new(records, then))
    }

    /// The one thing to do on the way there.
    pub fn next(self, directory: &DirectoryContent<H, P>) -> (Verdict<H>, Option<Step<H, P>>) {
        if let FollowUp::First(step) = self.then {
            return (Verdict::Underway, Some(step));
        }
        let is_held = |(hash, rules): (&H, &KeyRules<P>)| {
            directory.held.get(hash).and_then(Option::as_ref) == Some(rules)
        };
        if self.records.len() != directory.held.len() || !self.records.iter().all(is_held) {
            let declaration = Declaration {
                number: directory.number,
                records: self.records,
                withdrawn: self.withdrawn,
                revoked: BTreeSet::new(),
                reinstated: self.reinstated,
                is_last: false,
            };
            return (Verdict::Underway, Some(Step::Declare(declaration)));
        }
        match self.then {
            FollowUp::First(step) | FollowUp::Next(step) => (Verdict::Underway, Some(step)),
            FollowUp::Stays(verdict) => (verdict, None),
            _ if !directory.is_acknowledged => (Verdict::Awaiting, None),
            FollowUp::Acknowledged(step) => (Verdict::Underway, Some(step)),
            FollowUp::Stands(hash) => (Verdict::InForce(hash), None),
        }
    }
}

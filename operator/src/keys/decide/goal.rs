//! What the directory shall hold of an ApiKey, and the next step towards it.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::Timestamp;

use super::terms::{earlier, is_past, stricter};
use crate::keys::seen::{Restrictions, Seen, Sight, Spec, Terms};
use crate::keys::step::{Declaration, Refusal, Step, Verdict};

/// What the directory shall hold, and what follows once it does.
pub struct Goal<H, P> {
    /// The keys that the gates shall know.
    pub records: BTreeMap<H, Terms<P>>,
    /// Keys whose removal leaves no tombstone.
    pub withdrawn: BTreeSet<H>,
    /// Tombstones to lift, each by its time.
    pub reinstated: BTreeMap<H, Timestamp>,
    /// What follows.
    pub then: Then<H, P>,
}

/// What follows once the directory holds what it shall.
pub enum Then<H, P> {
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
    pub fn new(records: BTreeMap<H, Terms<P>>, then: Then<H, P>) -> Self {
        Self {
            records,
            withdrawn: BTreeSet::new(),
            reinstated: BTreeMap::new(),
            then,
        }
    }

    /// Nothing is published, for a reason that somebody has to remove.
    pub fn refused(refusal: Refusal) -> Self {
        Self::new(BTreeMap::new(), Then::Stays(Verdict::Refused(refusal)))
    }

    /// The same, and what was published may come back.
    pub fn withdrawn(refusal: Refusal, sight: &Sight<H, P>) -> Self {
        Self {
            withdrawn: sight.held.keys().copied().collect(),
            ..Self::refused(refusal)
        }
    }

    /// What is published stays with every restriction, and each key until it is replaced: `replaced`
    /// says from when on. Nothing is widened.
    pub fn restricted(
        seen: &Seen<H, P>,
        spec: &Spec<H, P>,
        sight: &Sight<H, P>,
        refusal: Refusal,
        replaced: impl Fn(&H, &Terms<P>) -> Option<Timestamp>,
    ) -> Self {
        let mut goal = Self::refused(refusal);
        for (&hash, held) in &sight.held {
            match held {
                Some(held) => {
                    let retires = earlier(held.retires, replaced(&hash, held));
                    if !is_past(retires, sight) {
                        let terms = stricter(held, &spec.terms, &seen.wider_plans);
                        goal.records.insert(hash, Terms { retires, ..terms });
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
    pub fn kept(restrictions: &Restrictions, sight: &Sight<H, P>) -> Option<Self> {
        let restricted = |(hash, held): (&H, &Option<Terms<P>>)| {
            let held = held.clone()?;
            let terms = Terms {
                suspended: held.suspended || restrictions.suspended,
                expires: earlier(held.expires, restrictions.expires),
                ..held
            };
            Some((*hash, terms))
        };
        let records: Option<_> = sight.held.iter().map(restricted).collect();
        let then = Then::Stays(Verdict::Refused(Refusal::Undecodable));
        Some(Self::new(records?, then))
    }

    /// The one thing to do on the way there.
    pub fn next(self, sight: &Sight<H, P>) -> (Verdict<H>, Option<Step<H, P>>) {
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

//! Content that the directory shall have of an ApiKey, and the next step towards it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use water_domain::Timestamp;

use super::rules::{earlier, is_past, stricter};
use crate::key::facts::{DirectoryContent, Facts, KeyRules, Restrictions, Spec};
use crate::key::step::Decision::{self, Do, Report};
use crate::key::step::{Declaration, Refusal, Step, Verdict};

/// Content that the directory shall have, and what follows it.
pub struct Goal<H, P> {
    /// The keys that the gates shall know.
    pub records: BTreeMap<H, KeyRules<P>>,
    /// Keys whose removal leaves no tombstone.
    pub withdrawn: BTreeSet<H>,
    /// Tombstones to lift, each by its time.
    pub reinstated: BTreeMap<H, Timestamp>,
    /// Decision that follows.
    pub then: After<H, P>,
}

/// Decision, and what it comes after.
pub enum After<H, P> {
    /// A step that must come before the declaration.
    Nothing(Step<H, P>),
    /// Decision for a directory that holds what it shall.
    Declared(Decision<H, P>),
    /// Decision for one whose content every gate has acknowledged, too.
    Acknowledged(Decision<H, P>),
}

impl<H: Copy + Ord, P: Clone + Ord> Goal<H, P> {
    /// Publishes these records and nothing else.
    pub fn new(records: BTreeMap<H, KeyRules<P>>, then: After<H, P>) -> Self {
        Self {
            records,
            withdrawn: BTreeSet::new(),
            reinstated: BTreeMap::new(),
            then,
        }
    }

    /// Publishes nothing, for a reason that somebody has to remove.
    pub fn refused(refusal: Refusal) -> Self {
        let then = After::Declared(Report(Verdict::Refused(refusal)));
        Self::new(BTreeMap::new(), then)
    }

    /// Publishes nothing, since the key is not admitted; what was published may come back.
    pub fn withdrawn(directory: &DirectoryContent<H, P>) -> Self {
        Self {
            withdrawn: directory.held.keys().copied().collect(),
            ..Self::refused(Refusal::NotAdmitted)
        }
    }

    /// Keeps what is published with every restriction, and each key until it is replaced: `replaced`
    /// says from which time on. Nothing is widened.
    pub fn restricted(
        facts: &Facts<H, P>,
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
                        let rules = stricter(held, &spec.rules, &facts.wider_plans);
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

    /// Keeps what is published, with the restrictions that can be read. `None`: some of it cannot be decoded either, and would
    /// be removed by a declaration.
    pub fn kept(facts: &Facts<H, P>, directory: &DirectoryContent<H, P>) -> Option<Self> {
        let Restrictions {
            suspended, expires, ..
        } = facts.restrictions;
        let restricted = |(hash, held): (&H, &Option<KeyRules<P>>)| {
            let held = held.clone()?;
            let rules = KeyRules {
                suspended: held.suspended || suspended,
                expires: earlier(held.expires, expires),
                retires: earlier(held.retires, Self::end(facts, directory, hash)),
                ..held
            };
            Some((*hash, rules))
        };
        let records: Option<BTreeMap<_, _>> = directory.held.iter().map(restricted).collect();
        let mut records = records?;
        records.retain(|_, rules| !is_past(rules.retires, directory));
        Some(Self {
            records,
            ..Self::refused(Refusal::Undecodable)
        })
    }

    /// End of a hash that another one replaces which is brought along; one that was never in force gets no overlap.
    pub fn end(
        facts: &Facts<H, P>,
        directory: &DirectoryContent<H, P>,
        hash: &H,
    ) -> Option<Timestamp> {
        let (_, overlap) = facts
            .restrictions
            .brought
            .filter(|(brought, _)| brought != hash)?;
        let was_in_force = facts.ledger.is_revealed(hash);
        let overlap = Some(overlap).filter(|_| was_in_force);
        Some(directory.now.plus(overlap.unwrap_or(Duration::ZERO)))
    }

    /// The one thing to do on the way there.
    pub fn next(self, directory: &DirectoryContent<H, P>) -> Decision<H, P> {
        let is_held = |(hash, rules): (&H, &KeyRules<P>)| {
            directory.held.get(hash).and_then(Option::as_ref) == Some(rules)
        };
        let is_declared =
            self.records.len() == directory.held.len() && self.records.iter().all(is_held);
        match self.then {
            After::Nothing(step) => Do(step),
            _ if !is_declared => Do(Step::Declare(Declaration {
                number: directory.number,
                records: self.records,
                withdrawn: self.withdrawn,
                revoked: BTreeSet::new(),
                reinstated: self.reinstated,
                is_last: false,
            })),
            After::Acknowledged(_) if !directory.is_acknowledged => Report(Verdict::Awaiting),
            After::Declared(decision) | After::Acknowledged(decision) => decision,
        }
    }
}

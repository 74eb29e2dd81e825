//! Keys that are published of an ApiKey by what Kubernetes alone says of it: where the directory, by which a pass
//! decides, was lost.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::Timestamp;

use super::rules::{earlier, replaced, stricter};
use crate::key::facts::{KeyRules, Material, Spec};
use crate::key::ledger::Ledger;

/// Statements of Kubernetes about an ApiKey's keys.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a, H, P> {
    /// Declaration of the owner.
    pub spec: &'a Spec<H, P>,
    /// Keys that the status names.
    pub ledger: &'a Ledger<H>,
    /// The key that the Secret names; `None` for a brought key, too.
    pub in_secret: Option<H>,
    /// The key that was in it before, and from when on that is refused.
    pub retiring: Option<(H, Timestamp)>,
    /// Rules of its keys in the former directory, as far as these are known.
    pub former: &'a BTreeMap<H, KeyRules<P>>,
    /// Something is missing that may come back: nothing is widened.
    pub is_hindered: bool,
}

/// Announced keys, without those that the Secret or a brought hash has replaced.
pub fn published<H: Copy + Ord, P: Clone + Ord>(
    evidence: &Evidence<'_, H, P>,
) -> BTreeMap<H, KeyRules<P>> {
    let ledger = evidence.newest();
    let all = ledger.all().into_iter();
    let published = all.filter(|hash| evidence.publishes(*hash, &ledger));
    let rules = |hash: H| (hash, evidence.rules(hash, &ledger));
    published.map(rules).collect()
}

impl<H: Copy + Ord, P: Clone + Ord> Evidence<'_, H, P> {
    /// Keys of the status, or of a Secret that was written after it: the other announced keys can then not be revealed
    /// any more. A Secret with a key that the owner had before was put back by somebody.
    fn newest(&self) -> Ledger<H> {
        let ledger = self.ledger;
        let is_newer = |written: &H| ledger.names(written) && !ledger.is_revealed(written);
        let Some(hash) = self.in_secret.filter(is_newer) else {
            // Others may have written either: the earlier end counts.
            let sooner = |(before, at): (H, Timestamp)| match self.retiring {
                Some((written, until)) if written == before => (before, at.min(until)),
                _ => (before, at),
            };
            return Ledger {
                retiring: ledger.retiring.map(sooner),
                ..ledger.clone()
            };
        };
        // An annotation that was edited by hand must not end the key that the Secret holds.
        let is_before = |(before, _): &(H, Timestamp)| *before != hash && ledger.names(before);
        Ledger::confirm(hash, self.retiring.filter(is_before))
    }

    /// Whether a key of the newest ledger is published. A replaced one is refused before its end if its owner has ended
    /// the overlap, or another key is announced: two keys work at most, besides announced ones.
    fn publishes(&self, hash: H, ledger: &Ledger<H>) -> bool {
        let is_current = ledger.current == Some(hash);
        let is_over = !is_current && !ledger.is_settled();
        let is_ended = |is_cut| ledger.retires(&hash).is_some() && (is_over || is_cut);
        let is_cut = self.spec.rotation.overlap.is_zero();
        match self.spec.material {
            Material::Brought(brought) if brought == hash => true,
            // A hash that was brought along and never in force has been replaced permanently.
            Material::Brought(_) => ledger.is_revealed(&hash) && !is_ended(is_cut),
            // Made keys succeed a current one only once the status names them.
            Material::Generated => !is_ended(is_cut && !is_current),
        }
    }

    fn rules(&self, hash: H, ledger: &Ledger<H>) -> KeyRules<P> {
        let (declared, held) = (&self.spec.rules, self.former.get(&hash));
        // Brought along again, it works on, unless nothing may be widened.
        let is_declared = self.spec.material == Material::Brought(hash);
        let told = ledger.retires(&hash).filter(|_| !is_declared);
        let has_successor = ledger.shown() == Some(hash) && !ledger.is_settled();
        let is_replaced = |held: &KeyRules<P>| match self.spec.material {
            Material::Brought(_) => !is_declared,
            Material::Generated => has_successor || told.or(held.retires).is_some(),
        };
        let rules = match held {
            Some(held) if self.is_hindered => stricter(held, declared, &BTreeSet::new()),
            Some(held) if is_replaced(held) => replaced(Some(held), self.spec),
            _ => declared.clone(),
        };
        KeyRules {
            retires: earlier(rules.retires, told),
            ..rules
        }
    }
}

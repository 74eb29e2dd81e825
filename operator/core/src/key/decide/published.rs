//! Keys that are published of an ApiKey by what Kubernetes alone says of it: where the directory, by which a pass
//! decides, was lost.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::Timestamp;

use super::rules::{earlier, stricter};
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
    let all = evidence.ledger.all().into_iter();
    let published = all.filter(|hash| evidence.publishes(*hash));
    published.map(|hash| (hash, evidence.rules(hash))).collect()
}

impl<H: Copy + Ord, P: Clone + Ord> Evidence<'_, H, P> {
    fn publishes(&self, hash: H) -> bool {
        match (self.spec.material, self.newer()) {
            (Material::Brought(brought), _) if brought == hash => true,
            // A hash that was brought along and never in force has been replaced permanently.
            (Material::Brought(_), _) => {
                let has_worked = self.ledger.shown() == Some(hash) || self.retires(hash).is_some();
                has_worked && !self.is_ended(hash)
            }
            (Material::Generated, Some(current)) => {
                hash == current || self.retires(hash).is_some() && !self.is_cut()
            }
            (Material::Generated, None) => !self.is_ended(hash),
        }
    }

    /// The key in the Secret, if the Secret was written after the status. The other announced keys can then
    /// not be revealed any more. One with a key that the owner had before was put back by somebody.
    fn newer(&self) -> Option<H> {
        let is_newer =
            |written: &H| self.ledger.names(written) && !self.ledger.is_revealed(written);
        self.in_secret.filter(is_newer)
    }

    /// Time from which a replaced key is refused, from the Secret or else from the status, if that is not older.
    fn retires(&self, hash: H) -> Option<Timestamp> {
        // An annotation that was edited by hand must not end the key that the Secret holds.
        let written = self.retiring.filter(|_| self.in_secret != Some(hash));
        let named = [
            written,
            self.ledger.retiring.filter(|_| self.newer().is_none()),
        ];
        let mut named = named.into_iter().flatten();
        named.find_map(|(before, at)| (before == hash).then_some(at))
    }

    /// Whether a replaced key is refused before the time that status and Secret name: its owner has ended the overlap,
    /// or another key is announced. Two keys work at most, besides announced ones.
    fn is_ended(&self, hash: H) -> bool {
        let is_current = self.ledger.current == Some(hash);
        let is_over = !is_current && !self.ledger.is_settled();
        // Made keys succeed a current one only once the status names them.
        let may_cut = !is_current || matches!(self.spec.material, Material::Brought(_));
        self.retires(hash).is_some() && (is_over || may_cut && self.is_cut())
    }

    fn is_cut(&self) -> bool {
        self.spec.rotation.overlap.is_zero()
    }

    fn rules(&self, hash: H) -> KeyRules<P> {
        let declared = &self.spec.rules;
        let held = self.former.get(&hash);
        let stays = held.filter(|_| self.is_hindered);
        let rules = match stays {
            Some(held) => stricter(held, declared, &BTreeSet::new()),
            None => declared.clone(),
        };
        let retires = match self.spec.material {
            // Brought along again, it works on, unless nothing may be widened.
            Material::Brought(brought) if brought == hash => stays.and_then(|held| held.retires),
            _ => earlier(held.and_then(|held| held.retires), self.retires(hash)),
        };
        KeyRules { retires, ..rules }
    }
}

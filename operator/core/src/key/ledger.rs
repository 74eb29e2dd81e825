//! Keys that an ApiKey's status names.
//!
//! A leader that has declared a key may be stopped and still write it into the Secret later. So each announced key
//! stays named, and a declared one published, until another one is in force.

use std::collections::BTreeSet;

use water_domain::{CANDIDATES, REISSUES, Timestamp};

/// Names of an ApiKey's keys. `H` is a key's hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ledger<H> {
    /// Key in the Secret. Before the first Secret: the latest key that was announced.
    pub current: Option<H>,
    /// Whether the current key was in force, so that its owner can have it.
    pub is_shown: bool,
    /// Key before it, or a brought hash that is being replaced, and the time from which it is refused.
    pub retiring: Option<(H, Timestamp)>,
    /// Keys that were announced besides, the latest first.
    pub candidates: Vec<H>,
}

impl<H> Default for Ledger<H> {
    fn default() -> Self {
        Self {
            current: None,
            is_shown: false,
            retiring: None,
            candidates: Vec::new(),
        }
    }
}

impl<H: Copy + Ord> Ledger<H> {
    /// All keys.
    pub fn all(&self) -> BTreeSet<H> {
        let retiring = self.retiring.map(|(hash, _)| hash);
        let all = self.current.into_iter().chain(retiring);
        all.chain(self.candidates.iter().copied()).collect()
    }

    /// Whether it names this key.
    pub fn names(&self, hash: &H) -> bool {
        self.current == Some(*hash) || self.is_revealed(hash) || self.candidates.contains(hash)
    }

    /// Current key, if it was in force.
    pub fn shown(&self) -> Option<H> {
        self.current.filter(|_| self.is_shown)
    }

    /// Whether the owner can have this key: the one that was in force last, or the one before it.
    pub fn is_revealed(&self, hash: &H) -> bool {
        self.shown() == Some(*hash) || self.retires(hash).is_some()
    }

    /// Time from which a key is refused that is being replaced.
    pub fn retires(&self, hash: &H) -> Option<Timestamp> {
        let named = self.retiring.filter(|(before, _)| before == hash);
        named.map(|(_, at)| at)
    }

    /// Whether it names a key that the owner can have.
    pub fn has_revealed(&self) -> bool {
        self.shown().is_some() || self.retiring.is_some()
    }

    /// Whether every key that it names was in force: no other one may come into the Secret.
    pub fn is_settled(&self) -> bool {
        let others = self.current.iter().chain(&self.candidates);
        others.into_iter().all(|hash| self.is_revealed(hash))
    }

    /// Adds a key that is about to be published. A current key that was in force stays the current one. The oldest of
    /// too many candidates is dropped.
    #[must_use]
    pub fn announce(self, hash: H) -> Self {
        let (current, latest) = match self.shown() {
            Some(shown) => (shown, Some(hash)),
            None => (hash, self.current),
        };
        let rest = self.candidates.into_iter().filter(|other| *other != hash);
        let latest = latest.filter(|latest| *latest != current);
        Self {
            current: Some(current),
            candidates: latest.into_iter().chain(rest).take(CANDIDATES).collect(),
            ..self
        }
    }

    /// Names the end of a brought hash that is being replaced. One whose end was named before stays a candidate if it
    /// is `declared` again.
    #[must_use]
    pub fn retire(self, hash: H, at: Timestamp, declared: Option<H>) -> Self {
        let before = self.retiring.map(|(before, _)| before);
        let again = before.filter(|before| declared == Some(*before));
        let candidates = again.into_iter().chain(self.candidates);
        Self {
            retiring: Some((hash, at)),
            candidates: candidates.take(CANDIDATES).collect(),
            ..self
        }
    }

    /// Names a key that is in force, and the one that works beside it until it is refused. Nothing else is published.
    #[must_use]
    pub fn confirm(hash: H, retiring: Option<(H, Timestamp)>) -> Self {
        Self {
            current: Some(hash),
            is_shown: true,
            retiring,
            candidates: Vec::new(),
        }
    }
}

/// Reissues that count, the latest last. One that another leader began and did not end is replaced, so that it counts
/// once.
#[must_use]
pub fn reissues<R>(mut before: Vec<R>, is_begun: impl Fn(&R) -> bool, next: R) -> Vec<R> {
    before.pop_if(|last| is_begun(last));
    before.push(next);
    let old = before.len().saturating_sub(REISSUES);
    before.split_off(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Announces keys, one after the other, without revealing any.
    fn announce(ledger: Ledger<char>, keys: &str) -> Ledger<char> {
        keys.chars().fold(ledger, Ledger::announce)
    }

    fn candidates(ledger: &Ledger<char>) -> String {
        ledger.candidates.iter().collect()
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    #[test]
    fn what_nobody_saw_stays_announced_the_latest_first() {
        let ledger = announce(Ledger::default(), "abc");
        assert_eq!(ledger.current, Some('c'));
        assert_eq!(candidates(&ledger), "ba");
        assert!(!ledger.has_revealed() && !ledger.is_settled());
    }

    #[test]
    fn one_too_many_is_dropped() {
        let ledger = announce(Ledger::default(), "abcdef0123");
        assert_eq!(candidates(&ledger), "210fedcb");
    }

    #[test]
    fn announcing_the_same_key_again_changes_nothing() {
        let once = announce(Ledger::default(), "ab");
        assert_eq!(announce(once.clone(), "b"), once);
    }

    #[test]
    fn a_key_that_was_revealed_stays_the_current_one_however_many_are_announced() {
        let ledger = announce(Ledger::confirm('a', None), "bc");
        assert_eq!((ledger.current, &*candidates(&ledger)), (Some('a'), "cb"));
        assert_eq!(announce(ledger.clone(), "c"), ledger);
        assert_eq!(ledger.all(), BTreeSet::from(['a', 'b', 'c']));
    }

    #[test]
    fn a_hash_that_is_declared_again_stays_named_while_another_one_retires() {
        let ledger = Ledger::confirm('b', Some(('a', at(1)))).announce('c');
        let named = |declared| ledger.clone().retire('b', at(2), declared).all();
        assert_eq!(named(Some('a')), BTreeSet::from(['a', 'b', 'c']));
        assert_eq!(named(Some('c')), BTreeSet::from(['b', 'c']));
    }

    #[test]
    fn each_reissue_counts_once_whoever_ends_it() {
        let begun = reissues(vec![], |_| false, 1);
        assert_eq!(begun, [1]);
        let again = reissues(begun, |last| *last == 1, 2);
        assert_eq!(again, [2], "the first one was not ended");
        let fourth = (3..6).fold(again, |before, next| reissues(before, |_| false, next));
        assert_eq!(fourth, [3, 4, 5], "only the last three decide");
    }
}

//! The keys that were used since the last batch, each with its latest use.

use hashbrown::HashMap;
use water_domain::{KeyId, Timestamp};

/// Keys in one batch, at most: more than a gate can serve in the time between two. Only while Redis is
/// away for long can it be met, and then the use of a further key is lost.
const BOUND: usize = 65_536;

#[derive(Debug)]
pub(super) struct Noted {
    uses: HashMap<KeyId, Timestamp>,
    bound: usize,
}

impl Default for Noted {
    fn default() -> Self {
        Self::bounded(BOUND)
    }
}

impl Noted {
    fn bounded(bound: usize) -> Self {
        Self {
            uses: HashMap::new(),
            bound,
        }
    }

    pub(super) fn note(&mut self, key: &KeyId, at: Timestamp) {
        if let Some(latest) = self.uses.get_mut(key) {
            *latest = at.max(*latest);
        } else if self.uses.len() < self.bound {
            self.uses.insert(key.clone(), at);
        }
    }

    /// All of them; the memory goes with them.
    pub(super) fn take(&mut self) -> Vec<(KeyId, Timestamp)> {
        std::mem::take(&mut self.uses).into_iter().collect()
    }

    /// Gives back what could not be told.
    pub(super) fn put_back(&mut self, batch: Vec<(KeyId, Timestamp)>) {
        for (key, at) in batch {
            self.note(&key, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> KeyId {
        format!("{number:012}").parse().unwrap()
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    fn noted(bound: usize, uses: &[(u32, i64)]) -> Noted {
        let mut noted = Noted::bounded(bound);
        for (number, millis) in uses {
            noted.note(&key(*number), at(*millis));
        }
        noted
    }

    fn sorted(mut noted: Noted) -> Vec<(KeyId, Timestamp)> {
        let mut batch = noted.take();
        batch.sort();
        batch
    }

    #[test]
    fn a_key_is_noted_once_with_its_latest_use() {
        let noted = noted(9, &[(1, 5), (2, 6), (1, 7), (1, 6)]);
        assert_eq!(sorted(noted), [(key(1), at(7)), (key(2), at(6))]);
    }

    #[test]
    fn what_was_taken_is_not_taken_again() {
        let mut noted = noted(9, &[(1, 5)]);
        noted.take();
        assert_eq!(noted.take(), []);
    }

    #[test]
    fn what_comes_back_gives_way_to_a_later_use() {
        let mut noted = noted(9, &[(1, 5), (2, 5)]);
        let batch = noted.take();
        noted.note(&key(1), at(8));
        noted.put_back(batch);
        assert_eq!(sorted(noted), [(key(1), at(8)), (key(2), at(5))]);
    }

    #[test]
    fn beyond_the_bound_only_known_keys_are_noted() {
        let noted = noted(1, &[(1, 5), (2, 6), (1, 7)]);
        assert_eq!(sorted(noted), [(key(1), at(7))]);
    }
}

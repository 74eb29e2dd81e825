//! Records of one worker since the last batch: the latest use of each key, and each account's numbers of accepted and
//! limited requests.

mod tally;

use std::collections::BTreeMap;

use hashbrown::HashMap;
use water_domain::{AccountId, KeyId, Timestamp};
use water_keystore::UtcDay;
use water_keystore::usage::Use;

pub(super) use tally::Tally;

/// Largest number of keys in one batch: more than a gate can serve in one interval. It is reached only while Redis is
/// down for long, and then the use of a further key is lost.
const BOUND: usize = 65_536;

#[derive(Debug)]
pub(super) struct UsageBuffer {
    keys: HashMap<KeyId, (AccountId, Timestamp)>,
    accounts: HashMap<AccountId, Tally>,
    /// Counts of days that were over at the account's next request.
    past: Vec<(AccountId, Tally)>,
    bound: usize,
}

impl Default for UsageBuffer {
    fn default() -> Self {
        Self::bounded(BOUND)
    }
}

impl UsageBuffer {
    fn bounded(bound: usize) -> Self {
        Self {
            keys: HashMap::new(),
            accounts: HashMap::new(),
            past: Vec::new(),
            bound,
        }
    }

    /// Records a request with this key of this account; `accepted` is the limiter's decision, if it was asked.
    pub(super) fn note(
        &mut self,
        account: &AccountId,
        key: &KeyId,
        accepted: Option<bool>,
        at: Timestamp,
    ) {
        self.used(account, key, at);
        if let Some(accepted) = accepted {
            self.count(account, Tally::of_one(accepted, UtcDay::from(at)));
        }
    }

    fn used(&mut self, account: &AccountId, key: &KeyId, at: Timestamp) {
        if let Some((_, latest)) = self.keys.get_mut(key) {
            *latest = at.max(*latest);
        } else if self.keys.len() < self.bound {
            self.keys.insert(key.clone(), (account.clone(), at));
        }
    }

    fn count(&mut self, account: &AccountId, more: Tally) {
        if let Some(tally) = self.accounts.get_mut(account) {
            let Err(more) = tally.add(more) else { return };
            let past = std::mem::replace(tally, more);
            if self.past.len() < self.bound {
                self.past.push((account.clone(), past));
            }
        } else if self.accounts.len() < self.bound {
            self.accounts.insert(account.clone(), more);
        }
    }

    /// Puts back uses that could not be written.
    pub(super) fn put_back(&mut self, uses: Vec<Use>) {
        for used in uses {
            for (key, at) in &used.keys {
                self.used(&used.account, key, *at);
            }
            let tally = Tally {
                day: used.day,
                accepted: used.accepted,
                limited: used.limited,
            };
            if !tally.is_empty() {
                self.count(&used.account, tally);
            }
        }
    }
}

/// Merges the workers' records, by account and day.
pub(super) fn by_account(noted: impl Iterator<Item = UsageBuffer>) -> Vec<Use> {
    let mut uses: BTreeMap<(AccountId, UtcDay), Use> = BTreeMap::new();
    let mut of = |account: &AccountId, day: UtcDay, tell: &mut dyn FnMut(&mut Use)| {
        let used = uses.entry((account.clone(), day));
        tell(used.or_insert_with(|| Use {
            account: account.clone(),
            day,
            accepted: 0,
            limited: 0,
            keys: Vec::new(),
        }));
    };
    for noted in noted {
        for (account, tally) in noted.accounts.into_iter().chain(noted.past) {
            of(&account, tally.day, &mut |used| {
                used.accepted += tally.accepted;
                used.limited += tally.limited;
            });
        }
        for (key, (account, at)) in noted.keys {
            of(&account, UtcDay::from(at), &mut |used| {
                used.keys.push((key.clone(), at));
            });
        }
    }
    uses.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIGHT: i64 = 86_400_000;

    fn key(number: u32) -> KeyId {
        format!("{number:012}").parse().unwrap()
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    fn account() -> AccountId {
        "acme".parse().unwrap()
    }

    fn noted(bound: usize, uses: &[(u32, i64)]) -> UsageBuffer {
        let mut noted = UsageBuffer::bounded(bound);
        for (number, millis) in uses {
            noted.note(&account(), &key(*number), None, at(*millis));
        }
        noted
    }

    fn counted(requests: &[(i64, bool)]) -> UsageBuffer {
        let mut noted = UsageBuffer::default();
        for (millis, accepted) in requests {
            noted.note(&account(), &key(1), Some(*accepted), at(*millis));
        }
        noted
    }

    fn taken(noted: UsageBuffer) -> Vec<Use> {
        by_account([noted].into_iter())
    }

    fn keys(noted: UsageBuffer) -> Vec<(KeyId, Timestamp)> {
        let mut keys: Vec<_> = taken(noted)
            .into_iter()
            .flat_map(|used| used.keys)
            .collect();
        keys.sort();
        keys
    }

    fn counts(noted: UsageBuffer) -> Vec<(String, u64, u64)> {
        let uses = taken(noted).into_iter();
        uses.map(|used| (used.day.to_string(), used.accepted, used.limited))
            .collect()
    }

    #[test]
    fn a_key_is_noted_once_with_its_latest_use() {
        let noted = noted(9, &[(1, 5), (2, 6), (1, 7), (1, 6)]);
        assert_eq!(keys(noted), [(key(1), at(7)), (key(2), at(6))]);
    }

    #[test]
    fn what_comes_back_gives_way_to_a_later_use() {
        let batch = taken(noted(9, &[(1, 5), (2, 5)]));
        let mut noted = UsageBuffer::default();
        noted.note(&account(), &key(1), None, at(8));
        noted.put_back(batch);
        assert_eq!(keys(noted), [(key(1), at(8)), (key(2), at(5))]);
    }

    #[test]
    fn beyond_the_bound_only_known_keys_and_accounts_are_noted() {
        let mut noted = noted(1, &[(1, 5), (2, 6), (1, 7)]);
        let other = "globex".parse().unwrap();
        for account in [&account(), &other, &account()] {
            noted.note(account, &key(1), Some(true), at(7));
        }
        assert_eq!(noted.accounts.len(), 1);
        assert_eq!(keys(noted), [(key(1), at(7))]);
    }

    #[test]
    fn accepted_and_limited_requests_are_counted_apart_and_others_not_at_all() {
        let mut noted = counted(&[(1, true), (2, false), (3, true)]);
        noted.note(&account(), &key(1), None, at(4));
        assert_eq!(counts(noted), [("1970-01-01".into(), 2, 1)]);
    }

    #[test]
    fn midnight_parts_the_counts() {
        let noted = counted(&[(NIGHT - 1, true), (NIGHT, true), (NIGHT - 1, false)]);
        let expected = [("1970-01-01".into(), 1, 1), ("1970-01-02".into(), 1, 0)];
        assert_eq!(counts(noted), expected);
    }

    #[test]
    fn counts_that_come_back_are_added_to_later_ones() {
        let batch = taken(counted(&[(NIGHT - 1, true), (NIGHT, false)]));
        let mut noted = UsageBuffer::default();
        noted.note(&account(), &key(1), Some(true), at(NIGHT));
        noted.put_back(batch);
        let expected = [("1970-01-01".into(), 1, 0), ("1970-01-02".into(), 1, 1)];
        assert_eq!(counts(noted), expected);
    }

    #[test]
    fn the_workers_counts_are_one() {
        let workers = [counted(&[(1, true)]), counted(&[(2, true)])];
        let uses = by_account(workers.into_iter());
        assert_eq!((uses.len(), uses[0].accepted), (1, 2));
    }
}

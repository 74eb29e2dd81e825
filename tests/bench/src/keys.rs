//! The keys of a measurement: as many as wanted, the same in every run, each of an account of its
//! own, so that no account meets a limit that is not meant to be met.

use std::sync::Arc;

use water_domain::{KeyHash, KeyId, KeyPrefix, PlainKey};
use water_keystore::{Entry, KeyState, Origin, Owner, Record};

/// Keys with their accounts.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Their texts, for requests.
    pub texts: Arc<[Box<str>]>,
    series: &'static str,
}

/// What a program other than the gate needs to know of a key.
pub struct Known {
    /// The key's hash.
    pub hash: KeyHash,
    /// Its public name.
    pub key: KeyId,
    /// Its account.
    pub account: String,
}

impl Keys {
    /// `count` keys of accounts whose names begin with `series`; two series have no key in common.
    pub fn new(series: &'static str, count: usize) -> Self {
        let text = |number| key(series, number).expose().into();
        Self {
            texts: (0..count).map(text).collect(),
            series,
        }
    }

    /// The keys as they stand in a directory.
    pub fn entries(&self, plan: &str) -> impl Iterator<Item = Entry> {
        let plan: water_domain::PlanName = plan.parse().expect("the plan's name is one");
        self.known().map(move |known| Entry {
            owner: owner(&known.account),
            origin: Origin::Generated,
            hash: known.hash,
            record: Record {
                key_id: known.key,
                account: known
                    .account
                    .parse()
                    .expect("letters and digits are an account"),
                plan: plan.clone(),
                state: KeyState::Active,
                not_before: None,
                expires: None,
                retires: None,
                revision: 1,
            },
        })
    }

    /// What a reference that does the gate's work is told of each key.
    pub fn known(&self) -> impl Iterator<Item = Known> {
        let prefix = KeyPrefix::default();
        self.texts.iter().enumerate().map(move |(number, text)| {
            let key = PlainKey::parse(text.as_bytes(), &prefix).expect("a made key is a key");
            Known {
                hash: key.hash(),
                key: key.key_id(),
                account: format!("{}-{number}", self.series),
            }
        })
    }
}

/// An ApiKey for each key.
fn owner(account: &str) -> Owner {
    Owner {
        uid: account.into(),
        namespace: "water".into(),
        name: account.into(),
    }
}

fn key(series: &str, number: usize) -> PlainKey<'static> {
    let mut random = [0; 48];
    for (place, byte) in random[..12].iter_mut().zip(series.bytes()) {
        *place = byte;
    }
    random[12..16].copy_from_slice(&(number as u32).to_be_bytes());
    random[40..].copy_from_slice(&(number as u64).to_be_bytes());
    PlainKey::generate(&KeyPrefix::default(), &random)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_keys_and_no_two_accounts_are_equal() {
        let (one, other) = (Keys::new("one", 500), Keys::new("other", 500));
        let known: Vec<Known> = one.known().chain(other.known()).collect();
        let hashes: HashSet<KeyHash> = known.iter().map(|known| known.hash).collect();
        let ids: HashSet<&str> = known.iter().map(|known| known.key.as_str()).collect();
        let accounts: HashSet<&str> = known.iter().map(|known| &*known.account).collect();
        assert_eq!([hashes.len(), ids.len(), accounts.len()], [1_000; 3]);
    }
}

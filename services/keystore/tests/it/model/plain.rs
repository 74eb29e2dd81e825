//! Model of the directory: the meaning of a declaration, without scripts, indexes and shards.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::{KeyHash, Timestamp};
use water_keystore::{Counts, Declaration, Origin, Owner, Record};

/// The account whose tombstones each ApiKey leaves; `*` for generated keys.
pub const ORIGINS: [&str; 4] = ["*", "acme", "other", "acme"];

pub fn origin(owner: usize) -> Origin {
    match ORIGINS[owner] {
        "*" => Origin::Generated,
        account => Origin::Brought(account.parse().unwrap()),
    }
}

/// Declaration of an ApiKey; hashes are numbers.
#[derive(Clone, Debug)]
pub struct Said {
    /// Held hashes, each with whether it is suspended.
    pub held: BTreeMap<usize, bool>,
    pub withdrawn: BTreeSet<usize>,
    pub revoked: BTreeSet<usize>,
    /// Account whose tombstone is lifted, by hash; where it has none, the declaration names a time that no tombstone
    /// has.
    pub lifted: BTreeMap<usize, &'static str>,
    pub is_last: bool,
    /// Whether it was decided on an earlier state.
    pub is_stale: bool,
}

/// Result of a step.
#[derive(PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Carried out; each refused hash with whether another ApiKey holds it.
    Done(BTreeMap<usize, bool>),
    /// Everything was written except these hashes.
    Rebuilt(BTreeSet<usize>),
    /// Refused as stale: the directory has this number.
    Outdated(u64),
    Gone,
}

/// Observable state of the directory. Lists are by ApiKey.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    pub records: Vec<BTreeMap<usize, bool>>,
    pub barred: Vec<BTreeMap<usize, i64>>,
    pub taken: Vec<BTreeSet<usize>>,
    pub gone: Vec<bool>,
    pub numbers: Vec<u64>,
    /// Tombstones of the keys, by hash and account.
    pub tombstones: BTreeMap<usize, BTreeMap<String, i64>>,
    pub counts: Counts,
    pub seq: u64,
    pub generation: u64,
    /// Redis' time, which is not compared.
    pub now: i64,
}

/// Model of the directory.
#[derive(Default)]
pub struct Plain {
    /// ApiKey and state of each hash that is published.
    records: BTreeMap<usize, (usize, bool)>,
    /// Tombstones, by hash and account.
    tombstones: BTreeMap<usize, BTreeMap<String, i64>>,
    /// ApiKeys that have declared something, with their numbers.
    numbers: BTreeMap<usize, u64>,
    gone: BTreeSet<usize>,
    seq: u64,
    generation: u64,
    /// Time at which the last declaration had been carried out.
    now: i64,
}

impl Plain {
    /// An empty directory.
    pub fn new(seen: &Facts) -> Self {
        Self {
            seq: seen.seq,
            generation: seen.generation,
            now: seen.now,
            ..Self::default()
        }
    }

    /// Declaration that the directory is given for `said`.
    pub fn declaration(
        &self,
        owner: usize,
        said: &Said,
        owned_by: Owner,
        hash: impl Fn(usize) -> KeyHash,
        record: impl Fn(bool) -> Record,
    ) -> Declaration {
        let lifted = said.lifted.iter().map(|(number, account)| {
            let time = Timestamp::from_millis(self.time_lifted(*number, account));
            (hash(*number), time.unwrap())
        });
        Declaration {
            owner: owned_by,
            number: self.number_of(owner) + u64::from(said.is_stale),
            records: said
                .held
                .iter()
                .map(|(number, state)| (hash(*number), record(*state)))
                .collect(),
            withdrawn: said.withdrawn.iter().map(|number| hash(*number)).collect(),
            revoked: said.revoked.iter().map(|number| hash(*number)).collect(),
            reinstated: lifted.collect(),
            origin: origin(owner),
            is_last: said.is_last,
        }
    }

    fn time_lifted(&self, hash: usize, account: &str) -> i64 {
        let times = self.tombstones.get(&hash);
        times
            .and_then(|times| times.get(account))
            .map_or(1, |time| *time)
    }

    /// Carries a declaration out; the times of its new tombstones are taken from `seen`.
    pub fn declare(&mut self, owner: usize, said: &Said, seen: &Facts) -> Outcome {
        if self.gone.contains(&owner) {
            return Outcome::Gone;
        }
        if said.is_stale {
            return Outcome::Outdated(self.number_of(owner));
        }
        let before = (self.records.clone(), self.tombstones.clone());
        let mut refused = BTreeMap::new();
        let mut holds = BTreeMap::new();
        for (&hash, &state) in said.held.iter().filter(|_| !said.is_last) {
            if let Some(account) = said.lifted.get(&hash) {
                self.lift(owner, hash, self.time_lifted(hash, account));
            }
            let is_taken = self.holder(hash).is_some_and(|holder| holder != owner);
            if is_taken || self.barring(owner, hash).is_some() {
                refused.insert(hash, is_taken);
            } else {
                holds.insert(hash, state);
            }
        }
        let had: BTreeSet<usize> = self.held_by(owner).into_keys().collect();
        let dropped = had.iter().copied().filter(|hash| !holds.contains_key(hash));
        let named = said.held.keys().filter(|_| said.is_last).copied();
        let revoked: BTreeSet<usize> = dropped
            .chain(named)
            .filter(|hash| !said.withdrawn.contains(hash))
            .chain(said.revoked.iter().copied())
            .collect();
        for hash in revoked {
            let is_taken = self.holder(hash).is_some_and(|holder| holder != owner);
            if !is_taken && self.barring(owner, hash).is_none() {
                // Only Redis knows the time.
                let account = ORIGINS[owner];
                let times = seen.tombstones.get(&hash);
                let time = times.and_then(|times| times.get(account)).copied();
                let time = time.unwrap_or_default();
                assert!((self.now..=seen.now).contains(&time), "{hash} {time}");
                let times = self.tombstones.entry(hash).or_default();
                times.insert(account.into(), time);
            }
        }
        self.records.retain(|_, (holder, _)| *holder != owner);
        for (&hash, &state) in &holds {
            self.records.insert(hash, (owner, state));
        }
        self.seq += changes(&before.0, &self.records);
        if said.is_last {
            self.numbers.remove(&owner);
            self.gone.insert(owner);
        } else if before != (self.records.clone(), self.tombstones.clone()) {
            let number = self.numbers.entry(owner).or_default();
            *number = self.generation.max(*number) + 1;
        }
        self.now = seen.now;
        Outcome::Done(refused)
    }

    /// Rebuilds the directory; generation and seq are taken from `seen`.
    pub fn rebuild(&mut self, owners: &BTreeMap<usize, usize>, seen: &Facts) -> Outcome {
        let is_barred = |(hash, owner): &(usize, usize)| {
            self.barring(*owner, *hash).is_some() || self.gone.contains(owner)
        };
        let wanted = owners.iter().map(|(hash, owner)| (*hash, *owner));
        let (barred, written): (Vec<_>, Vec<_>) = wanted.partition(is_barred);
        self.records = written
            .into_iter()
            .map(|(hash, owner)| (hash, (owner, false)))
            .collect();
        assert!(seen.generation > self.generation && seen.seq > self.seq);
        (self.generation, self.seq) = (seen.generation, seen.seq);
        let left = self.records.values();
        self.numbers = left.map(|(owner, _)| (*owner, seen.generation)).collect();
        Outcome::Rebuilt(barred.into_iter().map(|(hash, _)| hash).collect())
    }

    /// Expected facts.
    pub fn facts(&self, seen: &Facts) -> Facts {
        let owners = 0..ORIGINS.len();
        let hashes: BTreeSet<usize> = (0..super::HASHES).collect();
        let barred = |owner| {
            let times = hashes
                .iter()
                .map(|hash| (*hash, self.barring(owner, *hash)));
            times
                .filter_map(|(hash, time)| Some((hash, time?)))
                .collect()
        };
        let taken = |owner| {
            let others = self
                .records
                .iter()
                .filter(|(_, (holder, _))| *holder != owner);
            others.map(|(hash, _)| *hash).collect()
        };
        let records = self.records.len() as u64;
        Facts {
            records: owners.clone().map(|owner| self.held_by(owner)).collect(),
            barred: owners.clone().map(barred).collect(),
            taken: owners.clone().map(taken).collect(),
            gone: owners
                .clone()
                .map(|owner| self.gone.contains(&owner))
                .collect(),
            numbers: owners.map(|owner| self.number_of(owner)).collect(),
            tombstones: self.tombstones.clone(),
            counts: Counts {
                records,
                owners: records,
                held: self.numbers.len() as u64,
                revoked: (self.tombstones.len() + self.gone.len()) as u64,
            },
            seq: self.seq,
            generation: self.generation,
            now: seen.now,
        }
    }

    fn number_of(&self, owner: usize) -> u64 {
        self.numbers.get(&owner).copied().unwrap_or_default()
    }

    fn holder(&self, hash: usize) -> Option<usize> {
        self.records.get(&hash).map(|(owner, _)| *owner)
    }

    fn held_by(&self, owner: usize) -> BTreeMap<usize, bool> {
        let records = self
            .records
            .iter()
            .filter(|(_, (holder, _))| *holder == owner);
        records.map(|(hash, (_, state))| (*hash, *state)).collect()
    }

    /// Latest time of a tombstone that bars the hash for this ApiKey.
    fn barring(&self, owner: usize, hash: usize) -> Option<i64> {
        let times = self.tombstones.get(&hash)?;
        let bars = |account: &str| account == "*" || account == ORIGINS[owner];
        let times = times.iter().filter(|(account, _)| bars(account));
        times.map(|(_, time)| *time).max()
    }

    /// Lifts the tombstones of this time: both, where two share it.
    fn lift(&mut self, owner: usize, hash: usize, time: i64) {
        if let Some(times) = self.tombstones.get_mut(&hash) {
            times.retain(|account, at| {
                *at != time || (*account != "*" && *account != ORIGINS[owner])
            });
            if times.is_empty() {
                self.tombstones.remove(&hash);
            }
        }
    }
}

/// Number of records that were added, removed or changed.
fn changes<T: PartialEq>(before: &BTreeMap<usize, T>, after: &BTreeMap<usize, T>) -> u64 {
    let hashes: BTreeSet<&usize> = before.keys().chain(after.keys()).collect();
    let differs = |hash: &&&usize| before.get(**hash) != after.get(**hash);
    hashes.iter().filter(differs).count() as u64
}

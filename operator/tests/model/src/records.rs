//! Hashes, records and time, each in as few bits as the model needs.

use std::time::Duration;

use water_domain::Timestamp;
use water_operator_core::key::facts::KeyRules;

/// Keys that there may be.
pub const KEYS: usize = 2;
/// Hashes that each of them may ever have.
pub const SLOTS: usize = 4;
/// Time passes by this much at once: an overlap, and as long as a reissue counts.
pub const TICK: Duration = Duration::from_secs(600);

/// A set of hashes: four of the first key, then four of the second.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hashes(pub u8);

impl Hashes {
    pub fn one(hash: u8) -> Self {
        Self(1 << hash)
    }

    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn has(self, hash: u8) -> bool {
        self.0 & (1 << hash) != 0
    }

    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..8).filter(move |hash| self.has(*hash))
    }

    pub fn swapped(self) -> Self {
        Self(self.0.rotate_left(SLOTS as u32))
    }
}

impl FromIterator<u8> for Hashes {
    fn from_iter<I: IntoIterator<Item = u8>>(hashes: I) -> Self {
        let one = |all: Self, hash| all.and(Self::one(hash));
        hashes.into_iter().fold(Self::default(), one)
    }
}

/// Terms of a hash at a gate, and its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    pub owner: u8,
    pub suspended: bool,
    /// Tick at which it is refused.
    pub retires: Option<u8>,
}

impl Record {
    pub fn rules(&self) -> KeyRules<()> {
        KeyRules {
            plan: (),
            suspended: self.suspended,
            not_before: None,
            expires: None,
            retires: self.retires.map(at),
        }
    }

    pub fn new(owner: u8, rules: &KeyRules<()>) -> Self {
        Self {
            owner,
            suspended: rules.suspended,
            retires: rules.retires.map(tick),
        }
    }

    pub fn is_retired(&self, now: u8) -> bool {
        self.retires.is_some_and(|retires| retires <= now)
    }
}

/// A record of each hash that has one, in a byte: present, suspended, owner, and when it retires.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Records(pub [u8; KEYS * SLOTS]);

impl Records {
    pub fn get(&self, hash: u8) -> Option<Record> {
        let byte = self.0[usize::from(hash)];
        (byte & 1 != 0).then_some(Record {
            owner: byte >> 2 & 1,
            suspended: byte & 2 != 0,
            retires: (byte >> 3).checked_sub(1),
        })
    }

    pub fn put(&mut self, hash: u8, record: Record) {
        let retires = record.retires.map_or(0, |retires| retires + 1);
        self.0[usize::from(hash)] =
            1 | u8::from(record.suspended) << 1 | record.owner << 2 | retires << 3;
    }

    pub fn remove(&mut self, hash: u8) {
        self.0[usize::from(hash)] = 0;
    }

    pub fn iter(&self) -> impl Iterator<Item = (u8, Record)> {
        (0..8).filter_map(|hash| Some((hash, self.get(hash)?)))
    }

    /// Records of one key.
    pub fn owned_by(&self, owner: usize) -> impl Iterator<Item = (u8, Record)> {
        let is_its = move |(_, record): &(u8, Record)| usize::from(record.owner) == owner;
        self.iter().filter(is_its)
    }

    pub fn swapped(mut self) -> Self {
        self.0.rotate_left(SLOTS);
        for byte in &mut self.0 {
            *byte ^= (*byte & 1) << 2;
        }
        self
    }
}

pub fn at(tick: u8) -> Timestamp {
    Timestamp::from_millis(0)
        .expect("1970 is a time")
        .plus(TICK * u32::from(tick))
}

pub fn tick(time: Timestamp) -> u8 {
    (time.as_millis() / TICK.as_millis() as i64) as u8
}

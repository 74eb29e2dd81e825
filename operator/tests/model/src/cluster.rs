//! State of an ApiKey at the API server: the object, its status and its Secret.

use water_operator_core::key::ledger::Ledger;

use crate::records::{Hashes, SLOTS, at, tick};

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    #[default]
    Absent,
    Declared,
    /// The object has a deletion timestamp.
    Deleting,
    Gone,
}

/// Declaration of the owner.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spec {
    pub suspended: bool,
    /// The hash that is brought along; `None`: the operator makes the key.
    pub brought: Option<u8>,
    pub revision: u8,
}

/// Admission of keys by the WaterDataApi, as it is and as statuses report it.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Admits {
    #[default]
    Yes,
    /// The plan is missing, or the WaterDataApi.
    Hindered,
    /// The namespace is not admitted.
    No,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Status {
    /// Whether it names the WaterDataApi.
    pub named: bool,
    /// Whether somebody else has written the name of one that does not exist in its place.
    pub misnamed: bool,
    pub current: Option<u8>,
    /// Whether the current key was in force: its owner can have it.
    pub shown: bool,
    /// Announced besides, and never in force.
    pub unrevealed: Hashes,
    /// The key before, and the tick at which it retires.
    pub previous: Option<(u8, u8)>,
    /// Whether it reports of the present spec that every gate judges the key by it.
    pub told: bool,
    pub admits: Admits,
    /// Whether the Secret is said to be somebody else's.
    pub conflict: bool,
}

impl Status {
    pub fn revealed(&self) -> Hashes {
        let current = self.current.filter(|_| self.shown);
        current
            .into_iter()
            .chain(self.previous.map(|(hash, _)| hash))
            .collect()
    }

    pub fn all(&self) -> Hashes {
        let current: Hashes = self.current.into_iter().collect();
        current.and(self.revealed()).and(self.unrevealed)
    }

    /// The keys that it names.
    pub fn ledger(&self) -> Ledger<u8> {
        Ledger {
            current: self.current,
            is_shown: self.shown,
            retiring: self.previous.map(|(hash, retires)| (hash, at(retires))),
            candidates: self.unrevealed.iter().collect(),
        }
    }

    /// Returns the status with the keys of this ledger.
    pub fn naming(self, ledger: &Ledger<u8>) -> Self {
        Self {
            current: ledger.current,
            shown: ledger.is_shown,
            unrevealed: ledger.candidates.iter().copied().collect(),
            previous: ledger.retiring.map(|(hash, at)| (hash, tick(at))),
            ..self
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Object {
    pub phase: Phase,
    /// Whether it carries the finalizer.
    pub finalizer: bool,
    pub spec: Spec,
    pub status: Status,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Secret {
    #[default]
    Missing,
    Own {
        hash: u8,
        /// The key that was in it before, and the tick at which it retires.
        retiring: Option<(u8, u8)>,
        /// Somebody changed the text.
        is_edited: bool,
    },
    Foreign,
}

/// An ApiKey and its Secret.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    pub object: Object,
    pub secret: Secret,
    /// Number of keys that were drawn for it.
    pub issued: u8,
    /// Flags by slot, which say whether revision 1 asked for the key.
    pub revisions: u8,
    /// Whether the API server refuses what is written of the ApiKey.
    pub refused: bool,
    /// Whether somebody took its Secret or its admission away, and no status has reported since a key in force.
    pub disturbed: bool,
    /// Whether its admission was taken away, and no status has reported since a key in force.
    pub withdrawn: bool,
}

impl Key {
    pub fn revision_of(&self, hash: u8) -> u8 {
        self.revisions >> (usize::from(hash) % SLOTS) & 1
    }

    pub fn is_declared(&self) -> bool {
        self.object.phase == Phase::Declared
    }

    /// The object is gone, and its Secret is collected.
    pub fn end(&mut self) {
        *self = Self::default();
        self.object.phase = Phase::Gone;
    }
}

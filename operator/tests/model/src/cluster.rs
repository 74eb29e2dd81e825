//! What the API server holds of an ApiKey: the object, its status and its Secret.

use crate::records::{Hashes, SLOTS};

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    #[default]
    Absent,
    Declared,
    /// It has a deletion timestamp.
    Deleting,
    Gone,
}

/// What the owner declares.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spec {
    pub suspended: bool,
    /// The hash that is brought along; `None`: the operator makes the key.
    pub brought: Option<u8>,
    pub revision: u8,
}

/// Whether the WaterDataApi admits keys, as it is and as statuses tell it.
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
    /// It names the WaterDataApi.
    pub named: bool,
    pub current: Option<u8>,
    /// The current key was in force: its owner can have it.
    pub shown: bool,
    /// Announced besides, and never in force.
    pub unrevealed: Hashes,
    /// The key before, and the tick at which it retires.
    pub previous: Option<(u8, u8)>,
    /// It says of the present spec that every gate judges the key by it.
    pub told: bool,
    pub admits: Admits,
    /// The Secret is said to be somebody else's.
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

    /// As `act::announced` writes it.
    pub fn announcing(mut self, hash: u8) -> Self {
        self.named = true;
        let latest = if self.shown {
            Some(hash)
        } else {
            self.current.replace(hash)
        };
        let current = self.current.into_iter().collect();
        let latest: Hashes = latest.into_iter().collect();
        self.unrevealed = self.unrevealed.and(latest).without(current);
        self
    }

    /// As `act::retired` writes it.
    pub fn retiring(mut self, hash: u8, at: u8, brought: Option<u8>) -> Self {
        let before = self.previous.replace((hash, at));
        let again = before.map(|(before, _)| before);
        let again = again.filter(|before| Some(*before) == brought);
        self.unrevealed = self.unrevealed.and(again.into_iter().collect());
        self
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Object {
    pub phase: Phase,
    /// It carries the finalizer and the label.
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
    /// How many keys were drawn for it.
    pub issued: u8,
    /// By slot, whether revision 1 asked for the key.
    pub revisions: u8,
    /// Somebody took its Secret or its admission away, and no status has told since of a key in force.
    pub disturbed: bool,
    /// Its admission was taken away, and no status has told since of a key in force.
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

//! What a leader knows and is about to do.

use crate::cluster::{Object, Secret, Status};
use crate::records::{KEYS, Records};
use crate::store::{Applied, Declaration};

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Leader {
    /// The Lease names it.
    pub holds: bool,
    /// It believes that it leads.
    pub leading: bool,
    /// The term that it claimed; 0: none.
    pub term: u8,
    pub claim: Claim,
    /// It has listed everything since its first claim.
    pub has_listed: bool,
    /// What its watches show while they stand still.
    pub cache: Option<Cache>,
    /// For each key, what its memory holds.
    pub memory: [Memory; KEYS],
    /// A write that a pass has decided on and that stands still.
    pub hand: Option<Hand>,
}

/// How far it has come with its claim of the directory.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Claim {
    #[default]
    None,
    Claimed,
    /// A rebuild with these contents has begun.
    Rebuilding(Records),
    /// The Lease, read again, is its own, and the directory is whole: passes may write.
    Open,
}

/// Objects and Secrets as they were.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cache {
    pub objects: [Object; KEYS],
    pub secrets: [Secret; KEYS],
}

/// `keys::memory` and `directories::pending`, of one key.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Memory {
    /// The key that was made and not revealed.
    pub made: Option<u8>,
    /// Somebody else wrote its Secret first: the API server is asked.
    pub is_overtaken: bool,
    pub note: Option<Note>,
}

/// What gates are waited for to acknowledge, or have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Note {
    pub mark: Mark,
    pub seq: u8,
    pub in_force: bool,
}

/// `directories::pending::DeclarationId`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mark {
    pub generation: u8,
    pub number: u8,
    pub is_last: bool,
}

impl Note {
    pub fn applied(&self) -> Applied {
        Applied {
            generation: self.mark.generation,
            seq: self.seq,
        }
    }
}

/// A write that was decided on, and whether what it was decided by is still as it was read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hand {
    pub key: u8,
    pub write: Write,
    pub is_object_as_read: bool,
    pub is_secret_as_read: bool,
}

/// One request to Redis or to the API server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Write {
    Finalize,
    Announce(u8),
    /// The end of a brought hash, a tick.
    Retire(u8, u8),
    Declare(Declaration),
    /// A key, and the one that it replaces with the tick at which that retires.
    Reveal(u8, Option<(u8, u8)>),
    Replace(u8, Option<(u8, u8)>),
    Release,
    Report(Status),
}

impl Leader {
    /// All but a write that is under way is forgotten.
    pub fn end(&mut self) {
        *self = Self {
            hand: self.hand,
            ..Self::default()
        };
    }

    pub fn give_up_claim(&mut self) {
        self.term = 0;
        self.claim = Claim::None;
    }
}

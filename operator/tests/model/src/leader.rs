//! Knowledge of a leader, and its next write.

use water_operator_core::store_names::StoreNames;

use crate::cluster::{Object, Secret, Status};
use crate::records::{KEYS, Records};
use crate::store::{Applied, Declaration};

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Leader {
    /// Whether the Lease names it.
    pub holds: bool,
    /// Whether it believes that it leads.
    pub leading: bool,
    /// Redis in which its directory is open.
    pub open: Option<u8>,
    /// Whether the directory may have missed changes, and this leader has not rebuilt it.
    pub is_behind: bool,
    /// The term that it claimed; 0: none.
    pub term: u8,
    pub claim: Claim,
    /// Whether it has listed everything since its first claim.
    pub has_listed: bool,
    /// Objects that its watches show while they halt.
    pub cache: Option<Cache>,
    /// Memory for each key.
    pub memory: [Memory; KEYS],
    /// A write that a pass has decided on and that is halted.
    pub hand: Option<Hand>,
    /// A pass over the WaterDataApi that is halted after its decision.
    pub naming: Option<Naming>,
}

/// Progress of its claim of the directory.
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

/// Objects and Secrets as they were, and the WaterDataApi's status.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cache {
    pub objects: [Object; KEYS],
    pub secrets: [Secret; KEYS],
    pub names: StoreNames<u8>,
}

/// `keys::memory` and `directories::pending`, of one key.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Memory {
    /// The key that was made and not revealed.
    pub made: Option<u8>,
    /// Whether somebody else wrote its Secret first: the API server is asked.
    pub is_overtaken: bool,
    pub note: Option<Note>,
}

/// Declaration that gates are waited for to acknowledge, or have.
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

/// Decision of a pass over the WaterDataApi.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Naming {
    /// Names to be written; `None`: the status has them.
    pub names: Option<StoreNames<u8>>,
    /// Redis in which the directory is opened then, and whether that is behind.
    pub opens: Option<(u8, bool)>,
    /// Whether the status is still as it was read.
    pub is_as_read: bool,
}

/// Request to Redis or to the API server.
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
    /// Forgets everything but writes that are under way.
    pub fn end(&mut self) {
        *self = Self {
            hand: self.hand,
            naming: self.naming,
            ..Self::default()
        };
    }

    /// Opens the directory in a Redis, and leaves the one that was open.
    pub fn open(&mut self, store: u8, is_behind: bool) {
        self.give_up_claim();
        (self.open, self.is_behind) = (Some(store), is_behind);
        self.has_listed = false;
        for memory in &mut self.memory {
            memory.note = None;
        }
    }

    pub fn give_up_claim(&mut self) {
        self.term = 0;
        self.claim = Claim::None;
    }
}

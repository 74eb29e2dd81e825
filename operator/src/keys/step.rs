//! What a pass decides: the state of the ApiKey, and the next write.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::Timestamp;

use super::seen::KeyRules;

/// The next step: one write. The next pass reads what it has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<H, P> {
    /// Add the finalizer and the account's label, in one write.
    Finalize,
    /// Draw a key's text, which stays in memory.
    Make,
    /// Name a hash and the WaterDataApi in the status.
    Announce {
        /// The hash.
        hash: H,
        /// Whether the Secret was deleted or edited, which is counted.
        is_reissue: bool,
    },
    /// Name in the status from when on a brought hash is refused that is being replaced. A directory that
    /// is rebuilt ends it then, too.
    Retire {
        /// The hash.
        hash: H,
        /// By Redis' clock.
        at: Timestamp,
    },
    /// Declare what the directory shall hold.
    Declare(Declaration<H, P>),
    /// Create the Secret with the text of a key.
    Reveal(Handover<H>),
    /// Write the text of a key over the Secret that was read.
    Replace(Handover<H>),
    /// Bring labels, annotations, owner and base URL of the Secret that was read up to date; its text
    /// stays.
    Amend,
    /// Remove the finalizer.
    Release(Release),
}

/// A key that is handed to its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handover<H> {
    /// The key.
    pub hash: H,
    /// The key that it takes the place of, and from when on that is refused.
    pub retiring: Option<(H, Timestamp)>,
}

/// Everything that the directory shall hold of one ApiKey.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration<H, P> {
    /// The number that was read.
    pub number: u64,
    /// Keys that the gates shall know.
    pub records: BTreeMap<H, KeyRules<P>>,
    /// Keys whose removal leaves no tombstone.
    pub withdrawn: BTreeSet<H>,
    /// Keys to revoke although the directory may not hold them.
    pub revoked: BTreeSet<H>,
    /// Tombstones to lift, each by its time.
    pub reinstated: BTreeMap<H, Timestamp>,
    /// The ApiKey is being deleted.
    pub is_last: bool,
}

/// Why a finalizer may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// No gate accepts any of its keys, and none will.
    Revoked,
    /// Nothing was ever declared.
    NeverDeclared,
    /// The directory cannot be reached any more, and no gate is left.
    Unreachable,
}

/// How an ApiKey stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict<H> {
    /// Every gate judges this key as it is declared.
    InForce(H),
    /// A step is to be taken.
    Underway,
    /// Gates have not acknowledged what was declared.
    Awaiting,
    /// Something hinders that passes by itself.
    Held(Hindrance),
    /// Somebody has to do something.
    Refused(Refusal),
    /// The finalizer is gone: nothing is left to do.
    Released,
}

/// What passes by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hindrance {
    /// The directory cannot be read or written.
    Directory,
    /// The namespace is being deleted: nothing is created in it.
    Terminating,
    /// The Secret of an ApiKey of the same name that was deleted is not collected yet.
    SecretRemains,
    /// The WaterDataApi is gone, and gates of it still run.
    GatesRemain,
}

/// What somebody has to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The object cannot be decoded.
    Undecodable,
    /// No WaterDataApi admits the key.
    NotAdmitted,
    /// The Secret's name is taken.
    SecretConflict,
    /// The API server does not accept the Secret; its words.
    SecretRejected(String),
    /// The key was revoked at this time.
    Revoked(Timestamp),
    /// The ApiKey was deleted before, and came back under its old uid.
    OwnerRevoked,
    /// Another ApiKey holds the hash, or has the key id.
    Taken,
    /// The Secret was gone or changed too often; another key is issued at this time.
    ReissueLimit(Timestamp),
}

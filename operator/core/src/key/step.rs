//! Outcomes of a decision: the state of the ApiKey, and the next write.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::Timestamp;

use super::facts::{Issue, KeyRules};

/// Part of the cluster that [`Step::Amend`] writes, as messages name it.
pub const METADATA: &str = "the labels, annotations or owners of the ApiKey's Secret";

/// Part of the cluster that shows how an ApiKey stands, as messages name it.
pub const STATUS: &str = "the status of the ApiKey";

/// Decision about an ApiKey.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision<H, P> {
    /// Take this step.
    Do(Step<H, P>),
    /// Report this state: nothing is to be written.
    Report(Verdict<H>),
}

/// The next step: one write. The next pass reads what it has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<H, P> {
    /// Add the finalizer.
    Finalize,
    /// Draw the text of a key that is issued so; it stays in memory.
    Make(Issue),
    /// Name a hash and the WaterDataApi in the status.
    Announce {
        /// The hash.
        hash: H,
        /// Time of a reissue, which is counted: the Secret was deleted or edited.
        reissued: Option<Timestamp>,
    },
    /// Name in the status from when on a brought hash is refused that is being replaced. A directory that
    /// is rebuilt ends it then, too.
    Retire {
        /// The hash.
        hash: H,
        /// Time by Redis' clock.
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

impl<H, P> Decision<H, P> {
    /// Step, if there is one to take.
    pub fn step(self) -> Option<Step<H, P>> {
        match self {
            Self::Do(step) => Some(step),
            Self::Report(_) => None,
        }
    }
}

impl<H, P> Step<H, P> {
    /// Whether it may restrict a key. Such a step is neither counted nor delayed.
    pub fn restricts(&self) -> bool {
        matches!(self, Self::Declare(_))
    }

    /// Part of the cluster that the step writes, as messages name it.
    pub fn written(&self) -> Option<&'static str> {
        match self {
            Self::Make(_) | Self::Declare(_) => None,
            Self::Finalize | Self::Release(_) => {
                Some("the finalizer waterdata.dev/revoke of the ApiKey")
            }
            Self::Announce { .. } | Self::Retire { .. } => Some(STATUS),
            Self::Reveal(_) | Self::Replace(_) => Some("the Secret of the ApiKey"),
            Self::Amend => Some(METADATA),
        }
    }
}

/// A key that is handed to its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handover<H> {
    /// The key.
    pub hash: H,
    /// Key that it replaces, and the time from which that is refused.
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

/// Reason for which a finalizer may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// No gate accepts any of its keys, and none will.
    Revoked,
    /// Nothing was ever declared.
    NeverDeclared,
    /// The directory cannot be reached any more, and no gate is left.
    Unreachable,
}

/// State of an ApiKey.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict<H> {
    /// Every gate judges this key as it is declared.
    InForce(H),
    /// Gates have not acknowledged what was declared.
    Awaiting,
    /// An obstacle passes by itself.
    Held(Hindrance),
    /// Somebody has to do something.
    Refused(Refusal),
    /// The finalizer is gone: nothing is left to do.
    Released,
}

/// Obstacle that passes by itself.
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

/// Obstacle that somebody has to remove.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The object cannot be decoded.
    Undecodable,
    /// No WaterDataApi admits the key.
    NotAdmitted,
    /// The Secret's name is taken.
    SecretConflict,
    /// The Secret that it shall have is of an ApiKey that is gone, and is not adopted.
    NotAdopted,
    /// The API server does not accept the Secret; its words.
    SecretRejected(String),
    /// Another controller or a webhook undoes writes of this part of the cluster.
    WriteConflict(&'static str),
    /// The key was revoked at this time.
    Revoked(Timestamp),
    /// The ApiKey was deleted before, and came back under its old uid.
    OwnerRevoked,
    /// Another ApiKey holds the hash, or has the key id.
    Taken,
    /// The Secret was gone or changed too often; another key is issued at this time.
    ReissueLimit(Timestamp),
}

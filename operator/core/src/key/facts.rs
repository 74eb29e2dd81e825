//! Facts that a pass over an ApiKey decides by: small values without clients, texts or Kubernetes' types,
//! so that an exhaustive model can make them. `H` names a key by its hash, `P` a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use water_domain::Timestamp;

use super::ledger::Ledger;

/// All that a pass knows of one ApiKey, read once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts<H, P> {
    /// Whether the ApiKey has a deletion timestamp.
    pub is_deleting: bool,
    /// Whether it carries the finalizer.
    pub has_finalizer: bool,
    /// Whether its namespace is being deleted. Read only before a key is made.
    pub is_terminating: bool,
    /// Declaration of its owner; `None`: the object cannot be decoded.
    pub spec: Option<Spec<H, P>>,
    /// Restrictions that can be read, decoded or not.
    pub restrictions: Restrictions<H>,
    /// Every hash that spec, status and Secret name.
    pub named: BTreeSet<H>,
    /// Keys that the status names.
    pub ledger: Ledger<H>,
    /// Issue of the current key; `None` without one.
    pub issue: Option<Issue>,
    /// Times at which keys were last issued because the Secret was gone or changed.
    pub reissues: Vec<Timestamp>,
    /// Answer of the WaterDataApi.
    pub admission: Admission,
    /// Plans that the declared plan does not exceed in any limit.
    pub wider_plans: BTreeSet<P>,
    /// Object under the name of its Secret.
    pub secret: Secret<H>,
    /// The key that this leader has made for it, for the declared revision, and not revealed.
    pub made: Option<H>,
    /// Whether another ApiKey of the WaterDataApi has the public name that it declares for its key.
    pub is_id_taken: bool,
    /// Content of the key directory.
    pub directory: Directory<H, P>,
}

/// Declaration of an ApiKey.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec<H, P> {
    /// Terms of each of its keys.
    pub rules: KeyRules<P>,
    /// Origin of its key.
    pub material: Material<H>,
    /// Times at which its key is replaced.
    pub rotation: Rotation,
    /// The time of the tombstone that the owner asks to lift, for the brought hash.
    pub reinstate: Option<Timestamp>,
}

/// Restrictions that an ApiKey puts on its keys.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Restrictions<H> {
    /// Whether they are refused until the ApiKey is resumed.
    pub suspended: bool,
    /// Time from which they are refused.
    pub expires: Option<Timestamp>,
    /// Hash that is brought along and replaces every other, and the time for which the one before it works on.
    pub brought: Option<(H, Duration)>,
}

/// Times at which an ApiKey's key is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// A key of an earlier revision is replaced.
    pub revision: u32,
    /// A key of this age is replaced.
    pub period: Option<Duration>,
    /// Time for which the replaced key works beside its successor.
    pub overlap: Duration,
}

/// Origin of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Material<H> {
    /// The operator makes it.
    Generated,
    /// Hash that its owner brought.
    Brought(H),
}

/// Terms on which the gates judge one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRules<P> {
    /// The plan whose limits it has.
    pub plan: P,
    /// Whether it is refused until it is resumed.
    pub suspended: bool,
    /// Time before which it is refused.
    pub not_before: Option<Timestamp>,
    /// Time from which it is refused.
    pub expires: Option<Timestamp>,
    /// Time from which it is refused since it was replaced.
    pub retires: Option<Timestamp>,
}

impl<H, P> Facts<H, P> {
    /// Revision that asked for the current key; 0 without one.
    pub fn revision(&self) -> u32 {
        self.issue.map_or(0, |issue| issue.revision)
    }
}

impl<H: Copy + Ord, P> Facts<H, P> {
    /// Keys that the status names once this one is in force.
    pub fn confirmed(&self, hash: H) -> Ledger<H> {
        Ledger::confirm(hash, self.previous(&hash))
    }

    /// Key that works beside this one, and the time from which it is refused.
    pub fn previous(&self, hash: &H) -> Option<(H, Timestamp)> {
        let Directory::Open(directory) = &self.directory else {
            return None;
        };
        let mut others = directory.held.iter().filter(|(other, _)| *other != hash);
        others.find_map(|(other, held)| {
            let retires = held.as_ref()?.retires?;
            self.named.contains(other).then_some((*other, retires))
        })
    }
}

/// Record of how a key is issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issue {
    /// Revision that asked for it.
    pub revision: u32,
    /// Time of it, by Redis' clock.
    pub time: Timestamp,
}

/// Answer of a WaterDataApi to an ApiKey.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Keys are published.
    Admitted,
    /// Something is missing that may come back, such as the plan: published keys stay, with
    /// every restriction.
    Hindered,
    /// Keys are not admitted: published ones are withdrawn.
    Refused,
}

/// Object under the name of an ApiKey's Secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Secret<H> {
    /// Nothing; also for a brought key, which needs none.
    Missing,
    /// The ApiKey's own, with the text of the key that its annotations name.
    Own(Content<H>),
    /// The ApiKey's own, with another text or none, or with annotations that name no key.
    Edited,
    /// Text of the key that its annotations name, for an ApiKey of the same
    /// namespace and name that does not exist any more: it was deleted, or both were restored into
    /// another cluster.
    Orphan {
        /// Statements of the Secret.
        content: Content<H>,
        /// The ApiKey asks for its key.
        is_requested: bool,
        /// The garbage collector deletes it: it went with its ApiKey.
        is_collected: bool,
    },
    /// Somebody else's.
    Foreign,
}

/// Statements of a Secret about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content<H> {
    /// The key in it.
    pub hash: H,
    /// The key that was in it before, and from when on that is refused.
    pub retiring: Option<(H, Timestamp)>,
    /// Labels, annotations, owner and base URL are those that are declared.
    pub is_as_declared: bool,
}

/// Knowledge of the key directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Directory<H, P> {
    /// The status names no WaterDataApi yet: nothing was ever declared.
    Unnamed,
    /// Content that was read.
    Open(DirectoryContent<H, P>),
    /// The directory cannot be read at present.
    Away,
    /// The WaterDataApi is gone, and with it the way to its Redis.
    Lost {
        /// Whether pods of its gates are left, which may accept the key.
        gates: bool,
    },
}

/// Content of the directory for one ApiKey.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectoryContent<H, P> {
    /// The number that a declaration must name.
    pub number: u64,
    /// Records; `None`: one that cannot be read, or that says something else of the key.
    pub held: BTreeMap<H, Option<KeyRules<P>>>,
    /// Hashes that are revoked for this ApiKey, and since when.
    pub barred: BTreeMap<H, Timestamp>,
    /// Hashes that another ApiKey holds.
    pub taken: BTreeSet<H>,
    /// The ApiKey itself was revoked for good.
    pub is_gone: bool,
    /// Every gate has acknowledged what is held.
    pub is_acknowledged: bool,
    /// Redis' time.
    pub now: Timestamp,
}

//! What a pass over an ApiKey decides by: small values without clients, texts or Kubernetes' types,
//! so that an exhaustive model can make them. `H` names a key by its hash, `P` a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use water_domain::Timestamp;

/// All that a pass knows of one ApiKey, read once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen<H, P> {
    /// The ApiKey has a deletion timestamp.
    pub is_deleting: bool,
    /// It carries the finalizer.
    pub has_finalizer: bool,
    /// It carries the label of its account.
    pub has_label: bool,
    /// Its namespace is being deleted. Looked up only before a key is made.
    pub is_terminating: bool,
    /// What it declares; `None`: the object cannot be decoded.
    pub spec: Option<Spec<H, P>>,
    /// What can be read of its restrictions, decoded or not.
    pub restrictions: Restrictions<H>,
    /// Every hash that spec, status and Secret name.
    pub named: BTreeSet<H>,
    /// What the status says of its keys.
    pub status: Announced<H>,
    /// What the WaterDataApi says of it.
    pub admission: Admission,
    /// Plans that the declared plan does not exceed in any limit.
    pub wider_plans: BTreeSet<P>,
    /// What stands under the name of its Secret.
    pub secret: Secret<H>,
    /// The key that this leader has made for it, for the declared revision, and not revealed.
    pub made: Option<H>,
    /// Another ApiKey of the WaterDataApi has the public name that it declares for its key.
    pub is_id_taken: bool,
    /// What the key directory holds of it.
    pub directory: Directory<H, P>,
}

/// What an ApiKey declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec<H, P> {
    /// How each of its keys is to be judged.
    pub rules: KeyRules<P>,
    /// Where its key comes from.
    pub material: Material<H>,
    /// When another key takes its place.
    pub rotation: Rotation,
    /// The time of the tombstone that the owner asks to lift, for the brought hash.
    pub reinstate: Option<Timestamp>,
}

/// What an ApiKey forbids its keys.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Restrictions<H> {
    /// Refused until it is resumed.
    pub suspended: bool,
    /// Refused from this time on.
    pub expires: Option<Timestamp>,
    /// The hash that is brought along in the place of every other, and how long the one before it works on.
    pub brought: Option<(H, Duration)>,
}

/// When an ApiKey's key is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// A key of an earlier revision is replaced.
    pub revision: u32,
    /// A key of this age is replaced.
    pub period: Option<Duration>,
    /// How long the replaced key works beside its successor.
    pub overlap: Duration,
}

/// Where a key comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Material<H> {
    /// The operator makes it.
    Generated,
    /// Its owner brought this hash.
    Brought(H),
}

/// How the gates judge one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRules<P> {
    /// The plan whose limits it has.
    pub plan: P,
    /// Refused until it is resumed.
    pub suspended: bool,
    /// Refused before this time.
    pub not_before: Option<Timestamp>,
    /// Refused from this time on.
    pub expires: Option<Timestamp>,
    /// Replaced: refused from this time on.
    pub retires: Option<Timestamp>,
}

/// What the status says of an ApiKey's keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announced<H> {
    /// The key in the Secret. Before the first Secret: the latest key that was announced.
    pub current: Option<H>,
    /// The revision that asked for the current key; 0 without one.
    pub revision: u32,
    /// When the current key was issued, by Redis' clock.
    pub issued: Option<Timestamp>,
    /// All keys: the current one, the one before it, and those that a stopped leader may still reveal.
    pub all: BTreeSet<H>,
    /// Those of them that the owner can have seen: the current one, once it was in force, and the one
    /// before it.
    pub revealed: BTreeSet<H>,
    /// The key before it, or a brought hash that is being replaced, and from when on that is refused.
    pub retiring: Option<(H, Timestamp)>,
    /// When keys were last issued because the Secret was gone or changed.
    pub reissues: Vec<Timestamp>,
}

/// What the WaterDataApi says of an ApiKey.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It admits the key.
    Admitted,
    /// Something is missing that may come back, such as the plan: published keys stay, with
    /// every restriction.
    Hindered,
    /// It does not admit the key: published keys are withdrawn.
    Refused,
}

/// What stands under the name of an ApiKey's Secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Secret<H> {
    /// Nothing; also for a brought key, which needs none.
    Missing,
    /// The ApiKey's own, with the text of the key that its annotations name.
    Own(Content<H>),
    /// The ApiKey's own, with another text or none, or with annotations that name no key.
    Edited,
    /// Its text is that of the key that its annotations name, and it is of an ApiKey of the same
    /// namespace and name that does not exist any more: it was deleted, or both were restored into
    /// another cluster.
    Orphan {
        /// What it says of itself.
        content: Content<H>,
        /// The garbage collector deletes it: it went with its ApiKey.
        is_collected: bool,
    },
    /// Somebody else's.
    Foreign,
}

/// What a Secret says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content<H> {
    /// The key in it.
    pub hash: H,
    /// The key that was in it before, and from when on that is refused.
    pub retiring: Option<(H, Timestamp)>,
    /// Labels, annotations, owner and base URL are those that are declared.
    pub is_as_declared: bool,
}

/// What is known of the key directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Directory<H, P> {
    /// The status names no WaterDataApi yet: nothing was ever declared.
    Unnamed,
    /// It was read.
    Open(DirectoryContent<H, P>),
    /// It cannot be read at present.
    Away,
    /// The WaterDataApi is gone, and with it the way to its Redis.
    Lost {
        /// Whether pods of its gates are left, which may accept the key.
        gates: bool,
    },
}

/// What the directory holds of an ApiKey.
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

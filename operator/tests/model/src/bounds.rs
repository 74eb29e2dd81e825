//! Bounds of what may happen. Actions of the system itself are not bounded.

/// Bounds of an exploration.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bounds {
    /// Keys that may be created and deleted; one is not created again.
    pub keys: u8,
    /// Hashes that a key may ever have: one when it is created, one for a rotation, one for each reissue,
    /// and one for each leader that was lost between announcing a hash and revealing it.
    pub hashes: u8,
    pub material: Material,
    /// Gates at the beginning: one that is ready, and one that is not yet.
    pub gates: u8,
    /// The first key, a brought one, is in force at the beginning.
    pub is_in_force: bool,
    /// Whether a replaced key works for a tick after its successor is published; otherwise it is refused at once.
    pub overlap: bool,
    /// Number of times that each thing may happen.
    pub left: Left,
}

/// Origin of keys.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Material {
    #[default]
    Generated,
    /// Separate hashes that each owner brings.
    Brought,
    /// Two owners, of different accounts, bring the same hash.
    Shared,
}

/// Rest of the bounds.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Left {
    /// Redis is wiped, rolled back or failed over.
    pub losses: u8,
    /// A leader is paused for longer than its Lease. It may go on at any time: one that never does is
    /// one that crashed.
    pub pauses: u8,
    /// A pass halts between its decision and its write. Other passes end at once.
    pub slow: u8,
    /// A write is taken for lost, and comes later.
    pub delays: u8,
    /// A watch halts, until it catches up.
    pub lags: u8,
    /// A gate is cut off from Redis.
    pub cuts: u8,
    /// A gate is started or stopped.
    pub starts: u8,
    /// An owner asks for another key: raises the revision, or brings another hash.
    pub rotations: u8,
    /// An owner suspends or resumes a key.
    pub suspensions: u8,
    /// A Secret is deleted or edited by hand, or the one with the key before is put back.
    pub hands: u8,
    /// A Secret is replaced by somebody else's.
    pub foreign: u8,
    /// A status gets the name of a WaterDataApi that does not exist.
    pub misnames: u8,
    /// The plan goes or comes back, or the namespace is not admitted any more.
    pub hindrances: u8,
    /// The API server refuses the writes of an ApiKey, or takes them again.
    pub refusals: u8,
    /// The WaterDataApi is deleted.
    pub deletions: u8,
    /// The Secret names the other Redis.
    pub moves: u8,
    /// A pass over the WaterDataApi halts before it names or opens a Redis.
    pub halts: u8,
    /// Time passes: one overlap.
    pub ticks: u8,
}

/// Takes one; `None`: none is left.
pub fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}

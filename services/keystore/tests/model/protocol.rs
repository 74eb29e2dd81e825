//! What is explored: the bounds, and the protocol as it is or with one known mistake in it.

/// Places for hashes, four to a key.
pub const KEYS: usize = 2;
/// Hashes of one key, at most; the bounds may allow fewer.
pub const SLOTS: usize = 4;

/// How much may happen. What the system itself does is not bounded.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Keys that may be created, rotated and deleted, at most [`KEYS`]; one is not created again.
    pub keys: u8,
    /// Hashes that a key may ever have: one when it is created, one for a rotation, one for each
    /// leader that was lost between announcing a hash and revealing it.
    pub hashes: u8,
    /// How often Redis is wiped, rolled back or failed over.
    pub losses: u8,
    /// How often a leader is paused for longer than its Lease. It may go on at any time: one that
    /// never does is one that crashed.
    pub pauses: u8,
    /// How often a gate is cut off from Redis.
    pub cuts: u8,
    /// How often a gate is started or stopped.
    pub starts: u8,
}

/// A rule left out. Each must lead to a valid key that is refused or a revoked one that is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// An acknowledgement counts by its `seq`, whatever generation it is of.
    AcknowledgementOfAnyGeneration,
    /// A gate loads first and writes its lease afterwards.
    LoadBeforeLease,
    /// Gates compare `seq` alone: neither the generation nor the server.
    SeqAlone,
    /// The Secret is written before the hash is published.
    RevealBeforePublish,
    /// A leader claims the term and writes, without having read the Lease again.
    ClaimWithoutReading,
    /// A claim fences nobody: writes pass with any term.
    ClaimWithoutFence,
    /// A leader whose write is refused does not claim again: an earlier leader's late claim, after which
    /// it finds that it leads no longer, then stops everything.
    NoClaimAfterRefusal,
    /// A leader that finds the directory incomplete rebuilds it under the term that it has.
    RebuildWithoutClaim,
    /// Writes pass on a server that the operator has not verified.
    WriteToUnverified,
    /// A lease that a rollback brought back counts as run out by its own age.
    AgeOfRestoredLease,
    /// A pod that was never ready is taken to have read nothing, even if Redis lost its lease.
    NeverReadyHasReadNothing,
    /// A gate that was silent for longer than its grace serves its old copy as soon as its lease is
    /// renewed, before the feed has told it what it missed.
    ServeOnRenewal,
    /// A gate that was silent for longer than its grace reads first what it missed, then renews its
    /// lease, and serves.
    ReadBeforeRenewal,
    /// Leases are judged on a server that the operator has not verified.
    JudgeUnverified,
    /// A hash whose Secret may still be written by an earlier leader is withdrawn with the
    /// publication of another one.
    WithdrawBeforeReveal,
    /// A rebuild carries the hashes of Secrets alone, and none that waits to be revealed.
    RebuildOfSecretsAlone,
}

//! Rules left out, one at a time. Each must lead to a broken property.

/// A known mistake. Those of [`Seen`](water_operator::keys::seen::Seen) and of
/// [`Step`](water_operator::keys::step::Step) wrap what `decide` is given or answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    // Of the gates.
    /// A gate loads first and writes its lease afterwards.
    LoadBeforeLease,
    /// Gates compare `seq` alone: neither the generation nor the server.
    SeqAlone,
    /// A gate that was silent for longer than its grace serves its old copy as soon as its lease is
    /// renewed, before the feed has told it what it missed.
    ServeOnRenewal,
    /// A gate that was silent for longer than its grace reads first what it missed, then renews its
    /// lease, and serves.
    ReadBeforeRenewal,

    // Of the acknowledgement.
    /// It counts by its `seq`, whatever generation it is of, and whatever was rebuilt since.
    AcknowledgementOfAnyGeneration,
    /// A lease that a rollback brought back counts as run out by its own age.
    AgeOfRestoredLease,
    /// A pod that was never ready is taken to have read nothing, even if Redis lost its lease.
    NeverReadyHasReadNothing,
    /// Leases are judged on a server that the operator has not verified, and that counts after the rebuild.
    JudgeUnverified,

    // Of the claim and the rebuild.
    /// A leader claims the term and writes, without having read the Lease again.
    ClaimWithoutReading,
    /// A claim fences nobody: writes pass with any term.
    ClaimWithoutFence,
    /// A leader whose write is refused does not claim again: an earlier leader's late claim, which
    /// nothing follows, then stops everything.
    NoClaimAfterRefusal,
    /// A leader that finds the directory incomplete rebuilds it under the term that it has.
    RebuildWithoutClaim,
    /// A leader believes what its watches listed before its claim.
    ListBeforeClaim,
    /// A claim for another WaterDataApi takes the directory for complete (bug 4).
    ClaimOfAnotherApi,
    /// Gates are started before the directory is claimed for their WaterDataApi.
    GatesBeforeClaim,
    /// A rebuild carries the hashes of Secrets alone, and none that waits to be revealed.
    RebuildOfSecretsAlone,
    /// A rebuild leaves out keys while something hinders them.
    RebuildWithoutHindered,
    /// A rebuild believes a status that tells that the key is not admitted.
    RebuildOfStatusesAlone,

    // Of the store.
    /// Writes pass on a server that the operator has not verified.
    WriteToUnverified,
    /// Whoever declares a hash gets it.
    TakenIgnored,
    /// Another hash that is brought along is published before the status names it; a pass sees, and a
    /// declaration takes away, only what the status names (bug 1).
    DeclaredInPart,

    // Of `Seen`.
    /// A hash that is brought along counts as announced, and is published at once (bug 2).
    BroughtUnannounced,
    /// Every change counts as acknowledged.
    Unacknowledged,
    /// The text of the Secret is not read: its annotations are believed.
    SecretBelieved,
    /// The status' word of an earlier spec is taken for the present one's.
    ToldOfAnySpec,

    // Of `Step`.
    /// The Secret is written before the hash is published.
    RevealBeforePublish,
    /// A status is written whatever version of the ApiKey it was decided by.
    StaleCache,
    /// A replaced brought hash ends before the status says so.
    EndUntold,
    /// The Secret is written over whatever stands there.
    ReplaceAnyVersion,
    /// A Secret that a lost leader writes late is not reckoned with: its hash is withdrawn with the
    /// publication of another one.
    WithdrawBeforeReveal,
    /// Nothing is declared while something hinders (bug 3).
    HeldUp,
    /// A current key whose successor was lost ends when another one is published.
    EndedByLostSuccessor,
    /// The finalizer goes before every gate has let the key go.
    ReleaseUnacknowledged,
    /// A replaced key is taken away with its successor's Secret, whatever the overlap.
    NoOverlap,
    /// A declaration of which no answer came is taken for one that was never carried out: the term is
    /// kept.
    DelayedUnderSameTerm,

    // Of what a property takes for granted.
    /// A key counts as handed out however its Secret came to be. This is how it is: a POST cannot name
    /// a version, so that one of a lost leader that comes after a deletion by hand shows a key that
    /// was withdrawn, until the next pass.
    LatePostAfterDeletion,
}

impl Mistake {
    /// It changes nothing in how terms, generations and servers are compared.
    pub fn leaves_numbers_alone(self) -> bool {
        matches!(
            self,
            Self::ListBeforeClaim
                | Self::StaleCache
                | Self::ReplaceAnyVersion
                | Self::WithdrawBeforeReveal
                | Self::HeldUp
                | Self::EndedByLostSuccessor
                | Self::NoOverlap
                | Self::ToldOfAnySpec
                | Self::LatePostAfterDeletion
                | Self::EndUntold
                | Self::RebuildOfStatusesAlone
        )
    }
}

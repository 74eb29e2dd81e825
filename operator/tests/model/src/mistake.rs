//! Rules left out, one at a time. Each must lead to a broken property.

/// A known mistake. Those of [`Facts`](water_operator_core::key::facts::Facts) and of
/// [`Step`](water_operator_core::key::step::Step) wrap what `decide` is given or answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    // Mistakes of the gates.
    /// A gate loads first and writes its lease afterwards.
    LoadBeforeLease,
    /// Gates compare `seq` alone: neither the generation nor the server.
    SeqAlone,
    /// A gate that was silent for longer than its grace serves its old copy as soon as its lease is renewed, before the
    /// feed has shown what it missed.
    ServeOnRenewal,
    /// A gate that was silent for longer than its grace reads first what it missed, then renews its
    /// lease, and serves.
    ReadBeforeRenewal,

    // Mistakes of the acknowledgement.
    /// An acknowledgement counts by its `seq`, whatever generation it is of, and whatever was rebuilt since.
    AcknowledgementOfAnyGeneration,
    /// A lease that a rollback brought back counts as run out by its own age.
    AgeOfRestoredLease,
    /// A pod that was never ready is taken to have read nothing, even if Redis lost its lease.
    NeverReadyHasReadNothing,
    /// Leases are judged on a server that the operator has not verified, and that counts after the rebuild.
    JudgeUnverified,

    // Mistakes of the claim and the rebuild.
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
    /// A rebuild leaves out keys while something blocks them.
    RebuildWithoutHindered,
    /// A rebuild believes a status which reports that the key is not admitted.
    RebuildOfStatusesAlone,
    /// A rebuild forgets the end of a key that was replaced.
    RebuildWidens,
    /// A rebuild takes a Secret with the key before, which somebody put back, for one that is newer than the status.
    OldSecretBelieved,
    /// A sweep takes an ApiKey without a Secret for one that is gone, though a leader may still write the Secret.
    SweepBySecrets,
    /// A status that names a key in force forgets the other one that still works.
    RetiringForgotten,

    // Mistakes of a move to another Redis.
    /// A move is recorded at its end: while another Redis is claimed and declared in, the status names the former one.
    RecordedAfterMove,
    /// A status that names no Redis is taken to announce any.
    AnnouncedForNoRedis,
    /// A directory that is open in a Redis which has to be announced again is believed to have missed nothing.
    AnnouncedUnderAnOldClaim,
    /// The status names a Redis before the directory in it is complete.
    NamedBeforeCompletion,
    /// A Redis is named in the status whatever version that has.
    NamedWhateverVersion,
    /// A directory is opened by the status that the watch showed, which may be an old one.
    OldStatusBelieved,

    // Mistakes of the store.
    /// Writes pass on a server that the operator has not verified.
    WriteToUnverified,
    /// An owner that declares a hash gets it, also from another that holds it.
    TakenIgnored,
    /// Another hash that is brought along is published before the status names it; a pass sees, and a
    /// declaration takes away, only what the status names (bug 1).
    DeclaredInPart,

    // Mistakes of `Facts`.
    /// A hash that is brought along counts as announced, and is published at once (bug 2).
    BroughtUnannounced,
    /// Every change counts as acknowledged.
    Unacknowledged,
    /// The WaterDataApi that the status names is believed, though others may write it.
    NamedApiBelieved,
    /// The text of the Secret is not read: its annotations are believed.
    SecretBelieved,
    /// The status' word of an earlier spec is taken for the present one's.
    ToldOfAnySpec,

    // Mistakes of `Step`.
    /// The Secret is written before the hash is published.
    RevealBeforePublish,
    /// A status is written whatever version of the ApiKey it was decided by.
    StaleCache,
    /// A replaced brought hash ends before the status says so.
    EndUntold,
    /// The Secret is written over whatever is there.
    ReplaceAnyVersion,
    /// A Secret that a lost leader writes late is not reckoned with: its hash is withdrawn with the
    /// publication of another one.
    WithdrawBeforeReveal,
    /// No declaration is made while something blocks the key (bug 3).
    HeldUp,
    /// The status names another hash before the one that it replaces is restricted.
    AnnounceFirst,
    /// The label of the account is written before anything is declared.
    LabelFirst,
    /// A current key whose successor was lost ends when another one is published.
    EndedByLostSuccessor,
    /// The finalizer is removed before every gate has forgotten the key.
    ReleaseUnacknowledged,
    /// A replaced key is taken away with its successor's Secret, whatever the overlap.
    NoOverlap,
    /// A declaration of which no answer came is taken for one that was never carried out: the term is
    /// kept.
    DelayedUnderSameTerm,

    // Mistakes of what a property takes for granted.
    /// A key counts as handed out however its Secret came to be. This is how it is: a POST cannot name
    /// a version, so that one of a lost leader that comes after a deletion by hand shows a key that
    /// was withdrawn, until the next pass.
    LatePostAfterDeletion,
}

impl Mistake {
    /// Whether it breaks no other rule than that everything settles. Of all others that is not asked: it takes half of
    /// the time.
    pub fn keeps_from_rest(self) -> bool {
        matches!(
            self,
            Self::NoClaimAfterRefusal
                | Self::HeldUp
                | Self::LabelFirst
                | Self::AnnounceFirst
                | Self::SecretBelieved
        )
    }

    /// Whether it changes nothing in the way in which terms, generations and servers are compared.
    pub fn leaves_numbers_alone(self) -> bool {
        matches!(
            self,
            Self::ListBeforeClaim
                | Self::StaleCache
                | Self::ReplaceAnyVersion
                | Self::WithdrawBeforeReveal
                | Self::HeldUp
                | Self::LabelFirst
                | Self::AnnounceFirst
                | Self::EndedByLostSuccessor
                | Self::NoOverlap
                | Self::ToldOfAnySpec
                | Self::LatePostAfterDeletion
                | Self::EndUntold
                | Self::RebuildOfStatusesAlone
                | Self::RebuildWidens
                | Self::OldSecretBelieved
                | Self::SweepBySecrets
                | Self::RetiringForgotten
                | Self::RecordedAfterMove
                | Self::AnnouncedForNoRedis
                | Self::AnnouncedUnderAnOldClaim
                | Self::NamedBeforeCompletion
                | Self::NamedWhateverVersion
                | Self::OldStatusBelieved
                | Self::NamedApiBelieved
        )
    }
}

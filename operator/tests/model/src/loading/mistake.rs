//! Rules of the wait for a gate that loads, left out one at a time. Each must lead to a broken property.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    // Mistakes of the gate.
    /// A gate renews its lease while a load runs.
    RenewalDuringLoad,
    /// A gate that loads everything again says that it has no copy.
    ReloadWithoutCopy,
    /// A gate serves for its grace from the end of a load on, and not from the renewal before it.
    GraceFromLoad,

    // Mistakes of the store.
    /// A renewal is written though a later one of its process overtook it.
    OvertakenRenewal,
    /// A renewal is written though the next process of its pod has renewed.
    RenewalOfEndedProcess,

    // Mistakes of the operator.
    /// One check that shows a gate without a copy is enough.
    OneCheck,
    /// A check before the change counts as one after it.
    CheckBeforeChange,
    /// A gate without a copy counts as silent since the first check, though it has renewed its lease after that.
    SilenceFromFirstCheck,
    /// A gate without a copy is waited for as one with a copy is.
    CopyTakenForGranted,
}

impl Mistake {
    /// Whether it breaks no other rule than that the wait ends.
    pub fn keeps_waiting(self) -> bool {
        self == Self::CopyTakenForGranted
    }
}

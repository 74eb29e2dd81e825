//! What a checker finds.

use std::fmt;

/// Something that must not be.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation {
    /// The number of the invariant:
    ///
    /// 1. `Synced` means that the directory holds exactly what is declared, and the other way round.
    /// 2. No record is without an owner.
    /// 3. A generated key has exactly one Secret, whose text hashes to it.
    /// 4. The gates refuse a key before its finalizer goes.
    /// 5. A key's text is in its Secret alone.
    /// 6. A restart without changes writes nothing but the Lease and the term.
    /// 7. Term, generation and `seq` never decrease.
    /// 8. A valid key is never refused.
    /// 9. A revoked key is never accepted.
    /// 10. Every question of a client is accounted for.
    pub invariant: u8,
    pub found: String,
}

impl Violation {
    pub fn of(invariant: u8, found: impl Into<String>) -> Self {
        let found = found.into();
        Self { invariant, found }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "invariant {}: {}", self.invariant, self.found)
    }
}

/// The same: `cargo dev test` knows a violation in a test's output by these words.
impl fmt::Debug for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

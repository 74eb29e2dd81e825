//! What is counted, and how much of it an account may have.

use std::time::Duration;

/// What an account may do so many times within some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allowance {
    /// Changes of keys: 30 an hour. Each costs the operator a pass and every gate a change.
    Changes,
    /// Reads of data: 60 a minute. They are not charged to the account's plan.
    Reads,
}

impl Allowance {
    /// How many, and within which time.
    pub(super) fn bounds(self) -> (u32, Duration) {
        match self {
            Self::Changes => (30, Duration::from_secs(3600)),
            Self::Reads => (60, Duration::from_secs(60)),
        }
    }

    /// Its word in the key's name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Changes => "changes",
            Self::Reads => "reads",
        }
    }
}

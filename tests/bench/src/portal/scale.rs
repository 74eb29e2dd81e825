//! How much of the portal is measured.

use std::time::Duration;

use crate::load::Slice;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Rounds of every comparison.
    pub rounds: usize,
    /// A turn of pages and sessions.
    pub slice: Slice,
    /// Requests under way in it.
    pub connections: usize,
    /// People who are signed in.
    pub people: usize,
    /// ApiKeys of the account whose list is asked for.
    pub keys: usize,
    /// ApiKeys of all other accounts together.
    pub others: usize,
    /// A turn of lists.
    pub listing: Slice,
    /// Who asks for them, each at its own pace.
    pub askers: usize,
}

/// What is recorded.
pub const FULL: Scale = Scale {
    rounds: 7,
    slice: Slice {
        warm_up: Duration::from_millis(400),
        counted: Duration::from_secs(2),
    },
    connections: 64,
    people: 1_000,
    keys: 20,
    others: 10_000,
    listing: Slice {
        warm_up: Duration::from_millis(500),
        counted: Duration::from_secs(10),
    },
    askers: 4,
};

/// Enough to see that everything runs.
pub const SMOKE: Scale = Scale {
    rounds: 1,
    slice: Slice {
        warm_up: Duration::from_millis(50),
        counted: Duration::from_millis(100),
    },
    connections: 4,
    people: 5,
    keys: 3,
    others: 20,
    listing: Slice {
        warm_up: Duration::from_millis(50),
        counted: Duration::from_millis(500),
    },
    askers: 2,
};

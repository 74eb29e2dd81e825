//! Invariants that hold after every fault, numbered. Each checker returns the violations that it found.

mod declared;
mod releases;
mod texts;

use std::collections::BTreeMap;
use std::fmt;

use water_domain::KeyHash;
use water_keystore::Meta;

use super::clients::Tally;
pub use declared::declared;
pub use releases::Releases;
pub use texts::{metrics, texts};

/// A violated invariant.
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
    /// Evidence for people.
    pub found: String,
}

impl Violation {
    /// Returns a violation of the invariant of that number.
    pub fn new(invariant: u8, found: impl Into<String>) -> Self {
        let found = found.into();
        Self { invariant, found }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "invariant {}: {}", self.invariant, self.found)
    }
}

/// The same: `cargo dev test` finds a violation in a test's output by these words.
impl fmt::Debug for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Judges the tally of each key by the invariants 8 to 10.
pub fn accounts(tallies: &BTreeMap<KeyHash, Tally>) -> Vec<Violation> {
    let counted = |(hash, tally): (&KeyHash, &Tally)| {
        let (refused, accepted) = (tally.wrongly_refused, tally.wrongly_accepted);
        let answered = tally.accepted + tally.refused + refused + accepted;
        let valid = format!("the valid key {hash} was refused {refused} times");
        let dead = format!("the dead key {hash} was accepted {accepted} times");
        let unanswered = format!("answers are missing: {tally:?}");
        [
            (refused, Violation::new(8, valid)),
            (accepted, Violation::new(9, dead)),
            (
                tally.sent.abs_diff(answered),
                Violation::new(10, unanswered),
            ),
        ]
    };
    let counted = tallies.iter().flat_map(counted);
    let wrong = counted.filter(|(count, _)| *count > 0);
    wrong.map(|(_, violation)| violation).collect()
}

/// Judges the requests of a restarted operator, and the directory before and after it, by invariant 6.
pub fn restart(requests: &[String], before: Point, after: Point) -> Vec<Violation> {
    let writes = requests.iter().filter(|request| is_write(request));
    let written = writes.map(|request| format!("the restart sent {request}"));
    let is_changed = (before.generation, before.seq) != (after.generation, after.seq);
    let changed =
        is_changed.then(|| format!("the restart changed the directory: {before:?}, {after:?}"));
    let found = written.chain(changed);
    found.map(|found| Violation::new(6, found)).collect()
}

/// Whether a request to the API server writes something but the Lease.
pub fn is_write(request: &str) -> bool {
    let request = request.split_once(' ');
    request.is_some_and(|(method, target)| method != "GET" && !target.contains("/leases"))
}

/// Numbers of a directory that never decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Number of the leadership.
    pub term: u64,
    /// Number of the last rebuild.
    pub generation: u64,
    /// Number of the last change.
    pub seq: u64,
}

impl From<&Meta> for Point {
    fn from(meta: &Meta) -> Self {
        Self {
            term: meta.term,
            generation: meta.generation,
            seq: meta.seq,
        }
    }
}

/// Follower of a directory, which judges each reading by invariant 7.
#[derive(Default, Debug)]
pub struct Order {
    /// Numbers of the last reading.
    pub last: Option<Point>,
    /// Decreases so far.
    pub violations: Vec<Violation>,
}

impl Order {
    /// Compares the directory, on a server that has not gone back in time, with the last reading.
    pub fn see(&mut self, now: Point) {
        let Some(last) = self.last.replace(now) else {
            return;
        };
        if now.term < last.term || now.generation < last.generation || now.seq < last.seq {
            let found = format!("{last:?} was followed by {now:?}");
            self.violations.push(Violation::new(7, found));
        }
    }
}

//! 7: term, generation and `seq` of the directory never decrease.

use water_keystore::Meta;

use super::violation::Violation;

/// Where the directory stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    pub term: u64,
    pub generation: u64,
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

/// Follows a directory from look to look.
#[derive(Default, Debug)]
pub struct Order {
    last: Option<Point>,
    violations: Vec<Violation>,
}

impl Order {
    /// The directory as it stands now, on a server that has not gone back in time.
    pub fn see(&mut self, now: Point) {
        let Some(last) = self.last.replace(now) else {
            return;
        };
        let fell = now.term < last.term || now.generation < last.generation || now.seq < last.seq;
        if fell {
            let found = format!("{last:?} was followed by {now:?}");
            self.violations.push(Violation::of(7, found));
        }
    }

    pub fn violations(&self) -> Vec<Violation> {
        self.violations.clone()
    }
}

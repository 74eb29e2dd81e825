//! Limit of writes in a row: what another controller or a webhook undoes is not written again at once. Time is an
//! argument.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;
use water_domain::KeyHash;

use crate::lock::lock;

/// Writes that may follow each other at once. The longest way to a key in force takes four.
const AT_ONCE: u32 = 8;
/// The pause after them, twice as long after each further write.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

/// Writes in a row, by the uid of the ApiKey that they are about.
#[derive(Debug, Default)]
pub struct Limit(Mutex<HashMap<String, Row>>);

/// Progress of an ApiKey: another generation, or another current key in its status, begins another row. The default is
/// for writes that make none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    pub generation: i64,
    pub current: Option<KeyHash>,
}

#[derive(Clone, Debug)]
struct Row {
    generation: i64,
    /// Current keys so far: one that comes back is no progress.
    keys: Vec<Option<KeyHash>>,
    writes: u32,
    last: Instant,
}

impl Row {
    fn pause(&self) -> Duration {
        let further = self.writes.checked_sub(AT_ONCE);
        further.map_or(Duration::ZERO, |further| {
            FIRST
                .saturating_mul(2_u32.saturating_pow(further))
                .min(LONGEST)
        })
    }

    /// Whether the next write begins another row: none has followed for twice the pause.
    fn is_over(&self, progress: Progress, now: Instant) -> bool {
        let quiet = self.pause().max(FIRST) * 2;
        self.generation != progress.generation
            || !self.keys.contains(&progress.current)
            || now.duration_since(self.last) >= quiet
    }
}

impl Limit {
    /// Time until a write may follow.
    pub fn pause(&self, uid: &str, progress: Progress, now: Instant) -> Duration {
        let rows = lock(&self.0);
        let row = rows.get(uid).filter(|row| !row.is_over(progress, now));
        row.map_or(Duration::ZERO, |row| {
            row.pause().saturating_sub(now.duration_since(row.last))
        })
    }

    /// Whether a write may follow now.
    pub fn allows(&self, uid: &str, progress: Progress, now: Instant) -> bool {
        self.pause(uid, progress, now).is_zero()
    }

    /// Counts a write that was carried out.
    pub fn count(&self, uid: &str, progress: Progress, now: Instant) {
        self.note(uid, progress, now, 1);
    }

    /// Notes a write that was undone at once: the next one follows after a pause.
    pub fn exhaust(&self, uid: &str, progress: Progress, now: Instant) {
        self.note(uid, progress, now, AT_ONCE);
    }

    fn note(&self, uid: &str, progress: Progress, now: Instant, at_least: u32) {
        let mut rows = lock(&self.0);
        let before = rows.remove(uid);
        let is_over = before.as_ref().is_none_or(|row| row.is_over(progress, now));
        let before = before.filter(|row| row.generation == progress.generation);
        let (mut keys, writes) = before.map_or_else(Default::default, |row| (row.keys, row.writes));
        if !keys.contains(&progress.current) {
            keys.push(progress.current);
        }
        let writes = if is_over { 1 } else { writes + 1 };
        let row = Row {
            generation: progress.generation,
            keys,
            writes: writes.max(at_least),
            last: now,
        };
        rows.insert(uid.to_owned(), row);
    }

    /// Forgets objects that are gone.
    pub fn retain(&self, living: &HashSet<String>) {
        lock(&self.0).retain(|uid, _| living.contains(uid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn progress(generation: i64) -> Progress {
        let current = None;
        Progress {
            generation,
            current,
        }
    }

    /// Makes writes at a time at which they are allowed.
    fn written(limit: &Limit, generation: i64, writes: u32, now: Instant) {
        let progress = progress(generation);
        for write in 0..writes {
            assert!(limit.allows("uid", progress, now), "write {write}");
            limit.count("uid", progress, now);
        }
    }

    #[test]
    fn after_eight_writes_in_a_row_each_further_one_waits_twice_as_long_up_to_ten_minutes() {
        let (limit, mut now) = (Limit::default(), Instant::now());
        written(&limit, 1, AT_ONCE, now);
        for seconds in [60, 120, 240, 480, 600, 600] {
            assert!(!limit.allows("uid", progress(1), now + (seconds - 1) * SECOND));
            now += seconds * SECOND;
            written(&limit, 1, 1, now);
        }
        assert!(limit.allows("other", progress(1), now));
    }

    #[test]
    fn another_generation_or_another_key_begins_another_row() {
        let (limit, now) = (Limit::default(), Instant::now());
        written(&limit, 1, AT_ONCE, now);
        assert!(!limit.allows("uid", progress(1), now));
        written(&limit, 2, AT_ONCE, now);
        assert!(!limit.allows("uid", progress(2), now));
        let current = "ab".repeat(32).parse().ok();
        let other = Progress {
            current,
            ..progress(2)
        };
        assert!(limit.allows("uid", other, now));
        limit.count("uid", other, now);
        assert!(
            limit.allows("uid", progress(2), now),
            "the row of the other key"
        );
        limit.exhaust("uid", progress(2), now);
        assert!(!limit.allows("uid", other, now), "one that comes back");
    }

    #[test]
    fn a_row_is_over_when_nothing_was_written_for_twice_the_pause() {
        let (limit, now) = (Limit::default(), Instant::now());
        written(&limit, 1, AT_ONCE - 1, now);
        written(&limit, 1, AT_ONCE, now + 2 * FIRST);
        written(&limit, 1, AT_ONCE, now + 4 * FIRST);
        limit.exhaust("uid", progress(1), now + 5 * FIRST);
        assert!(
            !limit.allows("uid", progress(1), now + 6 * FIRST),
            "the ninth"
        );
        written(&limit, 1, AT_ONCE, now + 9 * FIRST);
    }

    #[test]
    fn what_is_undone_at_once_waits_at_once() {
        let (limit, now) = (Limit::default(), Instant::now());
        limit.exhaust("uid", progress(1), now);
        assert!(!limit.allows("uid", progress(1), now + 59 * SECOND));
        limit.exhaust("uid", progress(1), now + FIRST);
        assert!(!limit.allows("uid", progress(1), now + FIRST + 119 * SECOND));
        assert!(limit.allows("uid", progress(1), now + 3 * FIRST));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let (limit, now) = (Limit::default(), Instant::now());
        limit.exhaust("uid", progress(1), now);
        limit.retain(&HashSet::new());
        assert!(limit.allows("uid", progress(1), now));
    }
}

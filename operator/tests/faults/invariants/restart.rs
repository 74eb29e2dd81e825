//! 6: a restart without changes writes nothing but the Lease and the term.

use super::order::Point;
use super::violation::Violation;

/// Judges the requests of a restarted operator, and the directory before and after it.
pub fn restart(requests: &[String], before: Point, after: Point) -> Vec<Violation> {
    let writes = requests.iter().filter(|request| is_write(request));
    let written = writes.map(|request| Violation::of(6, format!("the restart sent {request}")));
    let is_changed = (before.generation, before.seq) != (after.generation, after.seq);
    let changed = is_changed.then(|| {
        Violation::of(
            6,
            format!("the restart changed the directory: {before:?}, {after:?}"),
        )
    });
    written.chain(changed).collect()
}

/// Whether a request to the API server writes something but the Lease.
pub fn is_write(request: &str) -> bool {
    let Some((method, target)) = request.split_once(' ') else {
        return false;
    };
    method != "GET" && !target.contains("/leases")
}

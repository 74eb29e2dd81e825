//! Rules of the sweep, which compares the owners of published keys with the ApiKeys of the cluster.

/// Owners that may be removed at once, however few there are.
const ALWAYS_ALLOWED: usize = 5;
/// Part of all owners that may be removed at once: a fifth.
const ALLOWED_PART: usize = 5;

/// Answer to a list of owners.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sweep<O> {
    /// Owners without an ApiKey.
    pub orphans: Vec<O>,
    /// Owners whose keys are withdrawn; an error with their number if they are too many at once.
    pub removable: Result<Vec<O>, usize>,
}

/// Sweeps `owners`. Keys are withdrawn whose ApiKey is missing and was missing in the sweep before, so that neither one
/// mistaken list nor one that is too short ends the access of many. `allowance` is what somebody has allowed besides.
pub fn sweep<O: Clone>(
    owners: &[O],
    is_living: impl Fn(&O) -> bool,
    was_missing: impl Fn(&O) -> bool,
    allowance: usize,
) -> Sweep<O> {
    let orphans = owners.iter().filter(|owner| !is_living(owner));
    let orphans: Vec<O> = orphans.cloned().collect();
    let removable = orphans.iter().filter(|owner| was_missing(owner));
    let removable: Vec<O> = removable.cloned().collect();
    let is_allowed = removable.len() <= allowed(owners.len(), allowance);
    Sweep {
        orphans,
        removable: if is_allowed {
            Ok(removable)
        } else {
            Err(removable.len())
        },
    }
}

/// Owners that one sweep may remove.
fn allowed(owners: usize, allowance: usize) -> usize {
    (owners / ALLOWED_PART).max(ALWAYS_ALLOWED).max(allowance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_may_go_at_once_or_five_or_what_is_allowed() {
        assert_eq!(allowed(0, 0), 5);
        assert_eq!(allowed(29, 0), 5);
        assert_eq!(allowed(1000, 0), 200);
        assert_eq!(allowed(1000, 700), 700);
    }

    #[test]
    fn an_owner_that_is_missing_twice_is_removed_unless_too_many_are() {
        let owners: Vec<u8> = (0..10).collect();
        let swept = |missing: u8, missed: u8, allowance| {
            sweep(
                &owners,
                |owner| *owner >= missing,
                |owner| *owner < missed,
                allowance,
            )
        };
        let two = swept(2, 1, 0);
        assert_eq!((two.orphans, two.removable), (vec![0, 1], Ok(vec![0])));
        assert_eq!(swept(6, 6, 0).removable, Err(6));
        assert_eq!(swept(6, 6, 6).removable.map(|all| all.len()), Ok(6));
    }
}

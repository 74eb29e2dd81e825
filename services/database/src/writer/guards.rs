//! Guards of a replacing load against a file that is well formed and probably not meant.

use std::collections::BTreeMap;

use water_domain::departement;

use crate::writer::load::{Load, Refusal};

/// Returns the stored départements that a file does not have, if it may remove them. A first file must have all of
/// France's: nothing is stored that could be missed.
pub(super) fn removed<S, W>(
    dataset: &'static str,
    stored: &BTreeMap<&'static str, S>,
    wanted: &BTreeMap<&'static str, W>,
    load: &Load,
) -> Result<Vec<String>, Refusal> {
    let absent = |code: &&'static str| !wanted.contains_key(code);
    let removed = codes(stored.keys().copied().filter(absent));
    if load.allow_missing {
        return Ok(removed);
    }
    if !removed.is_empty() {
        return Err(Refusal::Removes {
            dataset,
            departements: removed,
        });
    }
    let all = departement::all()
        .iter()
        .map(|departement| departement.code);
    let missing = codes(all.filter(absent));
    if stored.is_empty() && !missing.is_empty() {
        Err(Refusal::Incomplete {
            dataset,
            departements: missing,
        })
    } else {
        Ok(removed)
    }
}

/// Refuses a file that moves more of the stored measured records, or levels, than the load allows.
pub(super) fn moved(
    dataset: &'static str,
    what: &'static str,
    moved: usize,
    of: usize,
    load: &Load,
) -> Result<(), Refusal> {
    if moved * 100 > of * usize::from(load.max_changed) {
        Err(Refusal::Moves {
            dataset,
            what,
            moved,
            of,
            allowed: load.max_changed,
        })
    } else {
        Ok(())
    }
}

fn codes(codes: impl Iterator<Item = &'static str>) -> Vec<String> {
    codes.map(str::to_owned).collect()
}

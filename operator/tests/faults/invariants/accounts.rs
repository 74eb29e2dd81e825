//! 8 to 10: what clients were answered.

use std::collections::BTreeMap;

use water_domain::KeyHash;

use super::violation::Violation;
use crate::clients::Tally;

/// Judges the tally of each key.
pub fn accounts(tallies: &BTreeMap<KeyHash, Tally>) -> Vec<Violation> {
    let of_key = |(hash, tally): (&KeyHash, &Tally)| {
        let answered =
            tally.accepted + tally.refused + tally.wrongly_refused + tally.wrongly_accepted;
        let (refused, accepted) = (tally.wrongly_refused, tally.wrongly_accepted);
        let counted = [
            (
                8,
                refused,
                format!("the valid key {hash} was refused {refused} times"),
            ),
            (
                9,
                accepted,
                format!("the dead key {hash} was accepted {accepted} times"),
            ),
            (
                10,
                tally.sent.abs_diff(answered),
                format!("answers are missing: {tally:?}"),
            ),
        ];
        let wrong = counted.into_iter().filter(|(_, count, _)| *count > 0);
        wrong.map(|(invariant, _, found)| Violation::of(invariant, found))
    };
    tallies.iter().flat_map(of_key).collect()
}

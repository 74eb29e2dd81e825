//! Conclusions from an observation of a directory and its server: pure.

use std::fmt;

use water_keystore::{Counts, Observation, Position};

/// Reason for which a directory must be rebuilt from the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// Missing `meta`.
    Wiped,
    /// A rebuild did not come to its end.
    Unfinished,
    /// The server is another one, or has restarted.
    Restarted,
    /// Generation or change number went back.
    WentBack,
    /// Something is missing, or there is more than was written.
    Miscounted {
        /// Numbers in the directory.
        stored: Counts,
        /// Numbers that it should have.
        counted: Counts,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wiped => formatter.write_str("Redis had lost its data"),
            Self::Unfinished => formatter.write_str("an earlier rebuild had not come to its end"),
            Self::Restarted => formatter.write_str("Redis had restarted or failed over"),
            Self::WentBack => formatter.write_str("Redis had gone back to an earlier state"),
            Self::Miscounted { stored, counted } => {
                let kinds = [
                    ("key records", stored.records, counted.records),
                    ("owners of records", stored.owners, counted.owners),
                    ("entries of the index", stored.held, counted.held),
                    ("revocations", stored.revoked, counted.revoked),
                ];
                let differs = |(_, stored, counted): &(&str, u64, u64)| stored != counted;
                let differing = kinds.into_iter().filter(differs);
                let told = differing.map(|(kind, stored, counted)| {
                    format!("Redis held {stored} {kind} of {counted}")
                });
                formatter.write_str(&told.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Damage of the directory of `owner`, which had reached the position `reached`, if that can be seen and repaired here:
/// not on a replica, which takes no writes, and not in another installation's directory.
pub fn damage(reached: Position, seen: &Observation, owner: &str) -> Option<Damage> {
    if seen.is_replica {
        return None;
    }
    let Some(meta) = &seen.meta else {
        return Some(Damage::Wiped);
    };
    if meta.owner != owner {
        None
    } else if meta.replid != seen.replid {
        Some(Damage::Restarted)
    } else if !meta.complete {
        Some(Damage::Unfinished)
    } else if meta.position() < reached {
        Some(Damage::WentBack)
    } else {
        None
    }
}

/// Whether the directory can be believed: it is complete, on the server on which it was completed, and not
/// before the position at which it was seen.
pub fn is_whole(reached: Position, seen: &Observation) -> bool {
    seen.verified()
        .is_some_and(|meta| meta.position() >= reached)
}

/// Damage that a count shows, if nothing was written between the observations before and after it.
pub fn miscount(before: &Observation, stored: Counts, after: &Observation) -> Option<Damage> {
    let (Some(meta), Some(later)) = (before.verified(), after.verified()) else {
        return None;
    };
    // A tombstone alone moves no position.
    let is_unwritten = (meta.position(), meta.counts) == (later.position(), later.counts);
    (is_unwritten && stored != meta.counts).then_some(Damage::Miscounted {
        stored,
        counted: meta.counts,
    })
}

#[cfg(test)]
mod tests {
    use water_keystore::Meta;

    use super::*;

    const REACHED: Position = Position {
        generation: 7,
        seq: 10,
    };

    fn seen(change: impl FnOnce(&mut Observation)) -> Observation {
        let meta = Meta {
            schema: 1,
            owner: "uid".into(),
            api: "api".into(),
            term: 1,
            generation: 7,
            complete: true,
            counts: counts(|_| {}),
            seq: 10,
            replid: "server".into(),
        };
        let mut seen = Observation {
            meta: Some(meta),
            replid: "server".into(),
            is_replica: false,
            is_unguarded: false,
        };
        change(&mut seen);
        seen
    }

    fn with_meta(change: impl FnOnce(&mut Meta)) -> Observation {
        seen(|seen| seen.meta.as_mut().map(change).unwrap())
    }

    fn observed_damage(seen: &Observation) -> Option<Damage> {
        damage(REACHED, seen, "uid")
    }

    #[test]
    fn each_kind_of_damage_is_told_apart() {
        assert_eq!(observed_damage(&seen(|_| {})), None);
        assert_eq!(
            observed_damage(&seen(|seen| seen.meta = None)),
            Some(Damage::Wiped)
        );
        let promoted = seen(|seen| seen.replid = "other".into());
        assert_eq!(observed_damage(&promoted), Some(Damage::Restarted));
        assert_eq!(
            observed_damage(&with_meta(|meta| meta.complete = false)),
            Some(Damage::Unfinished)
        );
        assert_eq!(
            observed_damage(&with_meta(|meta| meta.seq = 9)),
            Some(Damage::WentBack)
        );
        assert_eq!(
            observed_damage(&with_meta(|meta| meta.generation = 6)),
            Some(Damage::WentBack)
        );
        let rebuilt = with_meta(|meta| (meta.generation, meta.seq) = (8, 1));
        assert_eq!(observed_damage(&rebuilt), None);
    }

    #[test]
    fn a_replica_and_anothers_directory_are_left_alone() {
        let replica = seen(|seen| (seen.meta, seen.is_replica) = (None, true));
        assert_eq!(observed_damage(&replica), None);
        assert_eq!(
            observed_damage(&with_meta(
                |meta| (meta.complete, meta.owner) = (false, "other".into())
            )),
            None
        );
    }

    fn counts(change: impl FnOnce(&mut Counts)) -> Counts {
        let mut counts = Counts {
            records: 2,
            owners: 2,
            held: 2,
            revoked: 1,
        };
        change(&mut counts);
        counts
    }

    type Change = fn(&mut Counts);

    #[test]
    fn each_kind_that_is_evicted_is_missed() {
        let whole = seen(|_| {});
        assert_eq!(miscount(&whole, counts(|_| {}), &whole), None);
        let lacks: [(Change, &str); 4] = [
            (|counts| counts.records = 1, "Redis held 1 key records of 2"),
            (
                |counts| counts.owners = 1,
                "Redis held 1 owners of records of 2",
            ),
            (
                |counts| counts.held = 1,
                "Redis held 1 entries of the index of 2",
            ),
            (|counts| counts.revoked = 0, "Redis held 0 revocations of 1"),
        ];
        for (change, told) in lacks {
            let damage = miscount(&whole, counts(change), &whole).unwrap();
            assert_eq!(damage.to_string(), told);
        }
    }

    #[test]
    fn a_count_says_nothing_when_something_was_written_meanwhile() {
        let later = with_meta(|meta| meta.seq = 11);
        let fewer = counts(|counts| counts.records = 1);
        assert_eq!(miscount(&seen(|_| {}), fewer, &later), None);
    }
}

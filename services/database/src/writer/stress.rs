//! A stress file replaces all stress records; a legal level that is newer than its own stays.

use std::collections::BTreeMap;

use tokio_postgres::Transaction;
use water_domain::{Departement, Level, Number, StressRecord, Timestamp};

use crate::departements;
use crate::error::{Attempt, Error};
use crate::writer::difference::{self, Difference, Value};
use crate::writer::legal::{self, Legal};
use crate::writer::load::{Load, LoadError, Outcome};
use crate::writer::state::{self, Input, Over};
use crate::writer::{Writer, guards};

/// A row of a stress file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StressRow {
    /// Where.
    pub departement: &'static Departement,
    /// 0 to 5.
    pub stress_index: Number,
    /// The alert level, if the file gives one.
    pub level: Option<Level>,
}

/// A record and whether its level comes from the index alone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Stored {
    pub(crate) record: StressRecord,
    pub(crate) level_derived: bool,
}

pub(crate) const STRESS: Input = Input::whole("stress");

impl Writer {
    /// Replaces all stress records by `rows`, at most one a département, which describe the moment
    /// `as_of`.
    pub async fn replace_stress(
        &mut self,
        rows: &[StressRow],
        as_of: Timestamp,
        load: &Load,
    ) -> Result<Outcome, LoadError> {
        let transaction = self.begin_load(STRESS.dataset, load).await?;
        let over = state::check(&transaction, STRESS, as_of, load).await?;
        let (stored, legal) = (read(&transaction).await?, legal::read(&transaction).await?);
        let wanted: BTreeMap<&str, Wanted> = rows
            .iter()
            .map(|row| {
                let code = row.departement.code;
                (code, wanted(row, legal.get(code), as_of, load))
            })
            .collect();
        let removed = guards::removed(STRESS.name, &stored, &wanted, load)?;
        if over == Over::Measured {
            let moved = stored.iter().filter(|(code, old)| {
                let new = wanted.get(*code);
                new.is_some_and(|new| moves(&old.record, &new.stored.record))
            });
            guards::moved(STRESS.name, moved.count(), stored.len(), load)?;
        }
        let codes = |of: fn(&Wanted) -> bool| {
            let matching = rows.iter().map(|row| row.departement.code);
            let matching = matching.filter(|code| of(&wanted[code]));
            matching.map(str::to_owned).collect::<Vec<_>>()
        };
        let outcome = Outcome {
            rows: rows.len() as u64,
            inserted: wanted
                .keys()
                .filter(|code| !stored.contains_key(*code))
                .count() as u64,
            updated: wanted
                .iter()
                .filter(|(code, new)| {
                    stored
                        .get(*code)
                        .is_some_and(|old| old.record != new.stored.record)
                })
                .count() as u64,
            removed: removed.len() as u64,
            derived: codes(|new| new.stored.level_derived),
            kept: codes(|new| new.kept),
            ..Outcome::default()
        };
        if load.dry_run {
            return Ok(Outcome {
                largest: largest(&stored, &wanted),
                ..outcome
            });
        }
        let delete = "DELETE FROM water.stress WHERE dept = ANY($1)";
        transaction
            .execute(delete, &[&removed])
            .await
            .attempting("removing stress records")?;
        let different = wanted
            .iter()
            .filter(|(code, new)| stored.get(*code) != Some(&new.stored));
        write(&transaction, different.map(|(_, new)| &new.stored)).await?;
        let given = wanted
            .iter()
            .filter_map(|(code, new)| Some((*code, new.given?)));
        legal::write(&transaction, &given.collect()).await?;
        state::finish(transaction, STRESS, as_of, load, &outcome).await?;
        Ok(outcome)
    }
}

/// What becomes of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Wanted {
    stored: Stored,
    /// The legal level that the file gives, unless the stored one stays.
    given: Option<Legal>,
    /// Whether the stored legal level stays.
    kept: bool,
}

/// The level of the file, unless the stored legal one is newer or the file gives none; else one
/// derived from the index.
fn wanted(row: &StressRow, legal: Option<&Legal>, as_of: Timestamp, load: &Load) -> Wanted {
    let given = row
        .level
        .filter(|_| !legal.is_some_and(|legal| legal.outranks(as_of, load)))
        .map(|level| Legal {
            level,
            as_of,
            synthetic: load.synthetic,
        });
    let level = given.as_ref().or(legal).map(|legal| legal.level);
    let record = StressRecord {
        departement: row.departement,
        stress_index: row.stress_index,
        level: level.unwrap_or_else(|| Level::from_stress_index(row.stress_index.get())),
    };
    Wanted {
        stored: Stored {
            record,
            level_derived: level.is_none(),
        },
        given,
        kept: given.is_none() && legal.is_some(),
    }
}

/// The indices that would move most, and the levels.
fn largest(
    stored: &BTreeMap<&'static str, Stored>,
    wanted: &BTreeMap<&str, Wanted>,
) -> Vec<Difference> {
    let moves = |column: &'static str, value: fn(&StressRecord) -> Value| {
        difference::largest(stored.iter().filter_map(|(code, old)| {
            let sides = [&old.record, &wanted.get(code)?.stored.record].map(value);
            Some(Difference::of(*code, column, sides))
        }))
    };
    let indices = moves("stressIndex", |record| Value::Score(record.stress_index));
    let levels = moves("level", |record| Value::Level(record.level));
    [indices, levels].concat()
}

/// Whether an index goes two bands or more away.
fn moves(old: &StressRecord, new: &StressRecord) -> bool {
    let band = |record: &StressRecord| Level::from_stress_index(record.stress_index.get()) as u8;
    band(old).abs_diff(band(new)) >= 2
}

/// All stored records by code.
pub(crate) async fn read(
    transaction: &Transaction<'_>,
) -> Result<BTreeMap<&'static str, Stored>, Error> {
    let sql = "SELECT dept, stress_index, level, level_derived FROM water.stress";
    let rows = transaction
        .query(sql, &[])
        .await
        .attempting("reading the stress records")?;
    let stored = |row| {
        let record = departements::stress_record(row)?;
        Ok((
            record.departement.code,
            Stored {
                record,
                level_derived: row.get("level_derived"),
            },
        ))
    };
    rows.iter().map(stored).collect()
}

/// Inserts records, or overwrites those of the same départements.
pub(crate) async fn write(
    transaction: &Transaction<'_>,
    records: impl Iterator<Item = &Stored>,
) -> Result<(), Error> {
    let sql = "INSERT INTO water.stress (dept, stress_index, level, level_derived) VALUES ($1, $2, $3, $4) \
               ON CONFLICT (dept) DO UPDATE SET stress_index = excluded.stress_index, \
               level = excluded.level, level_derived = excluded.level_derived";
    let statement = transaction
        .prepare(sql)
        .await
        .attempting("writing stress records")?;
    for Stored {
        record,
        level_derived,
    } in records
    {
        let (code, index, level) = (
            record.departement.code,
            record.stress_index.get(),
            record.level.as_str(),
        );
        transaction
            .execute(&statement, &[&code, &index, &level, level_derived])
            .await
            .attempting("writing stress records")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use water_domain::departement;

    use super::*;

    fn row(stress_index: f64, level: Option<Level>) -> StressRow {
        StressRow {
            departement: departement::parse("34").unwrap(),
            stress_index: Number::try_from(stress_index).unwrap(),
            level,
        }
    }

    fn day(day: i64) -> Timestamp {
        Timestamp::from_millis(day * 86_400_000).unwrap()
    }

    fn load(synthetic: bool, force: bool) -> Load {
        Load {
            sha256: [0; 32],
            source: String::new(),
            source_url: None,
            licence: None,
            synthetic,
            loaded_by: String::new(),
            allow_missing: false,
            force,
            max_changed: 50,
            dry_run: false,
        }
    }

    /// The level of a département whose legal one of day 5 is `alerte`, and whether it was kept.
    fn over_alerte(row: StressRow, as_of: i64, load: Load) -> (Level, bool) {
        let legal = Legal {
            level: Level::Alerte,
            as_of: day(5),
            synthetic: false,
        };
        let wanted = wanted(&row, Some(&legal), day(as_of), &load);
        assert!(!wanted.stored.level_derived);
        (wanted.stored.record.level, wanted.kept)
    }

    #[test]
    fn a_level_is_the_files_unless_the_stored_legal_one_is_newer() {
        let crise = row(0.5, Some(Level::Crise));
        let measured = || load(false, false);
        assert_eq!(over_alerte(crise, 6, measured()), (Level::Crise, false));
        assert_eq!(over_alerte(crise, 5, measured()), (Level::Crise, false));
        assert_eq!(over_alerte(crise, 4, measured()), (Level::Alerte, true));
        assert_eq!(
            over_alerte(row(0.5, None), 6, measured()),
            (Level::Alerte, true)
        );
    }

    #[test]
    fn an_invented_level_does_not_replace_a_measured_one_unless_it_is_forced() {
        let crise = row(0.5, Some(Level::Crise));
        assert_eq!(
            over_alerte(crise, 6, load(true, false)),
            (Level::Alerte, true)
        );
        assert_eq!(
            over_alerte(crise, 4, load(true, true)),
            (Level::Crise, false)
        );
    }

    #[test]
    fn without_a_legal_level_it_follows_the_index() {
        for (index, level) in [(1.5, Level::Vigilance), (4.5, Level::Crise)] {
            let wanted = wanted(&row(index, None), None, day(1), &load(false, false));
            assert_eq!(
                (wanted.stored.record.level, wanted.stored.level_derived),
                (level, true)
            );
        }
    }

    #[test]
    fn an_index_moves_when_it_goes_two_bands_away() {
        let record = |index| {
            wanted(&row(index, None), None, day(1), &load(false, false))
                .stored
                .record
        };
        assert!(!moves(&record(0.9), &record(1.1)));
        assert!(moves(&record(4.0), &record(2.9)));
    }
}

//! Loads of stress files, each of which replaces all stress records; a newer legal level stays.

use std::collections::BTreeMap;

use tokio_postgres::{Row, Transaction};
use water_domain::{Departement, Level, Number, Timestamp, departement};

use crate::departements::{number, word};
use crate::error::{Attempt, Error};
use crate::writer::difference::{self, Difference, Value};
use crate::writer::legal::{self, Legal};
use crate::writer::lifting::Lifting;
use crate::writer::load::{Load, LoadError, Outcome, Refusal};
use crate::writer::state::{self, Input, Over};
use crate::writer::{Writer, guards};

/// A row of a stress file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StressRow {
    /// The département.
    pub departement: &'static Departement,
    /// 0 to 5.
    pub stress_index: Number,
    /// The alert level, if the file gives one.
    pub level: Option<Level>,
}

/// A stored record.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct StoredStress {
    pub(crate) departement: &'static Departement,
    pub(crate) stress_index: Number,
    pub(crate) level: Level,
    /// Whether the level comes from the index alone.
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
        let wanted: BTreeMap<&str, StressUpdate> = rows
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
                new.is_some_and(|new| moves(old, &new.stored))
            });
            guards::moved(STRESS.name, "records", moved.count(), stored.len(), load)?;
        }
        guard_levels(&legal, &wanted, load)?;
        let codes = |of: fn(&StressUpdate) -> bool| {
            let matching = rows.iter().map(|row| row.departement.code);
            let matching = matching.filter(|code| of(&wanted[code]));
            matching.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut outcome = Outcome {
            rows: rows.len() as u64,
            inserted: wanted
                .keys()
                .filter(|code| !stored.contains_key(*code))
                .count() as u64,
            updated: wanted
                .iter()
                .filter(|(code, new)| stored.get(*code).is_some_and(|old| *old != new.stored))
                .count() as u64,
            removed: removed.len() as u64,
            restated: wanted
                .iter()
                .filter(|(code, new)| new.given.is_some_and(|new| legal.get(*code) != Some(&new)))
                .count() as u64,
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
        outcome.is_noted = state::finish(transaction, STRESS, as_of, load, &outcome).await?;
        Ok(outcome)
    }
}

/// Refuses levels that would end together, or move in too many départements.
fn guard_levels(
    legal: &BTreeMap<&str, Legal>,
    wanted: &BTreeMap<&str, StressUpdate>,
    load: &Load,
) -> Result<(), Refusal> {
    let moves = legal.iter().filter_map(|(code, old)| {
        let new = wanted.get(code)?.given?;
        (!old.synthetic && new.level != old.level).then_some((old, new))
    });
    let moves: Vec<_> = moves.collect();
    let ends = |(old, new): &&(&Legal, Legal)| old.is_restriction() && new.level == Level::Normal;
    let ended = moves.iter().filter(ends).count();
    let lifting = Lifting::of_a_part(legal, ended);
    let is_doubtful = lifting.is_doubtful();
    if is_doubtful && !load.allow_lifting {
        return Err(Refusal::Ends {
            dataset: STRESS.name,
            ended,
            restricted: lifting.restricted,
        });
    }
    // Levels that end were checked above.
    let moved = if is_doubtful {
        moves.len() - ended
    } else {
        moves.len()
    };
    guards::moved(STRESS.name, "levels", moved, legal::measured(legal), load)
}

/// A row's record, and the choice of its level.
#[derive(Clone, Copy, PartialEq, Debug)]
struct StressUpdate {
    stored: StoredStress,
    /// The legal level that the file gives, unless the stored one stays.
    given: Option<Legal>,
    /// Whether the stored legal level stays.
    kept: bool,
}

/// Takes the file's level, or the stored legal one if that is newer, or the register's of the same date, or the file
/// gives none; without either, derives the level from the index.
fn wanted(row: &StressRow, legal: Option<&Legal>, as_of: Timestamp, load: &Load) -> StressUpdate {
    let given = row
        .level
        .map(|level| Legal {
            level,
            as_of,
            synthetic: load.synthetic,
            register: false,
        })
        .filter(|new| !legal.is_some_and(|legal| legal.outranks(new, load)));
    let level = given.as_ref().or(legal).map(|legal| legal.level);
    StressUpdate {
        stored: StoredStress {
            departement: row.departement,
            stress_index: row.stress_index,
            level: level.unwrap_or_else(|| Level::from_stress_index(row.stress_index.get())),
            level_derived: level.is_none(),
        },
        given,
        kept: given.is_none() && legal.is_some(),
    }
}

/// Returns the indices and levels that would move most.
fn largest(
    stored: &BTreeMap<&'static str, StoredStress>,
    wanted: &BTreeMap<&str, StressUpdate>,
) -> Vec<Difference> {
    let moves = |column: &'static str, value: fn(&StoredStress) -> Value| {
        difference::largest(stored.iter().filter_map(|(code, old)| {
            let sides = [old, &wanted.get(code)?.stored].map(value);
            Some(Difference::new(*code, column, sides))
        }))
    };
    let indices = moves("stressIndex", |record| Value::Score(record.stress_index));
    let levels = moves("level", |record| Value::Level(record.level));
    [indices, levels].concat()
}

/// Whether an index moves by two bands or more.
fn moves(old: &StoredStress, new: &StoredStress) -> bool {
    let band = |record: &StoredStress| Level::from_stress_index(record.stress_index.get()) as u8;
    band(old).abs_diff(band(new)) >= 2
}

/// Reads all stored records by code.
pub(crate) async fn read(
    transaction: &Transaction<'_>,
) -> Result<BTreeMap<&'static str, StoredStress>, Error> {
    const ATTEMPT: &str = "reading the stress records";
    let sql = "SELECT dept, stress_index, level, level_derived FROM water.stress";
    let rows = transaction.query(sql, &[]).await.attempting(ATTEMPT)?;
    let stored = |row: &Row| {
        let departement = departement::parse(row.get("dept"));
        let departement = departement.map_err(|why| Error::stored(ATTEMPT, why))?;
        let stored = StoredStress {
            departement,
            stress_index: number(ATTEMPT, row, "stress_index")?,
            level: word(ATTEMPT, row, "level")?,
            level_derived: row.get("level_derived"),
        };
        Ok((departement.code, stored))
    };
    rows.iter().map(stored).collect()
}

/// Inserts records, or overwrites those of the same départements. The schema dates them as the load.
pub(crate) async fn write(
    transaction: &Transaction<'_>,
    records: impl Iterator<Item = &StoredStress>,
) -> Result<(), Error> {
    let sql = "INSERT INTO water.stress (dept, stress_index, level, level_derived) VALUES ($1, $2, $3, $4) \
               ON CONFLICT (dept) DO UPDATE SET stress_index = excluded.stress_index, \
               level = excluded.level, level_derived = excluded.level_derived";
    let statement = transaction
        .prepare(sql)
        .await
        .attempting("writing stress records")?;
    for record in records {
        let (code, index, level) = (
            record.departement.code,
            record.stress_index.get(),
            record.level.as_str(),
        );
        transaction
            .execute(&statement, &[&code, &index, &level, &record.level_derived])
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
            allow_lifting: false,
            force,
            max_changed: 50,
            dry_run: false,
        }
    }

    /// Level of a département whose legal one of day 5 is the register's `alerte`, and whether it was kept.
    fn over_alerte(row: StressRow, as_of: i64, load: Load) -> (Level, bool) {
        over_alerte_of(true, row, as_of, load)
    }

    /// Same, for a legal level of the register or of a stress file.
    fn over_alerte_of(register: bool, row: StressRow, as_of: i64, load: Load) -> (Level, bool) {
        let legal = Legal {
            level: Level::Alerte,
            as_of: day(5),
            synthetic: false,
            register,
        };
        let wanted = wanted(&row, Some(&legal), day(as_of), &load);
        assert!(!wanted.stored.level_derived);
        (wanted.stored.level, wanted.kept)
    }

    #[test]
    fn a_level_is_the_files_unless_the_stored_legal_one_is_newer() {
        let crise = row(0.5, Some(Level::Crise));
        let measured = || load(false, false);
        assert_eq!(over_alerte(crise, 6, measured()), (Level::Crise, false));
        assert_eq!(over_alerte(crise, 4, measured()), (Level::Alerte, true));
        assert_eq!(
            over_alerte(row(0.5, None), 6, measured()),
            (Level::Alerte, true)
        );
    }

    #[test]
    fn a_tie_of_dates_goes_to_the_register_and_a_file_corrects_one_of_its_own_kind() {
        let crise = row(0.5, Some(Level::Crise));
        let over = |register| over_alerte_of(register, crise, 5, load(false, false));
        assert_eq!(over(true), (Level::Alerte, true));
        assert_eq!(over(false), (Level::Crise, false));
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
                (wanted.stored.level, wanted.stored.level_derived),
                (level, true)
            );
        }
    }

    #[test]
    fn an_index_moves_when_it_goes_two_bands_away() {
        let record = |index| wanted(&row(index, None), None, day(1), &load(false, false)).stored;
        assert!(!moves(&record(0.9), &record(1.1)));
        assert!(moves(&record(4.0), &record(2.9)));
    }
}

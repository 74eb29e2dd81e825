//! A stress file replaces all stress records; a level that it does not give stays.

use std::collections::BTreeMap;

use tokio_postgres::Transaction;
use water_domain::{Departement, Level, Number, StressRecord, Timestamp};

use crate::departements;
use crate::error::{Attempt, Error};
use crate::writer::Writer;
use crate::writer::load::{Load, LoadError, Outcome, Refusal};
use crate::writer::state::{self, Input};

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

pub(crate) const STRESS: Input = Input::of("stress");

impl Writer {
    /// Replaces all stress records by `rows`, at most one a département, which describe the moment
    /// `as_of`.
    pub async fn replace_stress(
        &mut self,
        rows: &[StressRow],
        as_of: Timestamp,
        load: &Load,
    ) -> Result<Outcome, LoadError> {
        let transaction = self.begin().await?;
        state::lock(&transaction, STRESS.dataset).await?;
        state::check(&transaction, STRESS, as_of, load).await?;
        let stored = read(&transaction).await?;
        let wanted: BTreeMap<&str, Stored> = rows
            .iter()
            .map(|row| {
                (
                    row.departement.code,
                    merged(row, stored.get(row.departement.code)),
                )
            })
            .collect();
        let removed: Vec<String> = stored
            .keys()
            .filter(|code| !wanted.contains_key(*code))
            .map(|code| (*code).to_owned())
            .collect();
        if !removed.is_empty() && !load.allow_missing {
            return Err(Refusal::Removes {
                dataset: STRESS.name,
                departements: removed,
            }
            .into());
        }
        let codes = |of: fn(&StressRow, &Stored) -> bool| {
            let matching = rows
                .iter()
                .filter(|row| of(row, &wanted[row.departement.code]));
            matching
                .map(|row| row.departement.code.to_owned())
                .collect::<Vec<_>>()
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
                        .is_some_and(|old| old.record != new.record)
                })
                .count() as u64,
            removed: removed.len() as u64,
            derived: codes(|_, new| new.level_derived),
            kept: codes(|row, new| row.level.is_none() && !new.level_derived),
            ..Outcome::default()
        };
        let delete = "DELETE FROM water.stress WHERE dept = ANY($1)";
        transaction
            .execute(delete, &[&removed])
            .await
            .attempting("removing stress records")?;
        let different = wanted
            .iter()
            .filter(|(code, new)| stored.get(*code) != Some(new));
        write(&transaction, different.map(|(_, new)| new)).await?;
        state::finish(transaction, STRESS, Some(as_of), load, &outcome).await?;
        Ok(outcome)
    }
}

/// The level of the file, else the stored legal level (a yearly index must not overwrite it), else
/// one derived from the index.
fn merged(row: &StressRow, stored: Option<&Stored>) -> Stored {
    let legal = stored
        .filter(|stored| !stored.level_derived)
        .map(|stored| stored.record.level);
    let level = row.level.or(legal);
    let record = StressRecord {
        departement: row.departement,
        stress_index: row.stress_index,
        level: level.unwrap_or_else(|| Level::from_stress_index(row.stress_index.get())),
    };
    Stored {
        record,
        level_derived: level.is_none(),
    }
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
        let stress_index = Number::try_from(stress_index).unwrap();
        StressRow {
            departement: departement::parse("34").unwrap(),
            stress_index,
            level,
        }
    }

    #[test]
    fn a_level_is_the_files_else_the_stored_legal_one_else_derived() {
        let legal = merged(&row(1.5, Some(Level::Crise)), None);
        assert_eq!(
            (legal.record.level, legal.level_derived),
            (Level::Crise, false)
        );
        let kept = merged(&row(0.5, None), Some(&legal));
        assert_eq!(
            (kept.record.level, kept.level_derived),
            (Level::Crise, false)
        );
        let derived = merged(&row(1.5, None), None);
        assert_eq!(
            (derived.record.level, derived.level_derived),
            (Level::Vigilance, true)
        );
    }

    #[test]
    fn a_derived_level_follows_the_index() {
        let derived = merged(&row(1.5, None), None);
        assert_eq!(
            merged(&row(4.5, None), Some(&derived)).record.level,
            Level::Crise
        );
    }
}

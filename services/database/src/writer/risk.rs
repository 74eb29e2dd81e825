//! Loads of risk files, each of which replaces all risk records.

use std::collections::BTreeMap;

use tokio_postgres::Transaction;
use water_domain::{Departement, Number, RiskRating, RiskRecord, Timestamp};

use crate::departements;
use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::difference::{self, Difference, Value};
use crate::writer::load::{Load, LoadError, Outcome};
use crate::writer::state::{self, Input, Over};
use crate::writer::{Writer, guards};

/// A row of a risk file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RiskRow {
    /// The département.
    pub departement: &'static Departement,
    /// 0 to 100.
    pub flood: Number,
    /// 0 to 100.
    pub drought: Number,
    /// 0 to 100.
    pub overall: Number,
    /// The letter, if the file gives one; otherwise it is derived from `overall`.
    pub rating: Option<RiskRating>,
    /// The row's own date, if the file gives one.
    pub updated_at: Option<Timestamp>,
}

const RISK: Input = Input::whole("risk");

impl Writer {
    /// Replaces all risk records by `rows`, at most one a département, which describe the moment
    /// `as_of`.
    pub async fn replace_risk(
        &mut self,
        rows: &[RiskRow],
        as_of: Timestamp,
        load: &Load,
    ) -> Result<Outcome, LoadError> {
        let transaction = self.begin_load(RISK.dataset, load).await?;
        let over = state::check(&transaction, RISK, as_of, load).await?;
        let stored = read(&transaction).await?;
        let wanted: BTreeMap<&str, RiskRecord> = rows
            .iter()
            .map(|row| {
                (
                    row.departement.code,
                    record(row, stored.get(row.departement.code), as_of),
                )
            })
            .collect();
        let removed = guards::removed(RISK.name, &stored, &wanted, load)?;
        if over == Over::Measured {
            let moved = stored
                .iter()
                .filter(|(code, old)| wanted.get(*code).is_some_and(|new| moves(old, new)));
            guards::moved(RISK.name, "records", moved.count(), stored.len(), load)?;
        }
        let different: Vec<&RiskRecord> = wanted
            .iter()
            .filter(|(code, new)| stored.get(*code) != Some(new))
            .map(|(_, new)| new)
            .collect();
        let inserted = wanted
            .keys()
            .filter(|code| !stored.contains_key(*code))
            .count();
        let derived = rows.iter().filter(|row| row.rating.is_none());
        let mut outcome = Outcome {
            rows: rows.len() as u64,
            inserted: inserted as u64,
            updated: (different.len() - inserted) as u64,
            removed: removed.len() as u64,
            derived: derived.map(|row| row.departement.code.to_owned()).collect(),
            ..Outcome::default()
        };
        if load.dry_run {
            let largest = difference::largest(stored.iter().filter_map(|(code, old)| {
                let sides = [old.overall, wanted.get(code)?.overall].map(Value::Score);
                Some(Difference::new(*code, "overall", sides))
            }));
            return Ok(Outcome { largest, ..outcome });
        }
        let delete = "DELETE FROM water.risk WHERE dept = ANY($1)";
        transaction
            .execute(delete, &[&removed])
            .await
            .attempting("removing risk records")?;
        write(&transaction, &different).await?;
        outcome.is_noted = state::finish(transaction, RISK, as_of, load, &outcome).await?;
        Ok(outcome)
    }
}

/// Whether an overall score moves by two bands or more.
fn moves(old: &RiskRecord, new: &RiskRecord) -> bool {
    let band = |record: &RiskRecord| RiskRating::from_overall(record.overall.get()) as u8;
    band(old).abs_diff(band(new)) >= 2
}

/// Builds a row's record. A row without a date takes the load's, or the stored one if nothing else changed.
fn record(row: &RiskRow, stored: Option<&RiskRecord>, as_of: Timestamp) -> RiskRecord {
    let mut record = RiskRecord {
        departement: row.departement,
        flood: row.flood,
        drought: row.drought,
        overall: row.overall,
        rating: row
            .rating
            .unwrap_or_else(|| RiskRating::from_overall(row.overall.get())),
        updated_at: row.updated_at.unwrap_or(as_of),
    };
    if let (None, Some(stored)) = (row.updated_at, stored)
        && *stored
            == (RiskRecord {
                updated_at: stored.updated_at,
                ..record
            })
    {
        record.updated_at = stored.updated_at;
    }
    record
}

async fn read(transaction: &Transaction<'_>) -> Result<BTreeMap<&'static str, RiskRecord>, Error> {
    let sql = "SELECT dept, flood, drought, overall, rating, updated_at FROM water.risk";
    let rows = transaction
        .query(sql, &[])
        .await
        .attempting("reading the risk records")?;
    let by_code =
        |row| departements::risk_record(row).map(|record| (record.departement.code, record));
    rows.iter().map(by_code).collect()
}

async fn write(transaction: &Transaction<'_>, records: &[&RiskRecord]) -> Result<(), Error> {
    let sql = "INSERT INTO water.risk (dept, flood, drought, overall, rating, updated_at) \
               VALUES ($1, $2, $3, $4, $5, $6) \
               ON CONFLICT (dept) DO UPDATE SET flood = excluded.flood, drought = excluded.drought, \
               overall = excluded.overall, rating = excluded.rating, updated_at = excluded.updated_at";
    let statement = transaction
        .prepare(sql)
        .await
        .attempting("writing risk records")?;
    for record in records {
        let [flood, drought, overall] =
            [record.flood, record.drought, record.overall].map(Number::get);
        let (code, rating) = (record.departement.code, record.rating.as_str());
        transaction
            .execute(
                &statement,
                &[
                    &code,
                    &flood,
                    &drought,
                    &overall,
                    &rating,
                    &Moment(record.updated_at),
                ],
            )
            .await
            .attempting("writing risk records")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use water_domain::departement;

    use super::*;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_millis(day * 86_400_000).unwrap()
    }

    fn row(overall: f64) -> RiskRow {
        let [flood, drought, overall] =
            [1.0, 2.0, overall].map(|number| Number::try_from(number).unwrap());
        let departement = departement::parse("34").unwrap();
        RiskRow {
            departement,
            flood,
            drought,
            overall,
            rating: None,
            updated_at: None,
        }
    }

    #[test]
    fn a_row_without_a_date_takes_the_loads() {
        assert_eq!(record(&row(50.0), None, day(3)).updated_at, day(3));
        let own = RiskRow {
            updated_at: Some(day(1)),
            ..row(50.0)
        };
        assert_eq!(record(&own, None, day(3)).updated_at, day(1));
    }

    #[test]
    fn a_row_that_says_what_is_stored_keeps_its_date() {
        let stored = record(&row(50.0), None, day(3));
        assert_eq!(record(&row(50.0), Some(&stored), day(5)), stored);
        assert_eq!(record(&row(51.0), Some(&stored), day(5)).updated_at, day(5));
    }
}

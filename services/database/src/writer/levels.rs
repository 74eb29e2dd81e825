//! The legal alert level of each département and its date, with a stress record or without one.
//! VigiEau's loads set them; a stress file may.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::{Row, Transaction};
use water_domain::{Departement, Level, StressRecord, Timestamp, departement};

use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::load::{Load, LoadError, Outcome, Refusal};
use crate::writer::state::{self, Input};
use crate::writer::stress::{self, STRESS, Stored};
use crate::writer::{Writer, guards};

const VIGIEAU: Input = Input {
    name: "vigieau",
    dataset: STRESS.dataset,
    whole: true,
};

/// A level that somebody set, which no index gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Legal {
    pub(super) level: Level,
    pub(super) as_of: Timestamp,
    pub(super) synthetic: bool,
}

impl Legal {
    /// Whether a level of this load stays behind the stored one: it is older, or invented where
    /// the stored one is measured.
    pub(super) fn outranks(&self, as_of: Timestamp, load: &Load) -> bool {
        !load.force && (as_of < self.as_of || (load.synthetic && !self.synthetic))
    }
}

impl Writer {
    /// Sets the level of each département; `None` (the register does not know) keeps the stored
    /// one. A level without a stress record is stored for the day on which there is one, and
    /// reported.
    pub async fn update_levels(
        &mut self,
        levels: &[(&'static Departement, Option<Level>)],
        as_of: Timestamp,
        load: &Load,
    ) -> Result<Outcome, LoadError> {
        let transaction = self.begin_load(VIGIEAU.dataset, load).await?;
        state::check(&transaction, VIGIEAU, as_of, load).await?;
        let (legal, records) = (read(&transaction).await?, stress::read(&transaction).await?);
        let mut update = Update::of(levels, &legal, &records, as_of, load);
        guard(levels, &legal, &update, load)?;
        if load.dry_run {
            update.outcome.largest = update.changes;
            return Ok(update.outcome);
        }
        write(&transaction, &update.legal).await?;
        stress::write(&transaction, update.records.iter()).await?;
        state::finish(transaction, VIGIEAU, as_of, load, &update.outcome).await?;
        Ok(update.outcome)
    }
}

/// What a load of levels changes.
#[derive(Default)]
struct Update {
    outcome: Outcome,
    legal: BTreeMap<&'static str, Legal>,
    records: Vec<Stored>,
    /// Measured levels that become others.
    moved: usize,
    /// Served levels that become others, as `34: crise → normal`.
    changes: Vec<String>,
}

impl Update {
    fn of(
        levels: &[(&'static Departement, Option<Level>)],
        legal: &BTreeMap<&'static str, Legal>,
        records: &BTreeMap<&'static str, Stored>,
        as_of: Timestamp,
        load: &Load,
    ) -> Self {
        let mut update = Self::default();
        update.outcome.rows = levels.len() as u64;
        for (departement, level) in levels {
            let code = departement.code;
            let (old, record) = (legal.get(code), records.get(code));
            if record.is_none() && level.is_some() {
                update.outcome.without_record.push(code.to_owned());
            }
            let given = level.filter(|_| !old.is_some_and(|old| old.outranks(as_of, load)));
            match given {
                Some(level) => {
                    let new = Legal {
                        level,
                        as_of,
                        synthetic: load.synthetic,
                    };
                    update.set(code, new, old, record);
                }
                None if record.is_some() => update.outcome.kept.push(code.to_owned()),
                None => {}
            }
        }
        update
    }

    fn set(
        &mut self,
        code: &'static str,
        new: Legal,
        old: Option<&Legal>,
        record: Option<&Stored>,
    ) {
        let changed = old.is_none_or(|old| old.level != new.level);
        self.moved += usize::from(old.is_some_and(|old| !old.synthetic) && changed);
        if old != Some(&new) {
            self.legal.insert(code, new);
        }
        let Some(old) = record else {
            self.outcome.laid_aside += u64::from(changed);
            return;
        };
        let record = StressRecord {
            level: new.level,
            ..old.record
        };
        if record != old.record {
            self.outcome.updated += 1;
            self.changes
                .push(format!("{code}: {} → {}", old.record.level, record.level));
        }
        if record != old.record || old.level_derived {
            self.records.push(Stored {
                record,
                level_derived: false,
            });
        }
    }
}

/// The register's answer is whole, and no other day's by mistake.
fn guard(
    levels: &[(&'static Departement, Option<Level>)],
    legal: &BTreeMap<&'static str, Legal>,
    update: &Update,
    load: &Load,
) -> Result<(), Refusal> {
    let given: BTreeSet<&str> = levels
        .iter()
        .map(|(departement, _)| departement.code)
        .collect();
    let omitted = legal.keys().filter(|code| !given.contains(*code));
    let omitted: Vec<String> = omitted.map(|code| (*code).to_owned()).collect();
    if !omitted.is_empty() && !load.allow_missing {
        return Err(Refusal::Omits {
            dataset: VIGIEAU.name,
            departements: omitted,
        });
    }
    let measured = legal.values().filter(|legal| !legal.synthetic).count();
    guards::moved(VIGIEAU.name, update.moved, measured, load)
}

/// All stored levels by the département's code.
pub(super) async fn read(
    transaction: &Transaction<'_>,
) -> Result<BTreeMap<&'static str, Legal>, Error> {
    const ATTEMPT: &str = "reading the alert levels";
    let sql = "SELECT dept, level, as_of, synthetic FROM water.levels";
    let rows = transaction.query(sql, &[]).await.attempting(ATTEMPT)?;
    let legal = |row: &Row| {
        let departement = departement::parse(row.get("dept"));
        let departement = departement.map_err(|why| Error::stored(ATTEMPT, why))?;
        let level = row.get::<_, &str>("level").parse::<Level>();
        let legal = Legal {
            level: level.map_err(|why| Error::stored(ATTEMPT, why))?,
            as_of: row.get::<_, Moment>("as_of").0,
            synthetic: row.get("synthetic"),
        };
        Ok((departement.code, legal))
    };
    rows.iter().map(legal).collect()
}

/// Stores levels, over those of the same départements.
pub(super) async fn write(
    transaction: &Transaction<'_>,
    legal: &BTreeMap<&'static str, Legal>,
) -> Result<(), Error> {
    const ATTEMPT: &str = "writing alert levels";
    let sql = "INSERT INTO water.levels (dept, level, as_of, synthetic) VALUES ($1, $2, $3, $4) \
               ON CONFLICT (dept) DO UPDATE SET level = excluded.level, as_of = excluded.as_of, \
               synthetic = excluded.synthetic";
    let statement = transaction.prepare(sql).await.attempting(ATTEMPT)?;
    for (code, legal) in legal {
        let (level, as_of) = (legal.level.as_str(), Moment(legal.as_of));
        transaction
            .execute(&statement, &[code, &level, &as_of, &legal.synthetic])
            .await
            .attempting(ATTEMPT)?;
    }
    Ok(())
}

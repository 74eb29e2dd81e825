//! A load of the register's levels: the legal ones, and their copies in the stress records.

use std::collections::{BTreeMap, BTreeSet};

use water_domain::{Departement, Level, StressRecord, Timestamp};

use crate::writer::difference::{self, Difference, Value};
use crate::writer::legal::{self, Legal};
use crate::writer::load::{Load, LoadError, Outcome, Refusal};
use crate::writer::state::{self, Input};
use crate::writer::stress::{self, STRESS, Stored};
use crate::writer::{Writer, guards};

const VIGIEAU: Input = Input {
    name: "vigieau",
    dataset: STRESS.dataset,
    whole: true,
};

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
        let legal = legal::read(&transaction).await?;
        let records = stress::read(&transaction).await?;
        let mut update = Update::of(levels, &legal, &records, as_of, load);
        guard(levels, &legal, &update, load)?;
        if load.dry_run {
            update.outcome.largest = difference::largest(update.changes.into_iter());
            return Ok(update.outcome);
        }
        legal::write(&transaction, &update.legal).await?;
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
    /// Served levels that become others.
    changes: Vec<Difference>,
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
            let sides = [old.record.level, record.level].map(Value::Level);
            self.changes.push(Difference::of(code, "level", sides));
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

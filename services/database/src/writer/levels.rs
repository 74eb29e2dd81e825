//! Loads of the register's levels: the legal ones, and their copies in the stress records.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Transaction;
use water_domain::{Departement, Level, Timestamp};

use crate::writer::difference::{self, Difference, Value};
use crate::writer::legal::{self, Legal};
use crate::writer::lifting::{self, Levels, Lifting};
use crate::writer::load::{Load, LoadError, Outcome, Refusal};
use crate::writer::state::{self, Input};
use crate::writer::stress::{self, STRESS, StoredStress};
use crate::writer::{Writer, guards};

const VIGIEAU: Input = Input {
    name: "vigieau",
    dataset: STRESS.dataset,
    whole: true,
};

impl Writer {
    /// Sets the level of each département; `None` (the register does not know) keeps the stored one, as does one that is
    /// left out where so many entries of the answer are `unnamed`. A level without a stress record is stored until there is
    /// one, and reported. Levels that would end in a refused answer are remembered.
    pub async fn update_levels(
        &mut self,
        levels: &[(&'static Departement, Option<Level>)],
        unnamed: usize,
        as_of: Timestamp,
        load: &Load,
    ) -> Result<Outcome, LoadError> {
        let transaction = self.begin_load(VIGIEAU.dataset, load).await?;
        state::check(&transaction, VIGIEAU, as_of, load).await?;
        let legal = legal::read(&transaction).await?;
        let records = stress::read(&transaction).await?;
        let mut update = Update::new(levels, &legal, &records, as_of, load);
        let omitted = omitted(levels, &legal);
        if let Err(refusal) = guard(levels, &legal, &omitted, unnamed, load) {
            return refuse(transaction, &update.ended, refusal, load).await;
        }
        let kept = omitted.into_iter();
        update
            .outcome
            .kept
            .extend(kept.filter(|code| records.contains_key(&**code)));
        let lifting = Lifting::new(&legal, levels, update.ended.len());
        if lifting.is_doubtful() {
            if !load.allow_lifting {
                let refused_at = lifting::refused_at(&transaction, &update.ended).await?;
                if refused_at.is_none() {
                    if !load.dry_run {
                        lifting::remember(&transaction, &update.ended).await?;
                    }
                    return refuse(transaction, &update.ended, refusal(lifting), load).await;
                }
                update.outcome.lifting_refused_at = refused_at;
            }
            // Levels that end were checked above.
            update.moved -= lifting.ended;
        }
        let measured = legal::measured(&legal);
        let moved = guards::moved(VIGIEAU.name, "levels", update.moved, measured, load);
        if let Err(refusal) = moved {
            return refuse(transaction, &update.ended, refusal, load).await;
        }
        if load.dry_run {
            update.outcome.largest = difference::largest(update.changes.into_iter());
            return Ok(update.outcome);
        }
        legal::write(&transaction, &update.legal).await?;
        stress::write(&transaction, update.records.iter()).await?;
        lifting::forget(&transaction).await?;
        update.outcome.is_noted =
            state::finish(transaction, VIGIEAU, as_of, load, &update.outcome).await?;
        Ok(update.outcome)
    }
}

/// Ends a load whose answer is refused. Of the levels that were remembered, those that do not end in it are forgotten.
async fn refuse(
    transaction: Transaction<'_>,
    ended: &[&str],
    refusal: Refusal,
    load: &Load,
) -> Result<Outcome, LoadError> {
    if !load.dry_run {
        lifting::forget_others(&transaction, ended).await?;
        state::commit(transaction).await?;
    }
    Err(refusal.into())
}

/// Changes that a load of levels makes.
#[derive(Default)]
struct Update {
    outcome: Outcome,
    legal: BTreeMap<&'static str, Legal>,
    records: Vec<StoredStress>,
    /// Measured levels that change.
    moved: usize,
    /// Départements whose measured level falls from above `normal` to it.
    ended: Vec<&'static str>,
    /// Served levels that change.
    changes: Vec<Difference>,
}

impl Update {
    fn new(
        levels: &Levels,
        legal: &BTreeMap<&'static str, Legal>,
        records: &BTreeMap<&'static str, StoredStress>,
        as_of: Timestamp,
        load: &Load,
    ) -> Self {
        let mut update = Self::default();
        update.outcome.rows = levels.len() as u64;
        update.outcome.not_given = not_given(levels, legal);
        for (departement, level) in levels {
            let code = departement.code;
            let (old, record) = (legal.get(code), records.get(code));
            if record.is_none() && level.is_some() {
                update.outcome.without_record.push(code.to_owned());
            }
            let new = level.map(|level| Legal {
                level,
                as_of,
                synthetic: load.synthetic,
                register: true,
            });
            let given = new.filter(|new| !old.is_some_and(|old| old.outranks(new, load)));
            match given {
                Some(new) => update.set(code, new, old, record),
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
        record: Option<&StoredStress>,
    ) {
        let changed = old.is_none_or(|old| old.level != new.level);
        self.moved += usize::from(old.is_some_and(|old| !old.synthetic) && changed);
        if new.level == Level::Normal && old.is_some_and(Legal::is_restriction) {
            self.ended.push(code);
        }
        if old != Some(&new) {
            self.legal.insert(code, new);
            self.outcome.restated += 1;
        }
        let Some(old) = record else {
            self.outcome.laid_aside += u64::from(changed);
            return;
        };
        if new.level != old.level {
            let sides = [old.level, new.level].map(Value::Level);
            self.changes.push(Difference::new(code, "level", sides));
        }
        // A derived level that the register confirms is a legal one from then on.
        let record = StoredStress {
            level: new.level,
            level_derived: false,
            ..*old
        };
        if record != *old {
            self.outcome.updated += 1;
            self.records.push(record);
        }
    }
}

/// Départements whose level the register gave before, and now does not: left out, unreadable or unavailable.
fn not_given(levels: &Levels, legal: &BTreeMap<&'static str, Legal>) -> Vec<String> {
    let given = levels.iter().filter(|(_, level)| level.is_some());
    let given: BTreeSet<&str> = given.map(|(departement, _)| departement.code).collect();
    let stored = legal.iter().filter(|(_, legal)| legal.register);
    let codes = stored.map(|(code, _)| (*code).to_owned());
    codes.filter(|code| !given.contains(&**code)).collect()
}

/// Least number of départements in the register's first answer: some registers leave overseas out, none has a region
/// only.
const LEAST: usize = 90;

/// Départements that have a legal level, and no entry in the answer.
fn omitted(levels: &Levels, legal: &BTreeMap<&'static str, Legal>) -> Vec<String> {
    let given = levels.iter().map(|(departement, _)| departement.code);
    let given: BTreeSet<&str> = given.collect();
    let omitted = legal.keys().filter(|code| !given.contains(*code));
    omitted.map(|code| (*code).to_owned()).collect()
}

/// Refuses an incomplete answer. Entries without a code that can be read may be those of départements that are left out.
fn guard(
    levels: &Levels,
    legal: &BTreeMap<&'static str, Legal>,
    omitted: &[String],
    unnamed: usize,
    load: &Load,
) -> Result<(), Refusal> {
    if load.allow_missing {
        return Ok(());
    }
    let is_first = !legal.values().any(|legal| legal.register);
    let given = levels.iter().filter(|(_, level)| level.is_some()).count();
    if is_first && given < LEAST {
        return Err(Refusal::Few {
            dataset: VIGIEAU.name,
            given,
            least: LEAST,
        });
    }
    if omitted.len() > unnamed {
        return Err(Refusal::Omits {
            dataset: VIGIEAU.name,
            departements: omitted.to_vec(),
        });
    }
    Ok(())
}

fn refusal(lifting: Lifting) -> Refusal {
    Refusal::Lifts {
        dataset: VIGIEAU.name,
        ended: lifting.ended,
        restricted: lifting.restricted,
    }
}

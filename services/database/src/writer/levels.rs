//! VigiEau's levels: the legal alert level of départements that have a stress record.

use water_domain::{Departement, Level, StressRecord, Timestamp};

use crate::writer::Writer;
use crate::writer::load::{Load, LoadError, Outcome};
use crate::writer::state::{self, Input};
use crate::writer::stress::{self, STRESS, Stored};

const VIGIEAU: Input = Input {
    name: "vigieau",
    dataset: STRESS.dataset,
};

impl Writer {
    /// Sets the level of each département; `None` (the register does not know) keeps the stored
    /// one. A level without a stress record is reported and not stored.
    pub async fn update_levels(
        &mut self,
        levels: &[(&'static Departement, Option<Level>)],
        as_of: Timestamp,
        load: &Load,
    ) -> Result<Outcome, LoadError> {
        let transaction = self.begin().await?;
        state::lock(&transaction, VIGIEAU.dataset).await?;
        state::check(&transaction, VIGIEAU, as_of, load).await?;
        let stored = stress::read(&transaction).await?;
        let mut outcome = Outcome {
            rows: levels.len() as u64,
            ..Outcome::default()
        };
        let mut changed = Vec::new();
        for (departement, level) in levels {
            let code = departement.code;
            match (stored.get(code), level) {
                (None, _) => outcome.without_record.push(code.to_owned()),
                (Some(_), None) => outcome.kept.push(code.to_owned()),
                (Some(old), Some(level)) => {
                    let record = StressRecord {
                        level: *level,
                        ..old.record
                    };
                    outcome.updated += u64::from(record != old.record);
                    changed.extend(
                        (record != old.record || old.level_derived).then_some(Stored {
                            record,
                            level_derived: false,
                        }),
                    );
                }
            }
        }
        stress::write(&transaction, changed.iter()).await?;
        state::finish(transaction, VIGIEAU, Some(as_of), load, &outcome).await?;
        Ok(outcome)
    }
}

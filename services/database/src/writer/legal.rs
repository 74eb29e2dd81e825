//! The legal alert level of each département and its date, with a stress record or without one.
//! VigiEau's loads set them; a stress file may.

use std::collections::BTreeMap;

use tokio_postgres::{Row, Transaction};
use water_domain::{Level, Timestamp, departement};

use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::load::Load;

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

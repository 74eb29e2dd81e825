//! Legal alert level of each département and its date, with or without a stress record. VigiEau's loads set levels; a
//! stress file may, too.

use std::collections::BTreeMap;

use tokio_postgres::{Row, Transaction};
use water_domain::{Level, Timestamp, departement};

use crate::departements::word;
use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::load::Load;

/// A level given by a load, not derived from an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Legal {
    pub(super) level: Level,
    pub(super) as_of: Timestamp,
    pub(super) synthetic: bool,
    /// Whether the register gave the level; otherwise a stress file did.
    pub(super) register: bool,
}

impl Legal {
    /// Whether the stored level stays against a new one: it is newer, of the same date and the register's, or
    /// measured where the new one is synthetic.
    pub(super) fn outranks(&self, new: &Self, load: &Load) -> bool {
        let comes_first = (new.as_of, new.register) < (self.as_of, self.register);
        !load.force && (comes_first || (new.synthetic && !self.synthetic))
    }

    /// Whether the level is measured and above `normal`.
    pub(super) fn is_restriction(&self) -> bool {
        !self.synthetic && self.level > Level::Normal
    }
}

/// Reads all stored levels by the département's code.
pub(super) async fn read(
    transaction: &Transaction<'_>,
) -> Result<BTreeMap<&'static str, Legal>, Error> {
    const ATTEMPT: &str = "reading the alert levels";
    let sql = "SELECT dept, level, as_of, synthetic, register FROM water.levels";
    let rows = transaction.query(sql, &[]).await.attempting(ATTEMPT)?;
    let legal = |row: &Row| {
        let departement = departement::parse(row.get("dept"));
        let departement = departement.map_err(|why| Error::stored(ATTEMPT, why))?;
        let legal = Legal {
            level: word(ATTEMPT, row, "level")?,
            as_of: row.get::<_, Moment>("as_of").0,
            synthetic: row.get("synthetic"),
            register: row.get("register"),
        };
        Ok((departement.code, legal))
    };
    rows.iter().map(legal).collect()
}

/// Number of measured levels.
pub(super) fn measured(legal: &BTreeMap<&str, Legal>) -> usize {
    legal.values().filter(|legal| !legal.synthetic).count()
}

/// Stores levels, replacing those of the same départements.
pub(super) async fn write(
    transaction: &Transaction<'_>,
    legal: &BTreeMap<&'static str, Legal>,
) -> Result<(), Error> {
    const ATTEMPT: &str = "writing alert levels";
    let sql = "INSERT INTO water.levels (dept, level, as_of, synthetic, register) \
               VALUES ($1, $2, $3, $4, $5) \
               ON CONFLICT (dept) DO UPDATE SET level = excluded.level, as_of = excluded.as_of, \
               synthetic = excluded.synthetic, register = excluded.register";
    let statement = transaction.prepare(sql).await.attempting(ATTEMPT)?;
    for (code, legal) in legal {
        let (level, as_of) = (legal.level.as_str(), Moment(legal.as_of));
        transaction
            .execute(
                &statement,
                &[code, &level, &as_of, &legal.synthetic, &legal.register],
            )
            .await
            .attempting(ATTEMPT)?;
    }
    Ok(())
}

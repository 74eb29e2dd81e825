//! Provenance of the stored data: the loads, newest first.

use serde::Serialize;
use tokio_postgres::Row;
use water_domain::Timestamp;

use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::Writer;

/// A load.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// `stress`, `risk`, `vigieau`, `analyses` or `audits`.
    pub dataset: String,
    /// Time of the load, by the database's clock.
    pub loaded_at: Timestamp,
    /// The moment that its rows describe; histories have none.
    pub as_of: Option<Timestamp>,
    /// Rows in the file.
    pub rows: i64,
    /// Rows that were new.
    pub inserted: i64,
    /// Rows that changed.
    pub updated: i64,
    /// Rows that were removed.
    pub removed: i64,
    /// Départements whose level or rating was derived.
    pub derived: Vec<String>,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// Origin of the file, in its loader's words.
    pub source: String,
    /// A public link to the origin.
    pub source_url: Option<String>,
    /// Licence of the data.
    pub licence: Option<String>,
    /// Generated, not measured.
    pub synthetic: bool,
    /// User of the loader.
    pub loaded_by: String,
}

impl Writer {
    /// Returns the last `limit` loads.
    pub async fn provenance(&mut self, limit: u32) -> Result<Vec<Provenance>, Error> {
        let sql = "SELECT dataset, loaded_at, as_of, rows, inserted, updated, removed, derived, \
                          encode(sha256, 'hex') AS sha256, source, source_url, licence, \
                          synthetic, loaded_by \
                   FROM water.loads ORDER BY id DESC LIMIT $1";
        let rows = self
            .client
            .query(sql, &[&i64::from(limit)])
            .await
            .attempting("reading the provenance of the data")?;
        Ok(rows.iter().map(provenance).collect())
    }
}

fn provenance(row: &Row) -> Provenance {
    Provenance {
        dataset: row.get("dataset"),
        loaded_at: row.get::<_, Moment>("loaded_at").0,
        as_of: row.get::<_, Option<Moment>>("as_of").map(|moment| moment.0),
        rows: row.get("rows"),
        inserted: row.get("inserted"),
        updated: row.get("updated"),
        removed: row.get("removed"),
        derived: row.get("derived"),
        sha256: row.get("sha256"),
        source: row.get("source"),
        source_url: row.get("source_url"),
        licence: row.get("licence"),
        synthetic: row.get("synthetic"),
        loaded_by: row.get("loaded_by"),
    }
}

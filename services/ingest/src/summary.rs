//! Summary of a load on standard output: one JSON object.

use std::io::{self, Write};

use serde::Serialize;
use water_database::writer::{Difference, Outcome};
use water_domain::Timestamp;
use water_runtime::json;

use crate::failure::Failure;

/// Outcome of a load.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// New content is stored.
    Loaded,
    /// Every row was stored already; the load's date, source, licence or bytes are new.
    ProvenanceUpdated,
    /// Everything was stored already.
    Unchanged,
    /// The load was a dry run or a check, and found nothing to refuse.
    Checked,
    /// The file has problems, or a guard refused it.
    Refused,
    /// The infrastructure failed.
    Failed,
    /// The connection was lost while the load was committed.
    Unknown,
}

/// A load in numbers.
#[derive(Serialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// `stress`, `risk`, `analyses`, `audits` or `vigieau`.
    pub dataset: &'static str,
    /// The file's name.
    pub file: String,
    /// Outcome of the load.
    pub outcome: Ending,
    /// The date that the data describes.
    pub as_of: Timestamp,
    /// Rows that were read.
    pub rows: u64,
    /// New rows.
    pub inserted: u64,
    /// Rows whose content changed.
    pub updated: u64,
    /// Rows that are equal to the stored ones.
    pub unchanged: u64,
    /// Rows that were removed.
    pub removed: u64,
    /// Number of levels or ratings that were derived from the score.
    pub derived: u64,
    /// Number of levels that were kept, because the file gives none, an older one or one of the register's day.
    pub kept: u64,
    /// Départements whose entry in the register's answer cannot be read: their level is kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Codes in the register's answer that are no département's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// Départements whose level is served only once they have a stress record.
    pub without_record: Vec<String>,
    /// The largest changes that a dry run found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<Difference>,
    /// Time since which the levels that end this time for most départements did so in each answer that was compared with
    /// the stored ones, and refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifting_refused_at: Option<Timestamp>,
    /// Rows that a file of a later date had, or that were deleted since: they stay as they are.
    pub older: u64,
    /// Rows of purged accounts.
    pub purged: u64,
    /// Number of problems of the file.
    pub problems: u64,
    /// Number of values that look wrong.
    pub warnings: u64,
    /// SHA-256 of the file; `None` unless it was read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Whether the data is generated, not measured.
    pub synthetic: bool,
    /// Whether nothing was written.
    pub dry_run: bool,
}

impl Summary {
    /// Fills in the outcome of a load.
    pub fn with(mut self, outcome: &Outcome) -> Self {
        self.rows = outcome.rows;
        self.inserted = outcome.inserted;
        self.updated = outcome.updated;
        self.unchanged = outcome.unchanged();
        self.removed = outcome.removed;
        self.derived = outcome.derived.len() as u64;
        self.kept = outcome.kept.len() as u64;
        self.without_record = outcome.without_record.clone();
        self.largest = outcome.largest.clone();
        self.lifting_refused_at = outcome.lifting_refused_at;
        self.older = outcome.older;
        self.purged = outcome.purged;
        self.outcome = if self.dry_run {
            Ending::Checked
        } else if outcome.changed() || outcome.laid_aside > 0 {
            Ending::Loaded
        } else if outcome.is_noted {
            Ending::ProvenanceUpdated
        } else {
            Ending::Unchanged
        };
        self
    }
}

/// Writes one JSON document and a line end.
pub fn print(document: &impl Serialize) -> Result<(), Failure> {
    let mut line = json::to_vec(document);
    line.push(b'\n');
    io::stdout().write_all(&line).map_err(Failure::Output)
}

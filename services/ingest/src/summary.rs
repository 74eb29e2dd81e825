//! What a load says on standard output: one JSON object.

use std::io::{self, Write};

use serde::Serialize;
use water_database::writer::{Difference, Outcome};
use water_domain::Timestamp;

use crate::failure::Failure;

/// How a load ended.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// New content is stored.
    Loaded,
    /// Everything was stored already.
    Unchanged,
    /// It was a dry run, and would have been loaded.
    Checked,
    /// The file has problems, or a guard held it back.
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
    /// How it ended.
    pub outcome: Ending,
    /// The date that the data describes.
    pub as_of: Timestamp,
    /// Rows in the file, as far as it was read.
    pub rows: u64,
    /// New rows.
    pub inserted: u64,
    /// Rows whose content changed.
    pub updated: u64,
    /// Rows that said what is stored.
    pub unchanged: u64,
    /// Rows that are gone.
    pub removed: u64,
    /// How many levels or ratings were derived from the score.
    pub derived: u64,
    /// How many levels were kept, because the file gives none or an older one.
    pub kept: u64,
    /// Départements whose level is served only once they have a stress record.
    pub without_record: Vec<String>,
    /// Of a dry run: what would change most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<Difference>,
    /// Rows that a file of a later date had.
    pub older: u64,
    /// Rows of purged accounts.
    pub purged: u64,
    /// How many problems the file has.
    pub problems: u64,
    /// How many values look wrong.
    pub warnings: u64,
    /// SHA-256 of the file; none when it was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Generated, not measured.
    pub synthetic: bool,
    /// Nothing was written.
    pub dry_run: bool,
}

impl Summary {
    /// Fills in what a load did.
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
        self.older = outcome.older;
        self.purged = outcome.purged;
        let stored = outcome.changed() || outcome.laid_aside > 0;
        self.outcome = match (self.dry_run, stored) {
            (true, _) => Ending::Checked,
            (false, true) => Ending::Loaded,
            (false, false) => Ending::Unchanged,
        };
        self
    }
}

/// Writes one JSON document and a line end.
pub fn print(document: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, document)
        .map_err(io::Error::from)
        .map_err(Failure::Output)?;
    writeln!(out).map_err(Failure::Output)
}

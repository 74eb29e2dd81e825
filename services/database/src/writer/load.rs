//! What every load says about itself, how it ends, and what its guards refuse.

use std::fmt;

use water_domain::Timestamp;

use crate::error::Error;
use crate::writer::difference::Difference;

/// A load's circumstances: where its rows come from, and how careful it is.
#[derive(Clone, Debug)]
pub struct Load {
    /// SHA-256 of the file as it was read.
    pub sha256: [u8; 32],
    /// Where the file comes from, in its loader's words.
    pub source: String,
    /// A public link to it, which clients are told.
    pub source_url: Option<String>,
    /// Its licence, which clients are told.
    pub licence: Option<String>,
    /// Generated, not measured.
    pub synthetic: bool,
    /// Who loads.
    pub loaded_by: String,
    /// A replacing load may remove départements, a first one or the register's leave some out.
    pub allow_missing: bool,
    /// Older data may replace newer, and generated data measured.
    pub force: bool,
    /// How many percent of the measured records may move far, at most 100.
    pub max_changed: u8,
    /// Everything is compared and nothing is written.
    pub dry_run: bool,
}

/// What a load did, or would have done.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Rows in the file.
    pub rows: u64,
    /// Rows that are new.
    pub inserted: u64,
    /// Rows whose content changed.
    pub updated: u64,
    /// Rows that are gone.
    pub removed: u64,
    /// Départements whose level or rating was derived from the score.
    pub derived: Vec<String>,
    /// Départements whose stored level was kept, because the file gives none or an older one.
    pub kept: Vec<String>,
    /// Départements in the file that have no stress record to take a level.
    pub without_record: Vec<String>,
    /// Levels of such départements that are new: they are stored, and served with the record.
    pub laid_aside: u64,
    /// Rows that a file of a later date had: what is stored stays.
    pub older: u64,
    /// Rows of purged accounts, which were skipped.
    pub purged: u64,
    /// Of a dry run: what would change most, by column the largest difference first.
    pub largest: Vec<Difference>,
}

impl Outcome {
    /// Whether readers see other content than before.
    pub fn changed(&self) -> bool {
        self.inserted + self.updated + self.removed > 0
    }

    /// Rows that say what is stored already.
    pub fn unchanged(&self) -> u64 {
        self.rows
            .saturating_sub(self.inserted + self.updated + self.without_record.len() as u64)
            .saturating_sub(self.older + self.purged)
    }
}

/// The two histories, which have one shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum History {
    /// Risk analyses, `hydrorisk`.
    Analyses,
    /// Compliance audits, `conformite`.
    Audits,
}

impl History {
    /// The dataset's and the table's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Analyses => "analyses",
            Self::Audits => "audits",
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A row that repeats an earlier one's account and id with different content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// Its line.
    pub line: u64,
    /// The line of the record's first row.
    pub first_line: u64,
}

/// A load that did not happen; the stored data is as it was.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The rows are good, and a guard holds them back.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The same record stands twice in the file, with different content.
    #[error("{total} rows repeat a record with different content")]
    Conflicts {
        /// The first of them, in the file's order.
        first: Vec<Conflict>,
        /// How many there are.
        total: u64,
    },
    /// The connection was lost while the load was committed: nobody knows whether it is stored.
    #[error("the connection was lost while committing")]
    Uncertain(#[source] Error),
    /// The database.
    #[error(transparent)]
    Database(#[from] Error),
}

/// What a guard holds back, and how to say that it is meant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Départements that are stored are not in the file.
    #[error(
        "{dataset}: the file would remove départements that it does not have: {}: \
         add --allow-missing if this is meant",
        .departements.join(", ")
    )]
    Removes {
        /// The dataset.
        dataset: &'static str,
        /// Their codes.
        departements: Vec<String>,
    },
    /// A first file does not have all départements.
    #[error(
        "{dataset}: nothing is stored yet, and the file lacks départements: {}: \
         add --allow-missing if this is meant",
        .departements.join(", ")
    )]
    Incomplete {
        /// The dataset.
        dataset: &'static str,
        /// Their codes.
        departements: Vec<String>,
    },
    /// The register's answer leaves out départements that have a legal level.
    #[error(
        "{dataset}: the file leaves out départements that have a legal level: {}: \
         add --allow-missing if this is meant",
        .departements.join(", ")
    )]
    Omits {
        /// The input.
        dataset: &'static str,
        /// Their codes.
        departements: Vec<String>,
    },
    /// Too much is far from what is stored.
    #[error(
        "{dataset}: {moved} of {of} measured records would move far, more than {allowed} percent: \
         raise --max-changed if this is meant"
    )]
    Moves {
        /// The input.
        dataset: &'static str,
        /// Records that move by two bands or more; levels that become others.
        moved: usize,
        /// Measured records that are stored.
        of: usize,
        /// Percent.
        allowed: u8,
    },
    /// The stored data is newer.
    #[error(
        "{dataset}: as of {given} is older than the stored {stored}: add --force if this is meant"
    )]
    Older {
        /// The input.
        dataset: &'static str,
        /// `--as-of`.
        given: Timestamp,
        /// Of the last load.
        stored: Timestamp,
    },
    /// The stored data is measured, the file's is not.
    #[error("{dataset}: synthetic data would replace measured data: add --force if this is meant")]
    Measured {
        /// The input.
        dataset: &'static str,
    },
}

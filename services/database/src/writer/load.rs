//! What every load says about itself, how it ends, and what its guards refuse.

use std::fmt;

use water_domain::Timestamp;

use crate::error::Error;
use crate::writer::history::Conflict;

/// A load's circumstances: where its rows come from, and how careful it is.
#[derive(Clone, Debug)]
pub struct Load {
    /// SHA-256 of the file as it was read.
    pub sha256: [u8; 32],
    /// Where the file comes from, in its loader's words.
    pub source: String,
    /// Generated, not measured.
    pub synthetic: bool,
    /// Who loads.
    pub loaded_by: String,
    /// A replacing load may remove départements.
    pub allow_missing: bool,
    /// An as-of date older than the stored one may be loaded.
    pub force: bool,
    /// Everything is done and then taken back.
    pub dry_run: bool,
}

/// What a load did, or would have done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
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
    /// Départements whose stored level was kept, because the file gives none.
    pub kept: Vec<String>,
    /// Départements in the file that have no stress record to take a level.
    pub without_record: Vec<String>,
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
    pub fn as_str(self) -> &'static str {
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

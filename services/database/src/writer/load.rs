//! Circumstances of a load, its outcome, and the refusals of its guards.

use std::fmt;

use water_domain::Timestamp;

use crate::error::Error;
use crate::writer::difference::Difference;

/// Circumstances of a load: the origin of its rows, and its options.
#[derive(Clone, Debug)]
pub struct Load {
    /// SHA-256 of the file as it was read.
    pub sha256: [u8; 32],
    /// Origin of the file, in its loader's words.
    pub source: String,
    /// A public link to the origin, shown to clients.
    pub source_url: Option<String>,
    /// Licence of the data, shown to clients.
    pub licence: Option<String>,
    /// Generated, not measured.
    pub synthetic: bool,
    /// User of the loader.
    pub loaded_by: String,
    /// A replacing load may remove départements; a first one or the register's may leave some out.
    pub allow_missing: bool,
    /// Levels may end for most of the départements that have one above `normal`.
    pub allow_lifting: bool,
    /// Older data may replace newer, and generated data measured.
    pub force: bool,
    /// Percentage of the measured records that may move far, at most 100.
    pub max_changed: u8,
    /// Everything is compared and nothing is written.
    pub dry_run: bool,
}

/// Outcome of a load or of its dry run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Rows in the file.
    pub rows: u64,
    /// Rows that are new.
    pub inserted: u64,
    /// Rows whose content changed.
    pub updated: u64,
    /// Rows that were removed.
    pub removed: u64,
    /// Départements whose level or rating was derived from the score.
    pub derived: Vec<String>,
    /// Départements whose stored level was kept, because the file gives none, an older one or one of
    /// the register's day.
    pub kept: Vec<String>,
    /// Départements whose level the register gave before, and its answer does not.
    pub not_given: Vec<String>,
    /// Départements in the file that have no stress record to take a level.
    pub without_record: Vec<String>,
    /// Levels of such départements that are new: they are stored, and served with the record.
    pub laid_aside: u64,
    /// Levels whose date or origin changed, whether or not they changed themselves.
    pub restated: u64,
    /// Time since which the levels that end now for most départements did so in each answer that was compared with them,
    /// and refused.
    pub lifting_refused_at: Option<Timestamp>,
    /// Rows that a file of a later date had, or that were deleted as of a later date: they stay as they are.
    pub older: u64,
    /// Rows of purged accounts, which were skipped.
    pub purged: u64,
    /// Whether the load was added to the provenance: it changed content, or its bytes or what was said of them are new.
    pub is_noted: bool,
    /// Largest changes of a dry run, by column the largest difference first.
    pub largest: Vec<Difference>,
}

impl Outcome {
    /// Whether readers see other content than before, apart from the date or origin of a level.
    pub fn changed(&self) -> bool {
        self.inserted + self.updated + self.removed > 0
    }

    /// Rows equal to the stored ones.
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
    /// Line of the row.
    pub line: u64,
    /// The line of the record's first row.
    pub first_line: u64,
}

/// A failed load; the stored data is unchanged, except perhaps after `Uncertain`.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A guard refuses rows that are otherwise good.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The file has the same record twice, with different content.
    #[error("{total} rows repeat a record with different content")]
    Conflicts {
        /// The first conflicts, in the file's order.
        first: Vec<Conflict>,
        /// Number of conflicts.
        total: u64,
    },
    /// The connection was lost during the commit: it is unknown whether the load is stored.
    #[error("the connection was lost while committing")]
    Uncertain(#[source] Error),
    /// An error of the database.
    #[error(transparent)]
    Database(#[from] Error),
}

/// A guard's refusal, and the option that overrides it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The file lacks stored départements.
    #[error(
        "{dataset}: the file would remove départements that it does not have: {}: \
         add --allow-missing if this is meant",
        .departements.join(", ")
    )]
    Removes {
        /// The dataset.
        dataset: &'static str,
        /// Codes of the départements.
        departements: Vec<String>,
    },
    /// A first file lacks départements.
    #[error(
        "{dataset}: nothing is stored yet, and the file lacks départements: {}: \
         add --allow-missing if this is meant",
        .departements.join(", ")
    )]
    Incomplete {
        /// The dataset.
        dataset: &'static str,
        /// Codes of the départements.
        departements: Vec<String>,
    },
    /// The register's first answer has too few départements.
    #[error(
        "{dataset}: no level of the register is stored yet, and the file has too few départements, {given} of at least {least}: \
         add --allow-missing if this is meant"
    )]
    Few {
        /// The input.
        dataset: &'static str,
        /// Départements in the answer.
        given: usize,
        /// Départements that a first answer needs.
        least: usize,
    },
    /// The register's answer ends the levels of most départements.
    #[error(
        "{dataset}: the level would fall to normal in {ended} of {restricted} départements that are above it: \
         add --allow-lifting if this is meant; without it they are loaded if they still end 12 hours on"
    )]
    Lifts {
        /// The input.
        dataset: &'static str,
        /// Measured levels that would become `normal`.
        ended: usize,
        /// Measured levels above `normal` that are stored.
        restricted: usize,
    },
    /// A stress file ends the levels of most départements.
    #[error(
        "{dataset}: the level would fall to normal in {ended} of {restricted} départements that are above it: \
         add --allow-lifting if this is meant"
    )]
    Ends {
        /// The input.
        dataset: &'static str,
        /// Measured levels that would become `normal`.
        ended: usize,
        /// Measured levels above `normal` that are stored.
        restricted: usize,
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
        /// Codes of the départements.
        departements: Vec<String>,
    },
    /// The file differs too far from the stored data.
    #[error(
        "{dataset}: {moved} of {of} measured {what} would move far, more than {allowed} percent: \
         raise --max-changed if this is meant"
    )]
    Moves {
        /// The input.
        dataset: &'static str,
        /// `records` or `levels`.
        what: &'static str,
        /// Records that move by two bands or more; levels that become others.
        moved: usize,
        /// Stored records or levels that are measured.
        of: usize,
        /// Limit in percent.
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
        /// Date of the last load.
        stored: Timestamp,
    },
    /// The stored data is measured, the file's is synthetic.
    #[error("{dataset}: synthetic data would replace measured data: add --force if this is meant")]
    Measured {
        /// The input.
        dataset: &'static str,
    },
}

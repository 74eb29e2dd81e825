//! The command line.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use water_domain::{AccountId, Timestamp};

use crate::report::Form;

/// The command line of `water-ingest`.
#[derive(Parser, Debug)]
#[command(
    name = "water-ingest",
    version = water_runtime::version!(),
    about = "Files into the database: the only way in",
    after_help = "The database is named by the environment: WATER_POSTGRES_URL (postgresql://user:password@host/database, \
                  the owner's for migrate, the writer's otherwise) and, for a private authority, WATER_POSTGRES_CA_FILE.\n\
                  Exit status: 0 done, 1 infrastructure, 2 bad data, 3 refused by a guard, 64 wrong usage."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What `water-ingest` can do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Print the SQL that an administrator runs once with psql: roles and database
    BootstrapSql,
    /// Bring the schema up to date, as the database's owner
    Migrate,
    /// Judge a file without a database
    Check(CheckArguments),
    /// Load a file
    Load(LoadArguments),
    /// Generate synthetic data, and load it or write it into a folder
    Demo(DemoArguments),
    /// Remove all rows of an account, for good
    Purge(PurgeArguments),
    /// List what was loaded, newest first: a table on a terminal, JSON elsewhere
    Provenance(ProvenanceArguments),
}

/// A dataset that a file can be loaded into.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dataset {
    /// Water stress: replaces all départements (dept,stressIndex and optionally level,name,synthetic)
    Stress,
    /// Water risk: replaces all départements (dept,flood,drought,overall and optionally rating,updatedAt,name,synthetic)
    Risk,
    /// Risk analyses, upserted (accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt and optionally synthetic)
    Analyses,
    /// Compliance audits, upserted (accountId,id,companyName,sectorCode,deptCode,score,globalRating,createdAt and optionally synthetic)
    Audits,
    /// The national drought register's GET /api/departements: sets the level of stress records
    Vigieau,
}

/// `load`.
#[derive(Args, Debug)]
pub struct LoadArguments {
    /// What the file holds
    pub dataset: Dataset,
    /// CSV or NDJSON (vigieau: JSON), plain or gzip; - is standard input
    pub file: PathBuf,
    /// The date or time that the data describes; histories keep the newest
    #[arg(long, value_name = "DATE", value_parser = as_of)]
    pub as_of: Option<Timestamp>,
    /// Where the data comes from, for the provenance [default: the file's name]
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,
    /// The data is generated, not measured; a row that says so itself needs no flag
    #[arg(long)]
    pub synthetic: bool,
    /// Take a companyName such as "None" or "NA" for a name (analyses, audits)
    #[arg(long)]
    pub allow_null_words: bool,
    #[command(flatten)]
    pub report: ReportArguments,
    #[command(flatten)]
    pub guards: GuardArguments,
}

/// `check`.
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// What the file holds
    pub dataset: Dataset,
    /// CSV or NDJSON (vigieau: JSON), plain or gzip; - is standard input
    pub file: PathBuf,
    /// Take a companyName such as "None" or "NA" for a name (analyses, audits)
    #[arg(long)]
    pub allow_null_words: bool,
    #[command(flatten)]
    pub report: ReportArguments,
}

/// How problems are told.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ReportArguments {
    /// Print problems as text, the first 50, or all as JSON, an object a line
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub report: Form,
    /// Print every problem
    #[arg(long)]
    pub all_problems: bool,
}

impl Command {
    /// How the command tells its problems.
    pub fn report(&self) -> Form {
        match self {
            Self::Load(arguments) => arguments.report.report,
            Self::Check(arguments) => arguments.report.report,
            _ => Form::Text,
        }
    }
}

/// How careful a load is.
#[derive(Args, Clone, Debug, Default)]
pub struct GuardArguments {
    /// Who loads, for the provenance
    #[arg(
        long,
        value_name = "NAME",
        env = "USER",
        default_value = "water-ingest"
    )]
    pub loaded_by: String,
    /// Let a file leave out départements: remove them, or have a first file without all of them
    #[arg(long)]
    pub allow_missing: bool,
    /// Load data that is older than the stored, or synthetic data over measured
    #[arg(long)]
    pub force: bool,
    /// How many percent of the measured records may move far: an index or a score by two of its five
    /// bands, a level of vigieau to any other [default: 50]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub max_changed: Option<u8>,
    /// Compare and report without writing
    #[arg(long)]
    pub dry_run: bool,
}

/// `demo`.
#[derive(Args, Debug)]
pub struct DemoArguments {
    /// The same seed gives the same data
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many accounts have a history: demo-1, demo-2 …
    #[arg(long, default_value = "3", value_name = "N")]
    pub accounts: NonZeroU32,
    /// How many analyses, and how many audits, each account has
    #[arg(long, default_value = "1200", value_name = "N")]
    pub rows_per_account: NonZeroU32,
    /// The date or time that the data describes; histories end there
    #[arg(long, value_name = "DATE", value_parser = as_of, default_value = "2026-01-01")]
    pub as_of: Timestamp,
    /// Write the files into this folder and load nothing
    #[arg(long, value_name = "FOLDER")]
    pub write_to: Option<PathBuf>,
    #[command(flatten)]
    pub guards: GuardArguments,
}

/// `purge`.
#[derive(Args, Debug)]
pub struct PurgeArguments {
    /// The account
    #[arg(long)]
    pub account: AccountId,
    /// Count without removing
    #[arg(long)]
    pub dry_run: bool,
    /// Let later files bring the account back, and remove nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub lift: bool,
    /// Who purges, for the record of it
    #[arg(
        long,
        value_name = "NAME",
        env = "USER",
        default_value = "water-ingest"
    )]
    pub purged_by: String,
}

/// `provenance`.
#[derive(Args, Debug)]
pub struct ProvenanceArguments {
    /// How many loads to list
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub limit: u32,
}

/// A time, or a day: its first moment in UTC.
fn as_of(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text)
        .or_else(|_| Timestamp::parse(&format!("{text}T00:00:00Z")))
        .map_err(|_| {
            "write a day such as 2026-07-01, or a time such as 2026-07-01T06:00:00Z".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_as_of_date_is_a_day_or_a_time() {
        let printed = |text| as_of(text).unwrap().to_string();
        assert_eq!(printed("2026-07-01"), "2026-07-01T00:00:00.000Z");
        assert_eq!(
            printed("2026-07-01T02:00:00+02:00"),
            "2026-07-01T00:00:00.000Z"
        );
        for bad in [
            "",
            "2026-7-1",
            "01/07/2026",
            "2026-07-01T00:00:00",
            "2026-02-30",
        ] {
            assert!(as_of(bad).is_err(), "{bad}");
        }
    }
}

//! The command line.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use water_domain::AccountId;
use water_runtime::line_end::is_line_end;

use crate::as_of::AsOf;
use crate::report::Form;
use crate::source::Encoding;

/// The command line of `water-ingest`.
#[derive(Parser, Debug)]
#[command(
    name = "water-ingest",
    version = water_runtime::version!(),
    about = "Files into the database: the only way in",
    after_help = "The database is named by the environment: WATER_POSTGRES_URL (postgresql://user:password@host/database, \
                  the owner's for migrate, the writer's otherwise) and, for a private authority, WATER_POSTGRES_CA_FILE.\n\
                  A file behind https:// is reached by WATER_SOURCE_USERNAME and _PASSWORD, _CA_FILE, _PROXY, _DEADLINE_SECONDS.\n\
                  Exit status: 0 done, 1 infrastructure, 2 bad data, 3 refused by a guard, 64 wrong usage."
)]
pub struct Arguments {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of `water-ingest`.
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
    /// Remove single rows of an account's history
    Delete(DeleteArguments),
    /// Remove all rows of an account, for good
    Purge(PurgeArguments),
    /// Give every dataset a new version, for rows that changed without a load: clients begin again
    NewEpoch,
    /// Compute totals, anchors and copied levels again and compare them with the stored ones
    Verify(VerifyArguments),
    /// List what was loaded, newest first: a table on a terminal, JSON elsewhere
    Provenance(ProvenanceArguments),
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
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
    /// The national drought register's GET /api/departements: sets alert levels
    Vigieau,
}

/// Arguments of `load`.
#[derive(Args, Debug)]
pub struct LoadArguments {
    /// Dataset of the file
    pub dataset: Dataset,
    /// CSV or NDJSON (vigieau: JSON), plain or gzip; - is standard input, https://… is fetched
    pub file: PathBuf,
    /// The date or time that the data describes, or today (in Europe/Paris); histories keep the newest
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<AsOf>,
    /// The data's source, for the provenance [default: the file's name]
    #[arg(long, value_name = "TEXT", value_parser = label)]
    pub source: Option<String>,
    /// A public link to the data's source, which clients see
    #[arg(long, value_name = "URL", value_parser = link, requires = "source")]
    pub source_url: Option<String>,
    /// The licence of the data, which clients see, such as "Licence Ouverte 2.0"
    #[arg(long, value_name = "TEXT", value_parser = label, requires = "source")]
    pub licence: Option<String>,
    /// The data is generated, not measured; a row that says so itself needs no flag
    #[arg(long)]
    pub synthetic: bool,
    /// Wait until the schema has this version's migrations, at most so long [default: not at all]
    #[arg(long, value_name = "SECONDS")]
    pub wait_for_schema: Option<u32>,
    #[command(flatten)]
    pub reading: ReadingArguments,
    #[command(flatten)]
    pub report: ReportArguments,
    #[command(flatten)]
    pub guards: GuardArguments,
}

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// Dataset of the file
    pub dataset: Dataset,
    /// CSV or NDJSON (vigieau: JSON), plain or gzip; - is standard input, https://… is fetched
    pub file: PathBuf,
    #[command(flatten)]
    pub reading: ReadingArguments,
    #[command(flatten)]
    pub report: ReportArguments,
}

/// Arguments about reading a file.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ReadingArguments {
    /// Encoding of a CSV file
    #[arg(long, default_value = "utf-8")]
    pub encoding: Encoding,
    /// Take a companyName such as "None" or "NA" for a name (analyses, audits)
    #[arg(long)]
    pub allow_null_words: bool,
    /// Take a header without rows for a day on which nothing happened (analyses, audits)
    #[arg(long)]
    pub allow_empty: bool,
    /// Refuse a file with another number of rows: it may be cut off
    #[arg(long, value_name = "N")]
    pub rows: Option<u64>,
}

/// Arguments about reporting problems.
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
    /// Form in which the command reports its problems.
    pub fn report(&self) -> Form {
        match self {
            Self::Load(arguments) => arguments.report.report,
            Self::Check(arguments) => arguments.report.report,
            Self::Verify(arguments) => arguments.report,
            _ => Form::Text,
        }
    }
}

/// Arguments about the guards of a load.
#[derive(Args, Clone, Debug, Default)]
pub struct GuardArguments {
    /// Name of the loader, for the provenance
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
    /// Load levels that end in most of the départements that have one above normal
    #[arg(long)]
    pub allow_lifting: bool,
    /// Load data that is older than the stored, or synthetic data over measured
    #[arg(long)]
    pub force: bool,
    /// Percentage of the measured records that may move far: an index or a score by two of its five
    /// bands, a level of vigieau or stress to any other [default: 50]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub max_changed: Option<u8>,
    /// Compare and report without writing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `demo`.
#[derive(Args, Debug)]
pub struct DemoArguments {
    /// The same seed gives the same data
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of accounts that have a history: demo-1, demo-2 …
    #[arg(long, default_value = "3", value_name = "N")]
    pub accounts: NonZeroU32,
    /// Number of analyses, and of audits, of each account
    #[arg(long, default_value = "1200", value_name = "N")]
    pub rows_per_account: NonZeroU32,
    /// The date or time that the synthetic data describes; histories end there
    #[arg(long, value_name = "DATE", default_value = "2026-01-01")]
    pub as_of: AsOf,
    /// Write the files into this folder and load nothing
    #[arg(
        long,
        value_name = "FOLDER",
        conflicts_with_all = ["allow_missing", "allow_lifting", "force", "max_changed", "dry_run"]
    )]
    pub write_to: Option<PathBuf>,
    #[command(flatten)]
    pub guards: GuardArguments,
}

/// Arguments of `delete`.
#[derive(Args, Debug)]
pub struct DeleteArguments {
    /// The history
    pub history: HistoryName,
    /// The ids of the rows
    #[arg(required_unless_present = "file")]
    pub ids: Vec<String>,
    /// The account whose rows are deleted
    #[arg(long)]
    pub account: AccountId,
    /// A file with an id a line instead, plain or gzip; - is standard input, https://… is fetched
    #[arg(long, conflicts_with = "ids")]
    pub file: Option<PathBuf>,
    /// Encoding of that file
    #[arg(long, default_value = "utf-8", requires = "file")]
    pub encoding: Encoding,
    /// The date or time that the deletion describes: a file as old or older does not bring the rows back [default:
    /// the moment of the command]
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<AsOf>,
    /// Count without deleting
    #[arg(long)]
    pub dry_run: bool,
    /// Name of the deleter, for the provenance
    #[arg(
        long,
        value_name = "NAME",
        env = "USER",
        default_value = "water-ingest"
    )]
    pub deleted_by: String,
}

/// A history, whose rows are an account's own.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum HistoryName {
    /// Risk analyses
    Analyses,
    /// Compliance audits
    Audits,
}

/// Arguments of `verify`.
#[derive(Args, Debug)]
pub struct VerifyArguments {
    /// Say what is wrong as text, or as JSON, an object a line
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub report: Form,
}

/// Arguments of `purge`.
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
    /// Name of the purger, for the record of it
    #[arg(
        long,
        value_name = "NAME",
        env = "USER",
        default_value = "water-ingest"
    )]
    pub purged_by: String,
}

/// Arguments of `provenance`.
#[derive(Args, Debug)]
pub struct ProvenanceArguments {
    /// Number of loads to list
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub limit: u32,
}

/// Largest number of characters of a label; a link may have ten times as many bytes.
const LONGEST: usize = 200;

/// Checks a text that clients are shown.
fn label(text: &str) -> Result<String, &'static str> {
    let breaks = |character: char| character.is_control() || is_line_end(character);
    match text.trim() == text && !text.is_empty() && text.chars().count() <= LONGEST {
        true if !text.contains(breaks) => Ok(text.to_owned()),
        _ => Err("write at most 200 characters on one line, without white space around them"),
    }
}

/// Checks a link that clients may follow: it is shown to everyone.
fn link(text: &str) -> Result<String, &'static str> {
    const FORM: &str = "write a public link, such as https://www.data.gouv.fr/datasets/x";
    let uri: ureq::http::Uri = text.parse().map_err(|_| FORM)?;
    let public = matches!(uri.scheme_str(), Some("https" | "http"));
    let authority = uri.authority().map(|authority| authority.as_str());
    match authority {
        Some(authority) if authority.contains('@') => {
            Err("the link has credentials in it: clients would see them")
        }
        Some(_) if public && text.len() <= 10 * LONGEST => Ok(text.to_owned()),
        _ => Err(FORM),
    }
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
    fn what_clients_are_shown_is_a_link_or_a_short_line() {
        for good in [
            "https://www.data.gouv.fr/datasets/x?y=1",
            "http://data.example",
        ] {
            assert_eq!(link(good), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "data.example",
            "ftp://data.example",
            "https://u:p@data.example/x",
            "/x",
        ] {
            assert!(link(bad).is_err(), "{bad}");
        }
        assert!(label("Licence Ouverte 2.0").is_ok());
        for bad in ["", " x", "a\nb", "a\u{2028}b", "a\u{85}b", &"x".repeat(201)] {
            assert!(label(bad).is_err(), "{bad}");
        }
        let load = ["water-ingest", "load", "stress", "-"];
        let words = load.into_iter().chain(["--source", "a\u{2028}b"]);
        let refused = Arguments::try_parse_from(words).unwrap_err().to_string();
        assert!(
            refused.contains("--source <TEXT>") && refused.contains("on one line"),
            "{refused}"
        );
    }
}

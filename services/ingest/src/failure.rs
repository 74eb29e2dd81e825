//! Failures of a command, and their exit statuses.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{error, io};

use water_database::migrations::MigrationError;
use water_database::writer::{ConnectError, LoadError, Refusal};
use water_runtime::settings::EXIT_USAGE;
use water_runtime::telemetry::chain;

use crate::remote::{FetchError, InvalidAddress};
use crate::report::{Form, Remark, Severity};

/// Reason for which a command did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The environment has problems; each is a sentence.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
    /// The command line is complete for clap, and not for the dataset.
    #[error("{0}")]
    Usage(&'static str),
    /// The argument is a URL that is not fetched.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// The file has problems, which were printed.
    #[error("{file}: nothing was loaded, for the problems above")]
    BadData {
        /// The file's name.
        file: String,
    },
    /// A list of ids cannot be read as text.
    #[error("{file}: {why}: nothing was deleted")]
    BadIds {
        /// The file's name.
        file: String,
        /// Reason and remedy.
        why: String,
    },
    /// A guard refused the load.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The file cannot be read or written.
    #[error("{attempt} {}", .path.display())]
    File {
        /// `reading` or `writing`.
        attempt: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file cannot be fetched.
    #[error("fetching {address}")]
    Fetch {
        /// Address of the file, without the query.
        address: String,
        /// Cause.
        source: FetchError,
    },
    /// Data stored in addition to the rows does not agree with them; each problem was printed.
    #[error("the stored data does not agree with itself, in the places above")]
    Inconsistent,
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The load may be stored or not.
    #[error(
        "it is not known whether this was stored: do it again, which changes nothing if it was"
    )]
    Uncertain(#[source] water_database::Error),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] water_database::Error),
    /// The schema is of an older version.
    #[error("the schema lacks this version's migrations: run water-ingest migrate as the owner")]
    Unmigrated,
    /// A migration failed.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// Standard output is closed.
    #[error("writing to standard output")]
    Output(#[source] io::Error),
}

impl Failure {
    /// Failure to read a file.
    pub fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            attempt: "reading",
            path: path.to_owned(),
            source,
        }
    }

    /// Failure to write a file.
    pub fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            attempt: "writing",
            path: path.to_owned(),
            source,
        }
    }

    /// Prints the failure, with all causes.
    pub fn print(&self, form: Form) {
        let failure = Remark {
            severity: Severity::Failure,
            file: None,
            line: None,
            column: None,
            message: &chain(self as &dyn error::Error),
        };
        eprintln!("{}", failure.line(form));
    }

    /// Exit status: 1 infrastructure, 2 bad data, 3 refused by a guard, 64 wrong usage.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Settings(_) | Self::Usage(_) | Self::Address(_) => EXIT_USAGE,
            Self::Fetch {
                source: FetchError::CaFile(..) | FetchError::NoCertificate(_),
                ..
            } => EXIT_USAGE,
            Self::Connect(ConnectError::Settings(_))
            | Self::Migration(MigrationError::Settings(_)) => EXIT_USAGE,
            Self::BadData { .. } | Self::BadIds { .. } | Self::Inconsistent => 2,
            Self::Refused(_) => 3,
            Self::File { .. }
            | Self::Fetch { .. }
            | Self::Connect(_)
            | Self::Uncertain(_)
            | Self::Database(_)
            | Self::Unmigrated
            | Self::Migration(_)
            | Self::Output(_) => 1,
        })
    }
}

/// Converts the writer's error of a load.
pub fn of_load(error: LoadError, file: &str) -> Failure {
    match error {
        LoadError::Refused(refusal) => refusal.into(),
        LoadError::Conflicts { .. } => Failure::BadData {
            file: file.to_owned(),
        },
        LoadError::Uncertain(error) => Failure::Uncertain(error),
        LoadError::Database(error) => error.into(),
    }
}

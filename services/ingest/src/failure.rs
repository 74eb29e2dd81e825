//! Why a command did not do its work, and which exit status says so.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{error, io};

use water_database::migrations::MigrationError;
use water_database::writer::{ConnectError, LoadError, Refusal};
use water_runtime::settings::EXIT_USAGE;
use water_runtime::telemetry::chain;

use crate::remote::{FetchError, InvalidAddress};
use crate::report::{Form, Remark, Severity};

/// A command that did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The environment; each problem is a sentence.
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
    /// A guard held the load back.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The file cannot be read or written.
    #[error("{attempt} {}", .path.display())]
    File {
        /// `reading` or `writing`.
        attempt: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file did not come over the network.
    #[error("fetching {address}")]
    Fetch {
        /// Where it is, without the query.
        address: String,
        /// Why.
        source: FetchError,
    },
    /// What is kept beside the rows does not agree with them; each was printed.
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
    /// The database.
    #[error(transparent)]
    Database(#[from] water_database::Error),
    /// The schema is of an older version.
    #[error("the schema lacks this version's migrations: run water-ingest migrate as the owner")]
    Unmigrated,
    /// The schema.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// Standard output is closed.
    #[error("writing to standard output")]
    Output(#[source] io::Error),
}

impl Failure {
    /// A file that cannot be read.
    pub fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            attempt: "reading",
            path: path.to_owned(),
            source,
        }
    }

    /// A file that cannot be written.
    pub fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            attempt: "writing",
            path: path.to_owned(),
            source,
        }
    }

    /// Says what happened, with all causes.
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

    /// 1 infrastructure, 2 bad data, 3 refused by a guard, 64 wrong usage.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Settings(_) | Self::Usage(_) | Self::Address(_) => EXIT_USAGE,
            Self::Fetch {
                source: FetchError::CaFile(..) | FetchError::NoCertificate(_),
                ..
            } => EXIT_USAGE,
            Self::Connect(ConnectError::Settings(_))
            | Self::Migration(MigrationError::Settings(_)) => EXIT_USAGE,
            Self::BadData { .. } | Self::Inconsistent => 2,
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

/// A load that failed for another reason than the file's content.
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

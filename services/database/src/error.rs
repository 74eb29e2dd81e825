//! What can go wrong with PostgreSQL, and whether trying again may help.
//!
//! No message carries a URL or a row: the server's `DETAIL` quotes values, so it is left out.

use std::error::Error as StdError;
use std::fmt;

use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::error::SqlState;
use water_domain::Fault;

/// Why a URL or a CA file cannot be used; it never repeats the URL, which holds a password.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The URL is not one.
    #[error(
        "the PostgreSQL URL cannot be read: write postgresql://user:password@host:5432/database?sslmode=verify-full"
    )]
    Url,
    /// `sslmode` has a value that promises nothing.
    #[error(
        "sslmode of the PostgreSQL URL must be disable, require, verify-ca or verify-full: \
         allow and prefer may silently go without encryption"
    )]
    SslMode,
    /// TLS was refused and a CA file was given.
    #[error("the PostgreSQL URL says sslmode=disable and a CA file is set: remove one of the two")]
    CaWithoutTls,
    /// The CA file cannot be read.
    #[error("reading the PostgreSQL CA file {path}")]
    CaFile {
        /// The file.
        path: String,
        /// What was wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// The CA certificate cannot be read as one.
    #[error("the PostgreSQL CA certificate cannot be used: it must be PEM")]
    Certificate,
    /// The CA file has no certificate that can be used.
    #[error("the PostgreSQL CA file {path} has no usable certificate: it must be PEM")]
    NoCertificate {
        /// The file.
        path: String,
    },
}

/// A failed use of the database.
#[derive(Debug, thiserror::Error)]
#[error("{attempt}")]
pub struct Error {
    /// What was attempted, in the words of its caller.
    attempt: &'static str,
    #[source]
    cause: Cause,
}

/// The server's or the network's part in a failure.
#[derive(Debug)]
enum Cause {
    /// No connection: refused, lost, or the pool had none in time.
    Connection(Box<dyn StdError + Send + Sync>),
    /// No answer in time.
    Deadline,
    /// The server answered with an error.
    Server { state: SqlState, message: String },
    /// An answer that this code does not understand.
    Answer(Box<dyn StdError + Send + Sync>),
    /// A stored value that the domain refuses.
    Stored(Box<dyn StdError + Send + Sync>),
    /// A replica that has not yet got what another one has shown.
    Behind,
}

impl Error {
    pub(crate) fn deadline(attempt: &'static str) -> Self {
        Self {
            attempt,
            cause: Cause::Deadline,
        }
    }

    pub(crate) fn behind(attempt: &'static str) -> Self {
        Self {
            attempt,
            cause: Cause::Behind,
        }
    }

    /// Whether no answer came in time.
    pub(crate) fn is_deadline(&self) -> bool {
        matches!(self.cause, Cause::Deadline)
    }

    /// Whether the connection ended before the answer came, which is then not known.
    pub(crate) fn is_end_of_connection(&self) -> bool {
        match &self.cause {
            Cause::Connection(_) | Cause::Deadline => true,
            Cause::Server { state, .. } => state.code().starts_with("57P"),
            Cause::Answer(_) | Cause::Stored(_) | Cause::Behind => false,
        }
    }

    /// Whether the connection's prepared statement does not fit the schema any more: a migration
    /// changed it, or a pooler put the connection on another server.
    pub(crate) fn is_outdated_plan(&self) -> bool {
        const OUTDATED: [SqlState; 3] = [
            SqlState::UNDEFINED_COLUMN,
            SqlState::FEATURE_NOT_SUPPORTED,
            SqlState::INVALID_SQL_STATEMENT_NAME,
        ];
        matches!(&self.cause, Cause::Server { state, .. } if OUTDATED.contains(state))
    }

    /// A stored value that the domain refuses: somebody wrote past `water-ingest`.
    pub(crate) fn stored(
        attempt: &'static str,
        why: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self {
            attempt,
            cause: Cause::Stored(why.into()),
        }
    }
}

/// Says what was attempted when it failed: `.attempting("reading the versions")`.
pub(crate) trait Attempt<T> {
    fn attempting(self, attempt: &'static str) -> Result<T, Error>;
}

impl<T> Attempt<T> for Result<T, tokio_postgres::Error> {
    fn attempting(self, attempt: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error {
            attempt,
            cause: error.into(),
        })
    }
}

impl<T> Attempt<T> for Result<T, PoolError> {
    fn attempting(self, attempt: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error {
            attempt,
            cause: match error {
                PoolError::Backend(error)
                | PoolError::PostCreateHook(HookError::Backend(error)) => error.into(),
                other => Cause::Connection(Box::new(other)),
            },
        })
    }
}

impl From<tokio_postgres::Error> for Cause {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(db) = error.as_db_error() {
            return Self::Server {
                state: db.code().clone(),
                message: db.message().to_owned(),
            };
        }
        // The client tells apart what went wrong only in the text of its errors; a failure of the
        // code's own making (a column's type or count) is one that carries no I/O error and left
        // the connection open.
        match error.is_closed() || has_io_source(&error) {
            true => Self::Connection(Box::new(error)),
            false => Self::Answer(Box::new(error)),
        }
    }
}

fn has_io_source(error: &tokio_postgres::Error) -> bool {
    std::iter::successors(error.source(), |cause| (*cause).source())
        .any(|cause| cause.is::<std::io::Error>())
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(_) => formatter.write_str("PostgreSQL cannot be reached"),
            Self::Deadline => formatter.write_str("PostgreSQL did not answer in time"),
            Self::Server { state, message } => {
                write!(formatter, "PostgreSQL answered {}: {message}", state.code())
            }
            Self::Answer(_) => formatter.write_str("PostgreSQL's answer is not understood"),
            Self::Stored(_) => formatter.write_str("a stored value is not valid"),
            Self::Behind => formatter.write_str("this replica is behind what was asked for"),
        }
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Connection(source) | Self::Answer(source) | Self::Stored(source) => {
                Some(source.as_ref())
            }
            Self::Deadline | Self::Server { .. } | Self::Behind => None,
        }
    }
}

impl Fault for Error {
    /// Away, slow, overloaded, stopping, not yet migrated, just migrated, or with a password that
    /// was changed: all of these end without a change to this program.
    fn is_transient(&self) -> bool {
        /// Classes of SQLSTATE: connection, authorisation, transaction rollback, insufficient
        /// resources, operator intervention (which includes the statement timeout), system error.
        const CLASSES: [&str; 6] = ["08", "28", "40", "53", "57", "58"];
        match &self.cause {
            Cause::Connection(_) | Cause::Deadline | Cause::Behind => true,
            Cause::Server { state, .. } => {
                let unmigrated = [
                    SqlState::UNDEFINED_TABLE,
                    SqlState::INVALID_SCHEMA_NAME,
                    SqlState::INVALID_CATALOG_NAME,
                ];
                CLASSES.iter().any(|class| state.code().starts_with(class))
                    || unmigrated.contains(state)
                    || *state == SqlState::LOCK_NOT_AVAILABLE
                    || self.is_outdated_plan()
            }
            Cause::Answer(_) | Cause::Stored(_) => false,
        }
    }
}

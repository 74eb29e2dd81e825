//! Errors of PostgreSQL, and whether a retry may help.
//!
//! No message has a URL or a row: the server's `DETAIL` quotes values, so it is left out.

use std::error::Error as StdError;
use std::fmt;

use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::error::SqlState;
use water_domain::Fault;

/// A URL or a CA file that cannot be used; no message repeats the URL, which holds a password.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The URL is not a PostgreSQL URL.
    #[error(
        "the PostgreSQL URL cannot be read: write postgresql://user:password@host:5432/database?sslmode=verify-full"
    )]
    Url,
    /// `sslmode` is unknown, or guarantees nothing.
    #[error(
        "sslmode of the PostgreSQL URL must be disable, require, verify-ca or verify-full: \
         allow and prefer may silently go without encryption"
    )]
    SslMode,
    /// TLS is disabled and a CA file was given.
    #[error("the PostgreSQL URL says sslmode=disable and a CA file is set: remove one of the two")]
    CaWithoutTls,
    /// The CA file cannot be read.
    #[error("reading the PostgreSQL CA file {path}")]
    CaFile {
        /// The file.
        path: String,
        /// The cause.
        source: rustls::pki_types::pem::Error,
    },
    /// The CA certificate cannot be read.
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
    /// The attempted action, in the words of its caller.
    attempt: &'static str,
    #[source]
    cause: Cause,
}

/// Cause of a failure, at the server or in the network.
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
    /// A replica that lacks a state already shown by another server.
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

    /// Whether the connection ended before the answer came, which is then unknown.
    pub(crate) fn is_loss(&self) -> bool {
        match &self.cause {
            Cause::Connection(_) => true,
            Cause::Server { state, .. } => state.code().starts_with("57P"),
            Cause::Deadline | Cause::Answer(_) | Cause::Stored(_) | Cause::Behind => false,
        }
    }

    /// Whether the connection's prepared statement no longer fits the schema: a migration changed it, or a pooler
    /// moved the connection to another server.
    pub(crate) fn is_outdated_plan(&self) -> bool {
        const OUTDATED: [SqlState; 3] = [
            SqlState::UNDEFINED_COLUMN,
            SqlState::FEATURE_NOT_SUPPORTED,
            SqlState::INVALID_SQL_STATEMENT_NAME,
        ];
        matches!(&self.cause, Cause::Server { state, .. } if OUTDATED.contains(state))
    }

    /// A stored value that the domain refuses: it was not written by `water-ingest`.
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

/// Names the attempted action in an error: `.attempting("reading the versions")`.
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
        // The driver's errors differ only in their text; one caused by this program (a column's type or count) has no
        // I/O error and leaves the connection open.
        if error.is_closed() || has_io_source(&error) {
            Self::Connection(Box::new(error))
        } else {
            Self::Answer(Box::new(error))
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
    /// Whether the failure ends without a change to this program: the server is down, slow, overloaded, stopping, not
    /// yet or just migrated, or the password was changed.
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

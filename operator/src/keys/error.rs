//! Errors that end a pass over an ApiKey, and their outcome for its status.

use std::time::Duration;

use water_domain::Fault;
use water_keystore::WriteError;

use crate::client::{ApiFailure, words};
use crate::conditions::{Readiness, Reason};
use crate::directories::DirectoryError;

/// Time limit of a pass; what hangs must not hold a worker.
pub const PASS_WITHIN: Duration = Duration::from_secs(15);
/// Passes in a row that find no open key directory before a status reports that: some 15 s.
const OPENED_AFTER: u32 = 6;

/// Reason for which a pass was given up. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The API server did not say what there is.
    #[error("what the ApiKey needs cannot be read: {}", words(.0))]
    Kube(#[from] kube::Error),
    /// The API server did not take a write.
    #[error("{what} cannot be written: {}", words(.source))]
    Write {
        /// Part of the cluster that was to be written.
        what: &'static str,
        /// Cause.
        source: kube::Error,
    },
    /// A write had no lasting effect.
    #[error("another controller or a webhook undoes {0}")]
    Undone(&'static str),
    /// Redis or the directory refused.
    #[error("writing the key directory: {0}")]
    Directory(#[from] DirectoryError),
    /// The API server does not accept the Secret; its words.
    #[error("the Secret is not accepted: {0}")]
    Rejected(String),
    /// A step needs something that the pass has not read: a mistake of this program.
    #[error("a step needs something that was not read")]
    Unread,
    /// The system has no randomness.
    #[error("asking the system for random bytes: {0}")]
    Random(#[from] getrandom::Error),
    /// The WaterDataApi's first pass under this leader opens it.
    #[error("the key directory of the WaterDataApi is not open yet")]
    NotOpen,
    /// The WaterDataApi is another operator's, and so is the status of its ApiKeys.
    #[error("another operator has the key directory of the WaterDataApi")]
    Elsewhere,
    /// The pass took too long.
    #[error("the pass took longer than {PASS_WITHIN:?}")]
    TooLong,
}

impl KeyError {
    /// Returns the error of a write to this part of the cluster, if it was one.
    pub fn of_write(self, what: Option<&'static str>) -> Self {
        match (self, what) {
            (Self::Kube(source), Some(what)) => Self::Write { what, source },
            (error, _) => error,
        }
    }

    /// Whether it belongs into the log: not a conflict, and not a directory that is about to be opened.
    pub fn is_worth_telling(&self) -> bool {
        match self {
            Self::Kube(kube::Error::Api(status))
            | Self::Write {
                source: kube::Error::Api(status),
                ..
            } => !status.is_conflict(),
            Self::NotOpen | Self::Elsewhere => false,
            Self::Directory(error) => !error.is_delay(),
            _ => true,
        }
    }

    /// Failure of the API server, if it was one.
    pub fn api_failure(&self) -> Option<ApiFailure> {
        match self {
            Self::Kube(error) | Self::Write { source: error, .. } => ApiFailure::kind(error),
            Self::TooLong => Some(ApiFailure::Unanswered),
            Self::Undone(_) => Some(ApiFailure::Undone),
            _ => None,
        }
    }

    /// Outcome for the status after so many passes in a row that were given up. `None`: the status does not change, since
    /// the next pass finds another state, or the verdict reports it.
    pub fn outcome(&self, passes: u32) -> Option<Readiness> {
        let (reason, message) = match self {
            Self::Kube(error) | Self::Write { source: error, .. } => {
                ApiFailure::kind(error)?;
                let message = format!(
                    "{self}: tried again until it works; see to the right, quota, admission policy or webhook that the \
                     API server names, if it names one"
                );
                (Reason::ApiServerError, message)
            }
            Self::TooLong => {
                let message = format!(
                    "{self}: tried again until it works; see whether the API server, its webhooks and Redis answer"
                );
                (Reason::ApiServerError, message)
            }
            Self::NotOpen if passes >= OPENED_AFTER => {
                let message = format!("{self}: see why in its status");
                (Reason::Waiting, message)
            }
            Self::Unread | Self::Random(_) => {
                let message =
                    format!("{self}: tried again; restart the operator, and report this mistake");
                (Reason::OperatorError, message)
            }
            Self::NotOpen
            | Self::Elsewhere
            | Self::Undone(_)
            | Self::Directory(_)
            | Self::Rejected(_) => return None,
        };
        Some(Readiness::Underway(reason, message))
    }
}

/// Readiness that a status reports of a directory that cannot be read or written.
pub fn outcome(error: &DirectoryError) -> Readiness {
    match error.cause() {
        DirectoryError::Write(WriteError::Owned { .. }) => Readiness::Stuck(
            Reason::DirectoryOwned,
            "the WaterDataApi's key directory belongs to another installation: see the WaterDataApi's status".into(),
        ),
        error if error.is_transient() => {
            Readiness::Underway(error.reason(), format!("{error}: tried again until it works"))
        }
        error => Readiness::Stuck(error.reason(), error.to_string()),
    }
}

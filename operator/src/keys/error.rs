//! Why a pass over an ApiKey was given up.

use std::time::Duration;

use water_domain::Fault;
use water_keystore::WriteError;

use crate::conditions::{Readiness, Reason};
use crate::directories::DirectoryError;

/// A pass is given up after this long; what hangs must not hold a worker.
pub const PASS_WITHIN: Duration = Duration::from_secs(15);

/// Why a pass was given up. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The API server refused or was away.
    #[error("asking the API server: {0}")]
    Kube(#[from] kube::Error),
    /// Redis or the directory refused.
    #[error("writing the key directory: {0}")]
    Directory(#[from] DirectoryError),
    /// The API server does not accept the Secret; its words.
    #[error("the Secret is not accepted: {0}")]
    Rejected(String),
    /// A step needs something that the pass has not read: a mistake of this program.
    #[error("a step without {0}")]
    Unread(&'static str),
    /// The system has no randomness.
    #[error("asking the system for random bytes: {0}")]
    Random(#[from] getrandom::Error),
    /// The WaterDataApi's first pass under this leader opens it.
    #[error("the key directory is not open yet")]
    NotOpen,
    /// It took too long.
    #[error("the pass took longer than {PASS_WITHIN:?}")]
    TooLong,
}

impl KeyError {
    /// Whether it belongs into the log: not a conflict, and not a directory that is about to be opened.
    pub fn is_worth_telling(&self) -> bool {
        match self {
            Self::Kube(kube::Error::Api(status)) => !status.is_conflict(),
            Self::NotOpen => false,
            _ => true,
        }
    }
}

/// What a status says of a directory that cannot be read or written.
pub fn outcome(error: &DirectoryError) -> Readiness {
    match error {
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

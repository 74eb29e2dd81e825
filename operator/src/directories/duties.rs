//! Duties of a leader for a directory besides passes. A failure is counted, logged once for each change, and reported
//! in a status.

use std::time::Duration;

use tokio::time::timeout;
use tracing::{info, warn};

use super::{DirectoryError, OpenDirectory};
use crate::conditions::{Failure, Reason};
use crate::metrics::Metrics;

/// Duties of a leader for a directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Duty {
    /// Asks the gates whether they have applied a change. ApiKeys that wait for them report a failure.
    AskGates,
    /// Rebuilds a damaged directory.
    Rebuild,
    /// Takes away keys whose ApiKeys are gone, or that the directory which their ApiKeys name holds, too.
    Sweep,
    /// Counts records, to notice evictions.
    Count,
    /// Removes tombstones and last uses that are 90 days old.
    Forget,
    /// Reads when keys were last used.
    ReadUses,
    /// Looks for gates that do not follow the directory.
    FindStrays,
    /// Writes the former Redis, which gates still read.
    WriteFormer,
}

/// Cause of a failed duty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DutyFailure {
    pub reason: Reason,
    /// Sentence that follows [`Duty::failed`].
    pub message: String,
    /// Part of it that is the same for every duty that fails for one cause.
    pub cause: String,
}

impl DutyFailure {
    /// The failure as one of that duty.
    pub fn of(self, duty: Duty) -> Failure {
        Failure {
            reason: self.reason,
            means: duty.failed().into(),
            cause: self.cause,
        }
    }
}

impl From<&DirectoryError> for DutyFailure {
    fn from(error: &DirectoryError) -> Self {
        Self {
            reason: error.reason(),
            message: error.to_string(),
            cause: error.words_of_cause(),
        }
    }
}

impl Duty {
    /// Sentence about a failure, to which its cause is added.
    pub fn failed(self) -> &'static str {
        match self {
            Self::AskGates => "the gates cannot be asked whether they have applied a change",
            Self::Rebuild => "the key directory cannot be rebuilt",
            Self::Sweep => {
                "the sweep of the key directory fails, so that keys whose ApiKeys were deleted without their \
                 finalizer, or that another key directory holds, too, work here until it succeeds"
            }
            Self::Count => {
                "the records of the key directory cannot be counted, so that evictions are not noticed"
            }
            Self::ReadUses => "last uses of keys cannot be read",
            Self::Forget => {
                "revocations and last uses that are 90 days old cannot be removed from the key directory"
            }
            Self::FindStrays => "nobody can see which gates follow the key directory",
            Self::WriteFormer => {
                "the former Redis, which gates still read, cannot be written, so that they miss restrictions"
            }
        }
    }
}

/// Outcome of work that is given up after this long.
pub async fn within<T>(
    long: Duration,
    work: impl Future<Output = Result<T, DirectoryError>>,
) -> Result<T, DirectoryError> {
    let done = timeout(long, work).await;
    done.unwrap_or(Err(DirectoryError::TooLong(long)))
}

impl OpenDirectory {
    /// Remembers whether a duty is done, counts a failure, and logs what has changed. Returns whether something has.
    /// A duty that waits for a claim is as it was.
    pub fn note_duty<T>(
        &self,
        duty: Duty,
        outcome: &Result<T, DirectoryError>,
        metrics: &Metrics,
    ) -> bool {
        if outcome.as_ref().is_err_and(DirectoryError::is_delay) {
            return false;
        }
        // The sweep is counted by itself, and its writes are counted where Redis is asked.
        if let Err(error) = outcome
            && duty != Duty::Sweep
        {
            error.count(metrics);
        }
        let failure = outcome.as_ref().err().map(DutyFailure::from);
        let before = match &failure {
            Some(failure) => self.known().failures.insert(duty, failure.clone()),
            None => self.known().failures.remove(&duty),
        };
        let is_news = before != failure;
        let (namespace, name) = (&self.api.namespace, &self.api.name);
        match failure {
            Some(failure) if is_news => {
                warn!(
                    namespace,
                    name,
                    error = failure.message,
                    "{}",
                    duty.failed()
                );
            }
            None if is_news => info!(namespace, name, "done again after this: {}", duty.failed()),
            _ => {}
        }
        is_news
    }

    /// Cause of the duty's failure, if it fails.
    pub fn failure(&self, duty: Duty) -> Option<DutyFailure> {
        self.known().failures.get(&duty).cloned()
    }
}

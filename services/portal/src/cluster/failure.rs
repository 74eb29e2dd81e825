//! Failures of the API server, by what the portal does about them.

use water_domain::Fault;

use super::barrier::Barrier;

/// The API server did not do what was asked. Prints nothing of the object: its message could repeat a
/// title.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Request that the API server refused.
    #[error("the API server refused to {attempt}: {status} {reason}")]
    Refused {
        /// Words for the request.
        attempt: &'static str,
        /// The HTTP status.
        status: u16,
        /// Reason of the status, one word.
        reason: String,
    },
    /// Write against a rule of the platform.
    #[error("the platform refused to {attempt}: {barrier}")]
    Barred {
        /// Words for the request.
        attempt: &'static str,
        /// The rule.
        barrier: Barrier,
    },
    /// Request without an answer in time.
    #[error("cannot {attempt}")]
    Away {
        /// Words for the request.
        attempt: &'static str,
        /// Error of the client.
        source: kube::Error,
    },
}

impl ClusterError {
    pub(super) fn new(attempt: &'static str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => match Barrier::of(&status) {
                Some(barrier) => Self::Barred { attempt, barrier },
                None => Self::Refused {
                    attempt,
                    status: status.code,
                    reason: status.reason,
                },
            },
            source => Self::Away { attempt, source },
        }
    }

    /// Whether another object has the name, or the object is not in the version that was named.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// Whether the API server has refused the request: nothing was written. Without its answer nobody knows.
    pub fn is_refusal(&self) -> bool {
        self.barrier().is_some() || self.status().is_some_and(|status| status < 500)
    }

    /// Returns the rule of the platform that the write is against, if that is why it was refused.
    pub fn barrier(&self) -> Option<&Barrier> {
        match self {
            Self::Barred { barrier, .. } => Some(barrier),
            Self::Refused { .. } | Self::Away { .. } => None,
        }
    }

    /// Whether the object is gone.
    pub fn is_gone(&self) -> bool {
        self.status() == Some(404)
    }

    /// Returns the HTTP status of a refusal that is no rule's.
    fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Barred { .. } | Self::Away { .. } => None,
        }
    }
}

impl Fault for ClusterError {
    /// Whether the API server is away, overloaded or failing: it may work later. A rule of the platform
    /// stays. Any other refusal is a fault of ours.
    fn is_transient(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status >= 500 || *status == 429,
            Self::Barred { .. } => false,
            Self::Away { .. } => true,
        }
    }
}

//! What can go wrong with the API server, told apart by what the portal does about it.

use water_domain::Fault;

/// The API server did not do what was asked. Prints nothing of the object: its message could repeat a title.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// It said no.
    #[error("the API server refused to {attempt}: {status} {reason}")]
    Refused {
        /// What was asked.
        attempt: &'static str,
        /// The HTTP status.
        status: u16,
        /// One word.
        reason: String,
    },
    /// It did not answer, or not in time.
    #[error("cannot {attempt}")]
    Away {
        /// What was asked.
        attempt: &'static str,
        /// Why.
        source: kube::Error,
    },
}

impl ClusterError {
    pub(super) fn new(attempt: &'static str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused {
                attempt,
                status: status.code,
                reason: status.reason,
            },
            source => Self::Away { attempt, source },
        }
    }

    /// Another object has the name, or the object is not in the version that was named.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// The object is gone.
    pub fn is_gone(&self) -> bool {
        self.status() == Some(404)
    }

    fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Away { .. } => None,
        }
    }
}

impl Fault for ClusterError {
    /// Nobody there, overloaded, or failing: it may work later. Any other refusal is a fault of ours.
    fn is_transient(&self) -> bool {
        self.status()
            .is_none_or(|status| status >= 500 || status == 429)
    }
}

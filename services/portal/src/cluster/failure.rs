//! Failures of the API server, by what the portal does about them.

use water_domain::Fault;

use super::barrier::{Barrier, is_starting};

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
    /// Request that came before the API server could judge it.
    #[error("the API server has just started and does not {attempt} yet")]
    Starting {
        /// Words for the request.
        attempt: &'static str,
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
            kube::Error::Api(status) if is_starting(&status) => Self::Starting { attempt },
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

    /// Whether another object has the name.
    pub fn is_name_taken(&self) -> bool {
        matches!(self, Self::Refused { status: 409, reason, .. } if reason == "AlreadyExists")
    }

    /// Whether another write came first: the object is not in the version that was named, or, of a creation, others
    /// were charged to the namespace's ResourceQuota at the same time.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409) && !self.is_name_taken()
    }

    /// Whether the API server has refused the request: nothing was written. Without its answer nobody knows.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status < 500,
            Self::Barred { .. } | Self::Starting { .. } => true,
            Self::Away { .. } => false,
        }
    }

    /// Returns the rule of the platform that the write is against, if that is why it was refused.
    pub fn barrier(&self) -> Option<&Barrier> {
        match self {
            Self::Barred { barrier, .. } => Some(barrier),
            Self::Refused { .. } | Self::Starting { .. } | Self::Away { .. } => None,
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
            Self::Barred { .. } | Self::Starting { .. } | Self::Away { .. } => None,
        }
    }
}

impl Fault for ClusterError {
    /// Whether the API server is away, starting, overloaded or failing, or another write came first: it may work
    /// later. A rule of the platform stays. Any other refusal is a fault of ours.
    fn is_transient(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status >= 500 || *status == 429 || self.is_conflict(),
            Self::Barred { .. } => false,
            Self::Starting { .. } | Self::Away { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use water_http::{Code, Problem};

    use super::*;

    /// Returns the failure of a creation that was answered with this code, reason and message.
    fn failure(code: u16, reason: &str, message: &str) -> ClusterError {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        let status = serde_json::from_value(status).unwrap();
        ClusterError::new("create a key", kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn a_quota_that_others_are_charged_to_takes_no_name_and_passes() {
        let message = "Operation cannot be fulfilled on resourcequotas \"keys\": the object has been modified; \
                       please apply your changes to the latest version and try again";
        let conflict = failure(409, "Conflict", message);
        assert!(!conflict.is_name_taken() && conflict.is_conflict());
        assert!(conflict.is_refusal(), "nothing was written");
        let problem = Problem::from(conflict);
        assert_eq!(problem.code(), Code::DependencyUnavailable);
        let message = "apikeys.waterdata.dev \"acme-0a1b2c3d4e\" already exists";
        let taken = failure(409, "AlreadyExists", message);
        assert!(taken.is_name_taken() && !taken.is_conflict());
        assert!(!taken.is_transient());
    }

    #[test]
    fn an_api_server_that_has_just_started_is_asked_again() {
        let starting = "apikeys.waterdata.dev \"acme-0a1b2c3d4e\" is forbidden: not yet ready to handle request";
        let starting = failure(403, "Forbidden", starting);
        assert!(starting.is_refusal(), "nothing was written");
        let problem = Problem::from(starting);
        assert_eq!(problem.code(), Code::DependencyUnavailable);
        let right = "apikeys.waterdata.dev is forbidden: User \"portal\" cannot create resource \"apikeys\"";
        let right = failure(403, "Forbidden", right);
        assert_eq!(Problem::from(right).code(), Code::Internal);
    }
}

//! A question to the API server that is repeated besides passes and watches. A failure is counted, logged once for each
//! change, and kept for a condition.

use std::mem;
use std::sync::Mutex;

use tracing::{info, warn};

use crate::client::{ApiFailure, words};
use crate::conditions::{Failure, Reason};
use crate::lock::lock;
use crate::metrics::Metrics;

#[derive(Debug)]
pub struct Inquiry {
    /// Sentence about a failure, to which its cause is added.
    failed: String,
    cause: Mutex<Option<String>>,
    metrics: Metrics,
}

impl Inquiry {
    pub fn new(failed: impl Into<String>, metrics: &Metrics) -> Self {
        Self {
            failed: failed.into(),
            cause: Mutex::default(),
            metrics: metrics.clone(),
        }
    }

    /// Remembers whether there was an answer, counts a failure, and logs what has changed.
    pub fn note<T>(&self, outcome: &kube::Result<T>) {
        let error = outcome.as_ref().err();
        if let Some(error) = error {
            let failure = ApiFailure::of_inquiry(error);
            self.metrics.api_server_failure(failure);
        }
        let cause = error.map(words);
        let before = mem::replace(&mut *lock(&self.cause), cause.clone());
        if cause == before {
            return;
        }
        match cause {
            Some(cause) => warn!(error = cause, "{}", self.failed),
            None => info!("done again after this: {}", self.failed),
        }
    }

    /// The last outcome, if that was a failure.
    pub fn failure(&self) -> Option<Failure> {
        let cause = lock(&self.cause).clone()?;
        Some(Failure {
            reason: Reason::ApiServerError,
            means: self.failed.clone(),
            cause,
        })
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn an_inquiry_for_which_the_definitions_are_missing_is_counted_as_failed() {
        let metrics = Metrics::default();
        let inquiry = Inquiry::new("nobody lists", &metrics);
        inquiry.note(&Ok(()));
        assert_eq!(metrics.api_server_failures(), 0);
        let missing = Status::failure("404 page not found", "NotFound").with_code(404);
        inquiry.note::<()>(&Err(kube::Error::Api(missing.boxed())));
        assert_eq!(metrics.api_server_failures(), 1);
        assert!(inquiry.failure().is_some());
    }
}

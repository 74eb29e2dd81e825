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
        if let Some(failure) = error.and_then(ApiFailure::kind) {
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

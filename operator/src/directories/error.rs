//! Errors of work on a key directory: as they are counted, and as conditions show them.

use std::sync::Arc;
use std::time::Duration;

use water_domain::Fault;
use water_keystore::{Reason as StoreReason, StoreError, WriteError};

use crate::client::{ApiFailure, words};
use crate::conditions::Reason;
use crate::metrics::Metrics;

/// Cause of a directory that was not written.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Redis or the directory refused.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Redis did not answer a question.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Redis did not answer the last check, and was not asked.
    #[error("{0}")]
    Away(Arc<StoreError>),
    /// The API server did not say what there is, or who leads.
    #[error("asking the API server: {}", words(.0))]
    Kube(#[from] kube::Error),
    /// Work was given up after this long.
    #[error("it took longer than {0:?}")]
    TooLong(Duration),
    /// The clocks differ, and while they do nothing is removed by its age.
    #[error(
        "the clocks of Redis and of this operator are more than a minute apart, and one put ahead would make old \
         manifests revive revoked keys: set right the one that is wrong"
    )]
    ClocksApart,
    /// Another pod leads.
    #[error("another operator leads")]
    NotLeading,
    /// The state in Redis is not complete, not verified, or older than what was seen before.
    #[error("Redis does not show the key directory whole")]
    NotWhole,
    /// No leader has opened it yet, or its WaterDataApi names no Redis that can be used.
    #[error("it is not open")]
    NotOpen,
    /// The claim takes longer than a pass waits for it.
    #[error("the key directory is being claimed, and rebuilt where Redis does not hold it whole")]
    BeingClaimed,
    /// The claim failed; it was counted where it was made.
    #[error("{0}")]
    Unclaimed(Arc<Self>),
    /// The caller has read the cluster before the claim, and has to read it again.
    #[error("the key directory was claimed after the cluster was read")]
    ReadBefore,
}

impl DirectoryError {
    /// The error of the claim, if that failed.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Unclaimed(error) => error.cause(),
            error => error,
        }
    }

    /// Words for what is wrong, which are the same for each attempt that fails for it.
    pub fn words_of_cause(&self) -> String {
        match self.cause() {
            Self::Write(WriteError::Store(error)) | Self::Store(error) => {
                error.reason().to_string()
            }
            Self::Away(error) => error.reason().to_string(),
            Self::Kube(error) => words(error),
            error => error.to_string(),
        }
    }

    /// Whether it is no failure: a claim is under way, or has ended just now.
    pub fn is_delay(&self) -> bool {
        matches!(self, Self::BeingClaimed | Self::ReadBefore)
    }

    /// Reason for which Redis did not do what was asked, if it was Redis.
    fn store_reason(&self) -> Option<StoreReason> {
        match self {
            Self::Write(WriteError::Store(error)) | Self::Store(error) => Some(error.reason()),
            _ => None,
        }
    }

    /// Counts the error where Redis or the API server was asked.
    pub(super) fn count(&self, metrics: &Metrics) {
        let failure = match self {
            Self::Kube(error) => ApiFailure::kind(error),
            Self::TooLong(_) => Some(ApiFailure::Unanswered),
            _ => None,
        };
        if let Some(reason) = self.store_reason() {
            metrics.store_failure(reason);
        } else if let Some(failure) = failure {
            metrics.api_server_failure(failure);
        }
    }

    /// Reason of the condition that reports this error.
    pub fn reason(&self) -> Reason {
        let reason = match self {
            // Each request to Redis has a shorter limit.
            Self::Kube(_) | Self::TooLong(_) => return Reason::ApiServerError,
            Self::ClocksApart => return Reason::ClocksApart,
            Self::NotOpen | Self::BeingClaimed | Self::ReadBefore => return Reason::Waiting,
            Self::Unclaimed(error) => return error.reason(),
            // It is counted where Redis was asked.
            Self::Away(error) => Some(error.reason()),
            error => error.store_reason(),
        };
        match reason {
            Some(StoreReason::ReadOnly) => Reason::StoreReadOnly,
            Some(StoreReason::OutOfMemory) => Reason::StoreOutOfMemory,
            Some(StoreReason::Loading) => Reason::StoreLoading,
            Some(StoreReason::WrongPassword) => Reason::StoreWrongPassword,
            Some(StoreReason::ClusterDown) => Reason::StoreClusterDown,
            Some(StoreReason::Denied) => Reason::StoreDenied,
            Some(StoreReason::Down | StoreReason::Slow | StoreReason::Unexpected) | None => {
                Reason::StoreUnavailable
            }
        }
    }
}

impl Fault for DirectoryError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Write(error) => error.is_transient(),
            Self::Store(error) => error.is_transient(),
            Self::Away(error) => error.is_transient(),
            Self::Unclaimed(error) => error.is_transient(),
            Self::Kube(_)
            | Self::TooLong(_)
            | Self::ClocksApart
            | Self::NotLeading
            | Self::NotWhole
            | Self::NotOpen
            | Self::BeingClaimed
            | Self::ReadBefore => true,
        }
    }
}

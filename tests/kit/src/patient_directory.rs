//! The key directory as tests read and prepare it: none of them fails because a busy machine makes Redis late.

use std::collections::HashMap;
use std::ops::Deref;

use anyhow::Result;
use water_domain::{KeyHash, KeyId, Plan, Timestamp};
use water_harness::wait_until;
use water_keystore::{
    Counts, Directory, Leases, Observation, Origin, OwnerSnapshot, Reason, StoreError, StoredEntry,
    WriteError,
};

use crate::SOON;

/// A directory that is read again while Redis is late. All but the reading is the product's own: a second for a
/// connection, two for an answer.
pub struct PatientDirectory(Directory);

impl From<Directory> for PatientDirectory {
    fn from(directory: Directory) -> Self {
        Self(directory)
    }
}

impl Deref for PatientDirectory {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

impl PatientDirectory {
    /// Reads `meta` and the server's state.
    pub async fn observe(&self) -> Result<Observation> {
        patiently(async || Ok(self.0.observe().await?)).await
    }

    /// Reads the gates' leases.
    pub async fn leases(&self) -> Result<Leases> {
        patiently(async || Ok(self.0.leases().await?)).await
    }

    /// Reads every record.
    pub async fn stored(&self) -> Result<HashMap<KeyHash, StoredEntry>> {
        patiently(async || Ok(self.0.stored().await?)).await
    }

    /// Counts what is stored.
    pub async fn counts(&self) -> Result<Counts> {
        patiently(async || Ok(self.0.counts().await?)).await
    }

    /// Reads the plans.
    pub async fn plans(&self) -> Result<Vec<Plan>> {
        patiently(async || Ok(self.0.plans().await?)).await
    }

    /// Reads the state of one ApiKey, and of these hashes.
    pub async fn owner_snapshot(
        &self,
        uid: &str,
        origin: &Origin,
        hashes: &[KeyHash],
    ) -> Result<OwnerSnapshot> {
        let read = async || Ok(self.0.owner_snapshot(uid, origin, hashes).await?);
        patiently(read).await
    }

    /// Reads the times at which these keys were last used.
    pub async fn last_used(&self, keys: &[KeyId]) -> Result<Vec<Option<Timestamp>>> {
        patiently(async || Ok(self.0.last_used(keys).await?)).await
    }
}

/// Repeats what means the same however often it is done, while Redis is late. Its refusal is an answer.
pub(crate) async fn patiently<T>(ask: impl AsyncFn() -> Result<T, WriteError>) -> Result<T> {
    let answered = async || match ask().await {
        Err(WriteError::Store(late)) if is_late(&late) => Err(late.into()),
        answer => Ok(answer),
    };
    let answer = wait_until("Redis to answer", SOON, answered).await?;
    Ok(answer?)
}

/// Whether Redis was not reached, or did not answer in time.
fn is_late(error: &StoreError) -> bool {
    matches!(error.reason(), Reason::Down | Reason::Slow)
}

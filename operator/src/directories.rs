//! The key directories that this leader writes, one for each WaterDataApi.
//!
//! A directory is claimed before its first write: the claim takes a term that refuses every earlier
//! leader's writes, then the Lease is read again, and what Redis holds is rebuilt from the cluster
//! unless it is complete and on the server that completed it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::{info, warn};
use water_domain::Fault;
use water_keystore::connection::Purpose;
use water_keystore::{
    Change, ConnectionSettings, Contents, Directory, Instance, InvalidInstance, StoreError,
};
use water_keystore::{WriteError, Writer};

use crate::crd::api_key::IssuedAt;
use crate::lease::Election;

/// All directories of this leadership.
pub struct Directories {
    election: Election,
    /// By WaterDataApi. An entry outlives its WaterDataApi, so that keys can still be revoked.
    open: Mutex<HashMap<IssuedAt, Arc<OpenDirectory>>>,
}

/// One directory, claimed or not.
pub struct OpenDirectory {
    place: Place,
    directory: Directory,
    /// `None` until claimed, and again after a write was refused.
    writer: tokio::sync::Mutex<Option<Writer>>,
}

/// Where a directory is and whose.
#[derive(Clone, Debug)]
pub struct Place {
    /// How Redis is reached.
    pub settings: ConnectionSettings,
    /// Changes when `settings` do.
    pub fingerprint: String,
    /// The uid of the WaterDataApi's namespace.
    pub owner: String,
    /// The uid of an owner that may be taken over.
    pub take_over: Option<String>,
}

/// Why a directory was not written.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Redis or the directory refused.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Redis did not answer a question.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The API server did not say who leads.
    #[error("reading the Lease after a claim")]
    Lease(#[source] kube::Error),
    /// Another pod leads.
    #[error("another operator leads")]
    NotLeading,
}

impl Directories {
    /// No directory yet.
    pub fn new(election: Election) -> Self {
        Self {
            election,
            open: Mutex::default(),
        }
    }

    /// The directory of a WaterDataApi at a place; the connection is made when first used.
    pub fn open(
        &self,
        api: &IssuedAt,
        place: Place,
    ) -> Result<Arc<OpenDirectory>, InvalidInstance> {
        let instance = Instance::new(&api.namespace, &api.name)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.get(api).filter(|known| known.is_at(&place)) {
            return Ok(Arc::clone(known));
        }
        let connection = place.settings.connect(Purpose::Directory);
        let directory = Directory::new(connection, instance);
        let opened = Arc::new(OpenDirectory {
            place,
            directory,
            writer: tokio::sync::Mutex::default(),
        });
        open.insert(api.clone(), Arc::clone(&opened));
        Ok(opened)
    }

    /// The directory of a WaterDataApi, if it was opened.
    pub fn get(&self, api: &IssuedAt) -> Option<Arc<OpenDirectory>> {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(api)
            .map(Arc::clone)
    }

    /// A writer of the directory. Claims it when that was not done or was lost, and rebuilds it from
    /// `contents` when Redis does not hold it whole.
    pub async fn writer(
        &self,
        open: &OpenDirectory,
        contents: impl FnOnce() -> Contents,
    ) -> Result<Writer, DirectoryError> {
        let mut held = open.writer.lock().await;
        if let Some(writer) = &*held {
            return Ok(writer.clone());
        }
        let (writer, _) = open
            .directory
            .claim(&open.place.owner, open.place.take_over.as_deref())
            .await?;
        if !self
            .election
            .is_held()
            .await
            .map_err(DirectoryError::Lease)?
        {
            return Err(DirectoryError::NotLeading);
        }
        if open.directory.observe().await?.needs_rebuild() {
            let (meta, revoked) = writer.rebuild(contents).await?;
            info!(
                generation = meta.generation,
                records = meta.count,
                left_out_as_revoked = revoked.len(),
                "key directory rebuilt"
            );
        }
        *held = Some(writer.clone());
        Ok(writer)
    }

    /// Writes changes, all or none.
    pub async fn apply(
        &self,
        open: &OpenDirectory,
        contents: impl FnOnce() -> Contents,
        changes: &[Change],
    ) -> Result<(), DirectoryError> {
        let writer = self.writer(open, contents).await?;
        let written = writer.apply(changes).await;
        open.forget_after(written.as_ref().err()).await;
        Ok(written.map(|_| ())?)
    }
}

impl OpenDirectory {
    /// The directory, for questions.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Gives the claim up when a write showed that it no longer holds, or that Redis lost its data:
    /// the next use claims and rebuilds.
    pub async fn forget_after(&self, refusal: Option<&WriteError>) {
        if let Some(
            refusal @ (WriteError::Fenced { .. } | WriteError::Wiped | WriteError::Interrupted),
        ) = refusal
        {
            warn!(error = %refusal, "claiming the key directory again");
            *self.writer.lock().await = None;
        }
    }

    /// Gives the claim up when Redis does not hold the directory whole.
    pub async fn verify(&self) -> Result<(), StoreError> {
        if self.directory.observe().await?.needs_rebuild() {
            *self.writer.lock().await = None;
        }
        Ok(())
    }

    fn is_at(&self, place: &Place) -> bool {
        self.place.fingerprint == place.fingerprint
            && self.place.owner == place.owner
            && self.place.take_over == place.take_over
    }
}

impl Fault for DirectoryError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Write(error) => error.is_transient(),
            Self::Store(error) => error.is_transient(),
            Self::Lease(_) | Self::NotLeading => true,
        }
    }
}

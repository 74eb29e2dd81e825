//! The key directories that this leader writes, one for each WaterDataApi.
//!
//! A directory is claimed before its first write: the claim takes a term that refuses every earlier
//! leader's writes, then the Lease is read again, and what Redis holds is rebuilt from the cluster
//! unless it is complete and on the server that completed it. From then on it is looked after
//! ([`care`]) until the leadership ends.

pub mod acknowledgements;
pub mod care;
pub mod gates;
pub mod health;
mod open;
pub mod waits;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::mpsc;
use tracing::info;
use water_domain::{Fault, Plan};
use water_keystore::{Applied, Change, Contents, InvalidInstance, StoreError, WriteError, Writer};

use crate::crd::api_key::IssuedAt;
use crate::lease::Election;
use crate::metrics::Metrics;
use health::Damage;
pub use open::{OpenDirectory, Place};

/// All directories of this leadership.
pub struct Directories {
    election: Election,
    metrics: Metrics,
    /// By WaterDataApi. An entry outlives its WaterDataApi, so that keys can still be revoked.
    open: Mutex<HashMap<IssuedAt, Arc<OpenDirectory>>>,
    opened: mpsc::UnboundedSender<Arc<OpenDirectory>>,
}

/// Every directory when it is opened, for [`care::of`].
pub type Opened = mpsc::UnboundedReceiver<Arc<OpenDirectory>>;

/// What a directory shall hold, given the plans that it had.
pub type Wanted<'a> = &'a (dyn Fn(Vec<Plan>) -> Contents + Send + Sync);

/// What is written at once.
enum Write<'a> {
    Changes(&'a [Change]),
    Plans(&'a [Plan]),
}

impl Write<'_> {
    async fn by(&self, writer: &Writer) -> Result<Applied, WriteError> {
        match self {
            Self::Changes(changes) => writer.apply(changes).await,
            Self::Plans(plans) => writer.set_plans(plans).await,
        }
    }
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
    #[error("reading the Lease at a claim")]
    Lease(#[source] kube::Error),
    /// Another pod leads.
    #[error("another operator leads")]
    NotLeading,
}

impl Directories {
    /// No directory yet.
    pub fn new(election: Election, metrics: Metrics) -> (Self, Opened) {
        let (sender, opened) = mpsc::unbounded();
        let directories = Self {
            election,
            metrics,
            open: Mutex::default(),
            opened: sender,
        };
        (directories, opened)
    }

    /// The directory of a WaterDataApi at a place; the connection is made when first used.
    pub fn open(
        &self,
        api: &IssuedAt,
        place: Place,
    ) -> Result<Arc<OpenDirectory>, InvalidInstance> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.get(api).filter(|known| known.is_at(&place)) {
            return Ok(Arc::clone(known));
        }
        let opened = Arc::new(OpenDirectory::new(api.clone(), place)?);
        if let Some(before) = open.insert(api.clone(), Arc::clone(&opened)) {
            before.close();
        }
        // An error means that the leadership is over, and this pass about to be dropped.
        let _ = self.opened.unbounded_send(Arc::clone(&opened));
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

    /// A writer of the directory. Claims it when that was not done or was lost, and rebuilds it when
    /// Redis does not hold it whole.
    pub async fn writer(
        &self,
        open: &OpenDirectory,
        wanted: Wanted<'_>,
    ) -> Result<Writer, DirectoryError> {
        let mut held = open.writer.lock().await;
        if let Some(writer) = &*held {
            return Ok(writer.clone());
        }
        let writer = self.claim(open).await?;
        if open.directory.observe().await?.needs_rebuild() {
            self.rebuild(open, &writer, wanted).await?;
        }
        *held = Some(writer.clone());
        open.note_claim();
        Ok(writer)
    }

    /// Claims the directory anew and rebuilds it, unless somebody has done so since the damage was
    /// seen.
    pub(crate) async fn restore(
        &self,
        open: &OpenDirectory,
        damage: Damage,
        wanted: Wanted<'_>,
    ) -> Result<(), DirectoryError> {
        let mut held = open.writer.lock().await;
        let shows = damage.shows_in_meta();
        if held.is_some() && shows && !open.directory.observe().await?.needs_rebuild() {
            return Ok(());
        }
        *held = None;
        open.note_damage(damage);
        let writer = self.claim(open).await?;
        self.rebuild(open, &writer, wanted).await?;
        *held = Some(writer);
        Ok(())
    }

    /// Writes changes, all or none.
    pub async fn apply(
        &self,
        open: &OpenDirectory,
        wanted: Wanted<'_>,
        changes: &[Change],
    ) -> Result<Applied, DirectoryError> {
        self.write(open, wanted, Write::Changes(changes)).await
    }

    /// Makes the directory's plans those that `wanted` says.
    pub async fn set_plans(
        &self,
        open: &OpenDirectory,
        wanted: Wanted<'_>,
    ) -> Result<(), DirectoryError> {
        self.writer(open, wanted).await?;
        let plans = wanted(open.known_plans().await?).plans;
        self.write(open, wanted, Write::Plans(&plans)).await?;
        open.remember_plans(&plans);
        Ok(())
    }

    /// Writes; once more when the claim turned out to be lost, or Redis to have lost its data.
    async fn write(
        &self,
        open: &OpenDirectory,
        wanted: Wanted<'_>,
        write: Write<'_>,
    ) -> Result<Applied, DirectoryError> {
        let writer = self.writer(open, wanted).await?;
        match write.by(&writer).await {
            Err(refusal) if is_claim_lost(&refusal) => {
                info!(error = %refusal, "claiming the key directory again");
                if !matches!(refusal, WriteError::Fenced { .. }) {
                    open.note_damage(&refusal);
                }
                open.give_up(&writer).await;
                Ok(write.by(&self.writer(open, wanted).await?).await?)
            }
            outcome => Ok(outcome?),
        }
    }

    /// A claim that nothing follows would only refuse the true leader's writes: so the Lease is read
    /// before as well as after.
    async fn claim(&self, open: &OpenDirectory) -> Result<Writer, DirectoryError> {
        self.leads().await?;
        let take_over = open.place.take_over.as_deref();
        let (writer, _) = open.directory.claim(&open.place.owner, take_over).await?;
        self.leads().await?;
        Ok(writer)
    }

    async fn leads(&self) -> Result<(), DirectoryError> {
        match self.election.is_held().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(DirectoryError::NotLeading),
            Err(error) => Err(DirectoryError::Lease(error)),
        }
    }

    async fn rebuild(
        &self,
        open: &OpenDirectory,
        writer: &Writer,
        wanted: Wanted<'_>,
    ) -> Result<(), DirectoryError> {
        let plans = open.known_plans().await?;
        let contents = || open.waits.carry_into(wanted(plans));
        let (meta, revoked) = writer.rebuild(contents).await?;
        self.metrics.directory_rebuilds.inc();
        open.note_rebuild();
        info!(
            generation = meta.generation,
            records = meta.count,
            left_out_as_revoked = revoked.len(),
            "key directory rebuilt"
        );
        Ok(())
    }
}

/// Whether a refusal means that the directory has to be claimed again.
fn is_claim_lost(refusal: &WriteError) -> bool {
    matches!(
        refusal,
        WriteError::Fenced { .. }
            | WriteError::Wiped
            | WriteError::Unverified
            | WriteError::Interrupted
    )
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

//! The key directories that this leader writes, one for each WaterDataApi.
//!
//! A directory is claimed before its first write: the claim takes a term that refuses every earlier
//! leader's writes, then the Lease is read again. An earlier leader may have acted until then on what
//! this one's watches have not told yet, so the caches first catch up with a list that began after the
//! claim, and a pass that read them before begins anew. What Redis holds is rebuilt from the cluster
//! unless it is complete and on the server that completed it. From then on it is looked after
//! ([`care`]) until the leadership ends.

mod acknowledgements;
pub(crate) mod care;
mod former;
pub(crate) mod gates;
pub(crate) mod health;
mod open;
pub(crate) mod pending;
pub(crate) mod sweep;
mod uses;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::channel::mpsc;
use futures::future::BoxFuture;
use tracing::info;
use water_domain::{Fault, KeyHash, Plan};
use water_keystore::{
    Contents, Declaration, Declared, Entry, InvalidInstance, Origin, OwnerSnapshot, Position,
    Reason as StoreReason, StoreError, WriteError, Writer,
};
use water_resources::api_key::ApiName;

use crate::conditions::Reason;
use crate::lease::Election;
use crate::lock::lock;
use crate::metrics::Metrics;
use health::{Damage, damage, is_whole};
use open::UnansweredWrite;
pub use open::{Location, OpenDirectory};

/// The key directories of one leadership.
pub struct Directories {
    election: Election,
    metrics: Metrics,
    /// By WaterDataApi. An entry outlives its WaterDataApi, so that keys can still be revoked.
    open: Mutex<HashMap<ApiName, Arc<OpenDirectory>>>,
    opened: mpsc::UnboundedSender<Arc<OpenDirectory>>,
    /// How often the caches have caught up with the cluster after a claim.
    caught_up: AtomicU64,
}

/// Counts how often the caches have caught up with the cluster after a claim. What a pass reads of them is
/// as old as the epoch in which it began, and may be too old for a directory that was claimed in a later one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CacheEpoch(u64);

/// Every directory when it is opened, for [`care::of`].
pub type Opened = mpsc::UnboundedReceiver<Arc<OpenDirectory>>;

/// What the cluster says that the directory of a WaterDataApi shall hold.
pub trait DesiredState: Sync {
    /// Returns once what the cluster says includes everything that had happened when this was called.
    fn caught_up(&self) -> BoxFuture<'_, kube::Result<()>>;
    /// The declared plans, and those of `stored` that published keys may still name.
    fn plans(&self, api: &ApiName, stored: Vec<Plan>) -> Vec<Plan>;
    /// The labels of the namespaces that ApiKeys may be in; empty if the WaterDataApi admits keys without them.
    fn namespaces<'a>(&'a self, api: &'a ApiName) -> BoxFuture<'a, kube::Result<Namespaces>>;
    /// Whether the cluster does not say everything of some key, so that what the directory held of it
    /// counts. Reading that costs a look at everything.
    fn is_to_be_carried(&self, api: &ApiName) -> bool;
    /// Every key to be published; `former` are those that the directory held, or none.
    fn entries(&self, api: &ApiName, namespaces: &Namespaces, former: &[Entry]) -> Vec<Entry>;
}

/// The labels of namespaces, by their names.
pub type Namespaces = HashMap<String, BTreeMap<String, String>>;

/// Why a directory was not written.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Redis or the directory refused.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Redis did not answer a question.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The API server did not say what there is, or who leads.
    #[error("asking the API server: {0}")]
    Kube(#[from] kube::Error),
    /// Another pod leads.
    #[error("another operator leads")]
    NotLeading,
    /// What Redis shows is not complete, not verified, or older than what was seen before.
    #[error("Redis does not show the key directory whole")]
    NotWhole,
    /// What the caller has read of the cluster is older than the claim: read again.
    #[error("the key directory was claimed after the cluster was read")]
    ReadBefore,
}

impl Directories {
    /// Knows no directory yet.
    pub fn new(election: Election, metrics: Metrics) -> (Self, Opened) {
        let (sender, opened) = mpsc::unbounded();
        let directories = Self {
            election,
            metrics,
            open: Mutex::default(),
            opened: sender,
            caught_up: AtomicU64::new(0),
        };
        (directories, opened)
    }

    /// The directory of a WaterDataApi at a place; the connection is made when first used.
    pub fn open(
        &self,
        api: &ApiName,
        mut place: Location,
    ) -> Result<Arc<OpenDirectory>, InvalidInstance> {
        let mut open = lock(&self.open);
        if let Some(known) = open.get(api) {
            if known.is_at(&place) {
                return Ok(Arc::clone(known));
            }
            place.is_behind |= known.store() != place.store || known.is_behind();
        }
        let opened = Arc::new(OpenDirectory::new(api.clone(), place)?);
        if let Some(before) = open.insert(api.clone(), Arc::clone(&opened)) {
            opened.inherit(&before);
            before.closed.notify_one();
        }
        // An error means that the leadership is over, and this pass about to be dropped.
        let _ = self.opened.unbounded_send(Arc::clone(&opened));
        Ok(opened)
    }

    /// The directory of a WaterDataApi, if it was opened.
    pub fn get(&self, api: &ApiName) -> Option<Arc<OpenDirectory>> {
        lock(&self.open).get(api).map(Arc::clone)
    }

    /// Nothing refers to the directory any more.
    pub fn close(&self, open: &OpenDirectory) {
        if let Some(closed) = lock(&self.open).remove(&open.api) {
            closed.closed.notify_one();
        }
    }

    /// The present epoch: a pass takes it before it reads anything of the cluster.
    pub fn epoch(&self) -> CacheEpoch {
        CacheEpoch(self.caught_up.load(Ordering::Acquire))
    }

    /// What the directory holds of one ApiKey, and where it stands, for a caller that has read the
    /// cluster since `epoch`. Read under a claim that no command of this leader which is still under way
    /// shares; claims the directory when that was not done or was lost, and rebuilds it when Redis does
    /// not hold it whole.
    pub async fn owner_snapshot(
        &self,
        open: &OpenDirectory,
        source: &dyn DesiredState,
        epoch: CacheEpoch,
        uid: &str,
        origin: &Origin,
        hashes: &[KeyHash],
    ) -> Result<(Writer, OwnerSnapshot, Position), DirectoryError> {
        let look = async {
            for _ in 0..2 {
                let writer = self.writer(open, source).await?;
                if open.known().caught_up > epoch {
                    return Err(DirectoryError::ReadBefore);
                }
                let reached = open.known().reached;
                let snapshot = open.directory.owner_snapshot(uid, origin, hashes).await?;
                if snapshot.term > writer.term() {
                    // Another leader has claimed it since: what it declares is not this one's to tell.
                    open.give_up(writer.term());
                    continue;
                }
                if let Some(position) = snapshot.position
                    && position >= reached
                {
                    return Ok((writer, snapshot, position));
                }
                let seen = open.directory.observe().await?;
                if let Some(damage) = damage(reached, &seen, &open.place.owner) {
                    self.restore(open, damage, source).await?;
                }
            }
            Err(DirectoryError::NotWhole)
        };
        self.counted(look.await)
    }

    /// Writes a declaration that was decided on an [`OwnerSnapshot`], by its writer.
    pub async fn declare(
        &self,
        open: &OpenDirectory,
        writer: &Writer,
        declaration: &Declaration,
    ) -> Result<Declared, DirectoryError> {
        let write = UnansweredWrite::of(open, writer);
        let declared = write.answered_by(open.fenced(writer).declare(declaration).await);
        if let Ok(declared) = &declared {
            open.has_reached(declared.applied);
        }
        self.counted(declared.map_err(Into::into))
    }

    /// Makes the directory's plans those that the cluster says.
    pub async fn set_plans(
        &self,
        open: &OpenDirectory,
        source: &dyn DesiredState,
    ) -> Result<(), DirectoryError> {
        let done = async {
            let writer = self.writer(open, source).await?;
            let plans = source.plans(&open.api, open.known_plans().await?);
            let write = UnansweredWrite::of(open, &writer);
            let applied = write.answered_by(open.fenced(&writer).set_plans(&plans).await)?;
            open.has_reached(applied);
            open.known().plans = plans;
            Ok(())
        };
        self.counted(done.await)
    }

    /// Forgets tombstones and last uses that are 90 days old.
    pub(crate) async fn forget_old(
        &self,
        open: &OpenDirectory,
        source: &dyn DesiredState,
    ) -> Result<(), DirectoryError> {
        let writer = self.writer(open, source).await?;
        let write = UnansweredWrite::of(open, &writer);
        write.answered_by(open.fenced(&writer).forget_old().await)?;
        Ok(())
    }

    /// Claims the directory anew and rebuilds it, unless somebody has done so since the damage was
    /// seen.
    pub(crate) async fn restore(
        &self,
        open: &OpenDirectory,
        damage: Damage,
        source: &dyn DesiredState,
    ) -> Result<(), DirectoryError> {
        let mut held = open.writer.lock().await;
        let (reached, term) = {
            let known = open.known();
            (known.reached, known.term)
        };
        // A count is not taken again: every other damage shows until it is mended.
        let is_seen_again = !matches!(damage, Damage::Miscounted { .. });
        if held.is_some() && is_seen_again && is_whole(reached, &open.directory.observe().await?) {
            return Ok(());
        }
        *held = None;
        open.note_damage(damage);
        if damage == Damage::WentBack {
            // Nobody else knows; the claim may take long, or be another leader's.
            let owner = &open.place.owner;
            open.directory.doubt(owner, term, reached).await?;
        }
        let writer = self.claim(open, source).await?;
        self.rebuild(open, &writer, source).await?;
        *held = Some(writer);
        Ok(())
    }

    async fn writer(
        &self,
        open: &OpenDirectory,
        source: &dyn DesiredState,
    ) -> Result<Writer, DirectoryError> {
        let mut held = open.writer.lock().await;
        // No earlier command of it can be carried out any more.
        let is_trusted = |writer: &&Writer| writer.term() > open.known().unanswered;
        if let Some(writer) = held.as_ref().filter(is_trusted) {
            return Ok(writer.clone());
        }
        *held = None;
        let writer = self.claim(open, source).await?;
        let needs_rebuild = open.is_behind() || open.known().damage.is_some();
        let reached = open.known().reached;
        if needs_rebuild || !is_whole(reached, &open.directory.observe().await?) {
            self.rebuild(open, &writer, source).await?;
        }
        *held = Some(writer.clone());
        open.known().was_claimed = true;
        Ok(writer)
    }

    /// A claim that nothing follows would only refuse the true leader's writes: so the Lease is read
    /// before as well as after. Unless the last claim was this leadership's, the caches catch up.
    async fn claim(
        &self,
        open: &OpenDirectory,
        source: &dyn DesiredState,
    ) -> Result<Writer, DirectoryError> {
        let before = open.directory.observe().await?.meta;
        let before = before.map(|meta| meta.term);
        self.leads().await?;
        let place = &open.place;
        let take_over = place.take_over.as_deref();
        let claim = open.directory.claim(&place.owner, &place.api, take_over);
        let (writer, _) = claim.await?;
        self.leads().await?;
        if before.is_none_or(|term| open.known().term != term) {
            source.caught_up().await?;
            let count = self.caught_up.fetch_add(1, Ordering::AcqRel);
            open.known().caught_up = CacheEpoch(count + 1);
        }
        open.known().term = writer.term();
        Ok(writer)
    }

    fn counted<T>(&self, outcome: Result<T, DirectoryError>) -> Result<T, DirectoryError> {
        if let Some(reason) = outcome
            .as_ref()
            .err()
            .and_then(DirectoryError::store_reason)
        {
            self.metrics.store_failure(reason);
        }
        outcome
    }

    async fn leads(&self) -> Result<(), DirectoryError> {
        let leads = self.election.is_held().await?;
        leads.then_some(()).ok_or(DirectoryError::NotLeading)
    }

    async fn rebuild(
        &self,
        open: &OpenDirectory,
        writer: &Writer,
        source: &dyn DesiredState,
    ) -> Result<(), DirectoryError> {
        let stored = open.known_plans().await?;
        let former = if open.is_behind() {
            open.remembered()
        } else if source.is_to_be_carried(&open.api) {
            open.former().await?
        } else {
            Vec::new()
        };
        let namespaces = source.namespaces(&open.api).await?;
        let contents = || Contents {
            plans: source.plans(&open.api, stored),
            entries: source.entries(&open.api, &namespaces, &former),
        };
        let rebuilt = writer.rebuild(contents).await?;
        self.metrics.directory_rebuilds.inc();
        let mut known = open.known();
        known.repaired = known.damage.take();
        known.reached = rebuilt.meta.position();
        drop(known);
        info!(
            generation = rebuilt.meta.generation,
            records = rebuilt.meta.counts.records,
            left_out_as_revoked = rebuilt.left_out.len(),
            "key directory rebuilt"
        );
        Ok(())
    }
}

impl DirectoryError {
    /// Why Redis did not do what was asked, if it was Redis.
    fn store_reason(&self) -> Option<StoreReason> {
        match self {
            Self::Write(WriteError::Store(error)) | Self::Store(error) => Some(error.reason()),
            _ => None,
        }
    }

    /// The same as a condition says it.
    pub fn reason(&self) -> Reason {
        match self.store_reason() {
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
            Self::Kube(_) | Self::NotLeading | Self::NotWhole | Self::ReadBefore => true,
        }
    }
}

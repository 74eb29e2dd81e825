//! The key directories that this leader writes, one for each WaterDataApi.
//!
//! A directory is claimed before its first write: the claim takes a term that refuses every earlier
//! leader's writes, then the Lease is read again. An earlier leader may have acted until then on what
//! this one's watches have not shown yet, so the caches first catch up with a list that began after the
//! claim, and a pass that read them before begins again. What Redis holds is rebuilt from the cluster
//! unless it is complete, on the server that completed it, and not before the position that an earlier leader has left
//! in the Lease ([`claims`]). A directory has its duties ([`care`]) from its opening until the leadership ends.

mod acknowledgements;
pub(crate) mod care;
mod claims;
pub(crate) mod duties;
mod error;
mod former;
pub(crate) mod gates;
pub(crate) mod health;
mod open;
pub(crate) mod pending;
mod search;
pub(crate) mod sweep;
mod uses;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use futures::channel::mpsc;
use futures::future::BoxFuture;
use water_domain::{KeyHash, Plan};
use water_keystore::{
    Declaration, DeclarationReceipt, Entry, InvalidInstance, Origin, OwnerSnapshot, Position,
    Writer,
};
use water_resources::api_key::ApiName;

use crate::lease::Election;
use crate::lease::positions::Positions;
use crate::lock::lock;
use crate::metrics::Metrics;
pub use claims::REPORTED_AFTER;
pub use error::DirectoryError;
use health::damage;
use open::UnansweredWrite;
pub use open::{Location, OpenDirectory};
pub use search::SearchResult;

/// The key directories of one leadership.
pub struct Directories {
    election: Election,
    metrics: Metrics,
    /// Open directories by WaterDataApi. An entry outlives its WaterDataApi, so that keys can still be revoked.
    open: Mutex<HashMap<ApiName, Arc<OpenDirectory>>>,
    /// Directories that others replaced, while they are written.
    former: Mutex<Vec<Weak<OpenDirectory>>>,
    opened: mpsc::UnboundedSender<Arc<OpenDirectory>>,
    /// Positions that the former leader has left of directories which this one has not opened yet.
    left: Mutex<Positions>,
    /// Number of times that the caches have caught up with the cluster after a claim.
    caught_up: AtomicU64,
}

/// Number of times that the caches have caught up with the cluster after a claim. What a pass reads of them is as old
/// as the epoch in which it began, and may be too old for a directory that was claimed in a later one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CacheEpoch(u64);

/// Every directory when it is opened, for [`care::run`].
pub type OpenDirectories = mpsc::UnboundedReceiver<Arc<OpenDirectory>>;

/// Content that the directory of a WaterDataApi shall have by the cluster's objects.
pub trait DesiredState: Sync {
    /// Returns once what the cluster says includes everything that had happened when this was called.
    fn caught_up(&self) -> BoxFuture<'_, kube::Result<()>>;
    /// The declared plans, and those of `stored` that published keys may still name.
    fn plans(&self, api: &ApiName, stored: Vec<Plan>) -> Vec<Plan>;
    /// The labels of the namespaces that ApiKeys may be in; empty if the WaterDataApi admits keys without them.
    fn namespaces<'a>(&'a self, api: &'a ApiName) -> BoxFuture<'a, kube::Result<Namespaces>>;
    /// Whether the cluster does not say everything of some key, so that what the directory held of it counts. Reading
    /// that costs a pass over all that is stored.
    fn is_to_be_carried(&self, api: &ApiName) -> bool;
    /// Every key to be published; `former` are those that the directory held, or none.
    fn entries(&self, api: &ApiName, namespaces: &Namespaces, former: &[Entry]) -> Vec<Entry>;
}

/// The labels of namespaces, by their names.
pub type Namespaces = HashMap<String, BTreeMap<String, String>>;

impl Directories {
    /// Creates the directories of a leadership, none of them open yet. The former one has left it these positions.
    pub fn new(election: Election, metrics: Metrics, left: Positions) -> (Self, OpenDirectories) {
        let (sender, opened) = mpsc::unbounded();
        let directories = Self {
            election,
            metrics,
            open: Mutex::default(),
            former: Mutex::default(),
            opened: sender,
            left: Mutex::new(left),
            caught_up: AtomicU64::new(0),
        };
        (directories, opened)
    }

    /// The directory of a WaterDataApi, if it is open at this place.
    pub fn at(&self, api: &ApiName, place: &Location) -> Option<Arc<OpenDirectory>> {
        self.get(api).filter(|open| open.is_at(place))
    }

    /// Opens the directory of a WaterDataApi at a place that its status allows, in place of the one that was open.
    /// The connection is made when first used.
    pub fn open(
        &self,
        api: &ApiName,
        place: Location,
    ) -> Result<Arc<OpenDirectory>, InvalidInstance> {
        let opened = Arc::new(OpenDirectory::new(api.clone(), place)?);
        let store = &opened.place.store;
        // One that is behind is rebuilt in any case.
        if !opened.place.is_behind {
            opened.begin_after(lock(&self.left).at(store));
        }
        // What this leadership knows of the same Redis replaces that.
        if let Some(before) = self.get(api) {
            opened.inherit(&before);
        }
        if let Some(before) = lock(&self.open).insert(api.clone(), Arc::clone(&opened)) {
            before.closed.notify_one();
            lock(&self.former).push(Arc::downgrade(&before));
        }
        lock(&self.left).remove(store);
        // An error means that the leadership is over, and this pass about to be dropped.
        let _ = self.opened.unbounded_send(Arc::clone(&opened));
        Ok(opened)
    }

    /// Positions for the next leader: of the open directories, and what the former one has left of others.
    pub fn positions(&self) -> Positions {
        // In this order: a directory is open before it is removed here.
        let mut positions = lock(&self.left).clone();
        for open in self.all() {
            positions.put(&open.place.store, open.known().reached);
        }
        positions
    }

    /// The directory of a WaterDataApi, if it was opened.
    pub fn get(&self, api: &ApiName) -> Option<Arc<OpenDirectory>> {
        lock(&self.open).get(api).map(Arc::clone)
    }

    /// Directories of a WaterDataApi that others replaced, and that are still written.
    pub fn former(&self, api: &ApiName) -> Vec<Arc<OpenDirectory>> {
        let mut former = lock(&self.former);
        former.retain(|open| open.strong_count() > 0);
        let written = former.iter().filter_map(Weak::upgrade);
        written.filter(|open| open.api == *api).collect()
    }

    /// Every open directory.
    pub fn all(&self) -> Vec<Arc<OpenDirectory>> {
        lock(&self.open).values().map(Arc::clone).collect()
    }

    /// Closes a directory to which nothing refers any more.
    pub fn close(&self, open: &OpenDirectory) {
        if let Some(closed) = lock(&self.open).remove(&open.api) {
            closed.closed.notify_one();
        }
    }

    /// The present epoch: a pass takes it before it reads anything of the cluster.
    pub fn epoch(&self) -> CacheEpoch {
        CacheEpoch(self.caught_up.load(Ordering::Acquire))
    }

    /// Keys of one ApiKey in the directory, with the directory's position, for a caller that has read the cluster since
    /// `epoch`. Read under a claim that no command of this leader which is still under way shares; has the directory
    /// claimed when that was not done or was lost, and rebuilt when Redis does not hold it whole.
    pub async fn owner_snapshot(
        &self,
        open: &OpenDirectory,
        epoch: CacheEpoch,
        uid: &str,
        origin: &Origin,
        hashes: &[KeyHash],
    ) -> Result<(Writer, OwnerSnapshot, Position), DirectoryError> {
        let look = async {
            for _ in 0..2 {
                let writer = open.claimed().await?;
                if open.known().caught_up > epoch {
                    return Err(DirectoryError::ReadBefore);
                }
                let reached = open.known().reached;
                let snapshot = open.directory.owner_snapshot(uid, origin, hashes).await?;
                if snapshot.term > writer.term() {
                    // Another leader has claimed it since: this one does not report what that one declares.
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
                    open.repair(damage);
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
    ) -> Result<DeclarationReceipt, DirectoryError> {
        let write = UnansweredWrite::begin(open, writer);
        let declared = write.answered_by(open.fenced(writer).declare(declaration).await);
        if let Ok(declared) = &declared {
            open.has_reached(declared.applied);
        }
        self.counted(declared.map_err(Into::into))
    }

    /// Makes the directory's plans those that the cluster declares.
    pub async fn set_plans(
        &self,
        open: &OpenDirectory,
        source: &dyn DesiredState,
    ) -> Result<(), DirectoryError> {
        let done = async {
            let writer = open.claimed().await?;
            let plans = source.plans(&open.api, open.known_plans().await?);
            let write = UnansweredWrite::begin(open, &writer);
            let applied = write.answered_by(open.fenced(&writer).set_plans(&plans).await)?;
            open.has_reached(applied);
            open.known().plans = plans;
            Ok(())
        };
        self.counted(done.await)
    }

    /// Forgets tombstones and last uses that are 90 days old.
    pub(crate) async fn forget_old(&self, open: &OpenDirectory) -> Result<(), DirectoryError> {
        let writer = open.claimed().await?;
        let write = UnansweredWrite::begin(open, &writer);
        write.answered_by(open.fenced(&writer).forget_old().await)?;
        Ok(())
    }

    /// Counts a failure and returns the outcome.
    fn counted<T>(&self, outcome: Result<T, DirectoryError>) -> Result<T, DirectoryError> {
        if let Err(error) = &outcome {
            error.count(&self.metrics);
        }
        outcome
    }
}

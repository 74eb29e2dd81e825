//! A stage for random changes: it remembers every key that was ever named, tells the clients what they
//! must be answered, and collects the Secrets of ApiKeys that are gone, as Kubernetes does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use water_domain::KeyHash;
use water_resources::ApiKey;

use crate::change::{self, Change, offering};
use crate::clients::Expected;
use crate::facts::{name, uid};
use crate::invariants::Violation;
use crate::making;
use crate::objects::{Objects, shown};
use crate::stage::Stage;

/// Until everything is as declared, when nothing happens any more: a pass that was hindered comes back
/// within half a minute.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// The first sweep comes 10 s after the start, the second a minute later.
const SWEPT_WITHIN: Duration = Duration::from_secs(150);
/// Between two looks at all ApiKeys.
const LOOK: Duration = Duration::from_millis(50);

pub struct Playground {
    pub stage: Arc<Stage>,
    memory: Arc<Mutex<Memory>>,
    /// Makes every hash and every description another.
    number: AtomicU64,
    looking: JoinHandle<()>,
}

/// By the ApiKey's uid.
#[derive(Default)]
struct Memory {
    known: HashMap<String, BTreeSet<KeyHash>>,
    stripped: BTreeSet<String>,
}

impl Playground {
    pub async fn new(namespace: &str) -> Result<Self> {
        let stage = Arc::new(Stage::new(namespace).await?);
        stage.world.apply(&offering(true))?;
        let memory = Arc::<Mutex<Memory>>::default();
        let looking = tokio::spawn(look(Arc::clone(&stage), Arc::clone(&memory)));
        Ok(Self {
            stage,
            memory,
            number: AtomicU64::new(1),
            looking,
        })
    }

    /// Makes a change.
    pub async fn make(&self, change: Change) -> Result<()> {
        let Some(place) = change.place() else {
            return making::of_world(change, &self.stage).await;
        };
        // Nobody looks between a change and what it means for the clients.
        let mut memory = self.memory.lock().await;
        let found = self.stage.objects.key(&change::name(place)).await?;
        if let Some(found) = &found {
            for hash in memory.known.entry(uid(found).into()).or_default().iter() {
                self.stage.clients.expect(*hash, Expected::Either);
            }
            if matches!(change, Change::Strip(_)) {
                memory.stripped.insert(uid(found).into());
            }
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        making::of_key(change, &self.stage, place, found, number).await
    }

    /// Waits until everything is as declared. What can never be made good ends the wait.
    pub async fn settle(&self) -> Result<()> {
        self.stage.world.apply(&offering(true))?;
        let settled = async || {
            for key in self.stage.objects.keys().await? {
                is_settled(&key)?;
            }
            let found = self.violations().await?;
            let lasting = found.iter().find(|violation| violation.invariant > 3);
            if let Some(lasting) = lasting {
                return Ok(Some(lasting.clone()));
            }
            ensure!(found.is_empty(), "{found:?}");
            Ok(None)
        };
        match self.stage.wait("rest", SETTLED_WITHIN, settled).await? {
            Some(violation) => bail!("{violation}"),
            None => Ok(()),
        }
    }

    /// Deletes all ApiKeys, and waits until they are gone.
    pub async fn clear(&self) -> Result<()> {
        for key in self.stage.objects.keys().await? {
            let place = name(&key).strip_prefix("key-").context("a place")?;
            self.make(Change::Delete(place.parse()?)).await?;
        }
        let gone = async || {
            let left = self.stage.objects.keys().await?;
            ensure!(
                left.is_empty(),
                "{:?}",
                left.iter().map(|key| &key.status).collect::<Vec<_>>()
            );
            Ok(())
        };
        self.stage.wait("no ApiKey", SETTLED_WITHIN, gone).await?;
        self.settle().await
    }

    /// Waits until what was stripped is swept, too.
    pub async fn swept(&self) -> Result<()> {
        let swept = async || self.stage.holds().await;
        self.stage.wait("two sweeps", SWEPT_WITHIN, swept).await
    }

    /// Those that a sweep will not make good.
    async fn violations(&self) -> Result<Vec<Violation>> {
        let mut found = self.stage.violations().await?;
        let memory = self.memory.lock().await;
        let is_swept = |violation: &Violation| {
            let mut stripped = memory.stripped.iter();
            violation.invariant == 2 && stripped.any(|uid| violation.found.contains(uid))
        };
        found.retain(|violation| !is_swept(violation));
        Ok(found)
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

/// Its end is through, or its last edit was looked at.
fn is_settled(key: &ApiKey) -> Result<()> {
    ensure!(
        key.metadata.deletion_timestamp.is_none(),
        "{} is being deleted",
        name(key)
    );
    let seen = key
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    ensure!(
        seen == key.metadata.generation,
        "{} was not looked at: {seen:?}",
        name(key)
    );
    Ok(())
}

async fn look(stage: Arc<Stage>, memory: Arc<Mutex<Memory>>) {
    loop {
        {
            let mut memory = memory.lock().await;
            // An API server that does not answer is asked again.
            if let Ok(keys) = stage.objects.keys().await {
                note(&stage, &keys, &mut memory);
                let _ = collect(&stage.objects, &keys).await;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What the clients must be answered from here on.
fn note(stage: &Stage, keys: &[ApiKey], memory: &mut Memory) {
    let living: BTreeSet<&str> = keys.iter().map(uid).collect();
    let Memory { known, stripped } = memory;
    known.retain(|uid, hashes| {
        let is_living = living.contains(uid.as_str());
        if !is_living && !stripped.contains(uid) {
            let dead = hashes.iter();
            dead.for_each(|hash| stage.clients.expect(*hash, Expected::Refused));
        }
        is_living
    });
    for key in keys {
        let known = known.entry(uid(key).into()).or_default();
        for (hash, expected) in expectations(key) {
            known.insert(hash);
            stage.clients.expect(hash, expected);
        }
    }
}

/// Of every key that the status names.
fn expectations(key: &ApiKey) -> BTreeMap<KeyHash, Expected> {
    let mut expected = BTreeMap::new();
    let Some(status) = &key.status else {
        return expected;
    };
    let announced = status.unrevealed.iter().map(|issued| &issued.hash);
    let before = status.previous.iter().map(|issued| &issued.hash);
    let others = announced.chain(before);
    expected.extend(others.filter_map(|hash| Some((hash.parse().ok()?, Expected::Either))));
    let ends = key.spec.expiration_time.is_some() || key.metadata.deletion_timestamp.is_some();
    let current = match shown(key, "Ready").as_str() {
        "True/Active" if !ends => Expected::Accepted,
        "True/Suspended" if !ends => Expected::Refused,
        _ => Expected::Either,
    };
    let hash = status
        .current
        .as_ref()
        .and_then(|issued| issued.hash.parse().ok());
    expected.extend(hash.map(|hash| (hash, current)));
    expected
}

/// What the garbage collector does.
async fn collect(objects: &Objects, keys: &[ApiKey]) -> Result<()> {
    let living: BTreeSet<&str> = keys.iter().map(uid).collect();
    for secret in objects.secrets().await? {
        let owners = secret.metadata.owner_references.iter().flatten();
        let mut owners = owners.map(|owner| owner.uid.as_str());
        if owners.any(|owner| !living.contains(owner)) {
            let name = secret.metadata.name.context("a name")?;
            let uid = secret.metadata.uid.context("a uid")?;
            objects.delete_secret_of(&name, &uid).await?;
        }
    }
    Ok(())
}

//! A stage for random changes: it remembers every key that was ever named, tells the clients what they
//! must be answered, and collects the Secrets of ApiKeys that are gone, as Kubernetes does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;
use water_domain::{KeyHash, Timestamp};
use water_harness::{Clock, Redis};
use water_resources::ApiKey;

use crate::change::{self, Change, LONG_OVERLAP, offering};
use crate::clients::Expected;
use crate::facts::{name, uid};
use crate::invariants::Violation;
use crate::making;
use crate::objects::{Objects, shown};
use crate::operators::Operators;
use crate::stage::Stage;
use crate::world::World;

/// Until everything is as declared, when nothing happens any more: a pass that was hindered comes back
/// within half a minute.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// The first sweep comes 10 s after the start, the second a minute later.
const SWEPT_WITHIN: Duration = Duration::from_secs(150);
/// Redis looks at its clock once a second.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
/// A gate asks Redis for the time again and again, and may be ahead in between.
const CLOCK_ERROR: Duration = Duration::from_secs(1);
/// At least between two looks at all ApiKeys.
const LOOK: Duration = Duration::from_millis(50);

pub struct Playground {
    pub stage: Arc<Stage>,
    operators: Operators,
    /// Redis', and by how many seconds it is ahead.
    clock: Clock,
    ahead: AtomicI64,
    memory: Arc<Mutex<Memory>>,
    /// Makes every hash and every description another.
    number: AtomicU64,
    /// Whenever there may be something new to look at.
    changed: Arc<Notify>,
    _looking: JoinSet<()>,
}

/// By the ApiKey's uid.
#[derive(Default)]
struct Memory {
    known: HashMap<String, BTreeSet<KeyHash>>,
    stripped: BTreeSet<String>,
    /// Hashes of stripped ApiKeys: the gates accept them until a sweep.
    unswept: BTreeSet<KeyHash>,
    /// Hashes of ApiKeys that are gone. One that is brought again is accepted if Redis has forgotten its
    /// revocation.
    revoked: BTreeSet<KeyHash>,
    /// Hashes whose revocation a restored dump may hold.
    recalled: BTreeSet<KeyHash>,
    /// The number of the hash that was last brought to a place, by the place.
    brought: HashMap<u8, u64>,
}

impl Playground {
    pub async fn new(namespace: &str) -> Result<Self> {
        let clock = Clock::read_every_second()?;
        let redis = Redis::start_on(&clock).await?;
        let world = World::with_redis(namespace, &redis.url()).await?;
        let stage = Arc::new(Stage::of(world, redis, |operator| operator).await?);
        let operators = Operators::of(&stage)?;
        stage.objects.edit_api(&offering(true)).await?;
        let memory = Arc::<Mutex<Memory>>::default();
        let changed = Arc::<Notify>::default();
        let mut looking = JoinSet::new();
        let changes = stage.objects.changes();
        let notified = Arc::clone(&changed);
        looking.spawn(changes.for_each(move |()| {
            notified.notify_one();
            future::ready(())
        }));
        looking.spawn(look(
            Arc::clone(&stage),
            Arc::clone(&memory),
            Arc::clone(&changed),
        ));
        Ok(Self {
            stage,
            operators,
            clock,
            ahead: AtomicI64::new(0),
            memory,
            number: AtomicU64::new(1),
            changed,
            _looking: looking,
        })
    }

    /// Makes a change.
    pub async fn make(&self, change: Change) -> Result<()> {
        if let Change::Age(seconds) = change {
            return self.age(seconds.into()).await;
        }
        if change == Change::Restore {
            let mut memory = self.memory.lock().await;
            memory.recalled = memory.revoked.clone();
            look_once(&self.stage, &mut memory).await?;
        }
        let Some(place) = change.place() else {
            return making::of_world(change, &self.stage, &self.operators).await;
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
        let mut number = self.number.fetch_add(1, Ordering::Relaxed);
        match (change, &found) {
            (Change::Create(_), None) | (Change::Rotate(_), Some(_)) => {
                memory.brought.insert(place, number);
            }
            (Change::Return(_), None) => {
                number = *memory.brought.entry(place).or_insert(number);
            }
            _ => {}
        }
        if found.is_none() {
            // Who was there before is dead; what comes may bring its key to life again.
            look_once(&self.stage, &mut memory).await?;
            let returned = self.returned(place, number).await?;
            let returned = returned.into_iter();
            returned.for_each(|hash| self.stage.clients.expect(hash, Expected::Either));
        }
        making::of_key(change, &self.stage, place, found, number).await?;
        if matches!(change, Change::Strip(_)) {
            self.stage.releases.strip(&change::name(place));
        }
        // It may have changed nothing but what is expected.
        self.changed.notify_one();
        Ok(())
    }

    /// The keys that a new ApiKey finds: its brought hash, and one in a Secret that was left behind. Both
    /// are revoked, unless Redis has forgotten that.
    async fn returned(&self, place: u8, number: u64) -> Result<Vec<KeyHash>> {
        let hash = change::hash(place, number).and_then(|hash| hash.parse().ok());
        let name = change::name(place);
        let in_secret = self.stage.objects.text_hash(&name).await;
        Ok(hash.into_iter().chain(in_secret.ok().flatten()).collect())
    }

    /// Puts Redis' clock ahead. The operators' timers run on: all keys are to be looked at again.
    async fn age(&self, seconds: i64) -> Result<()> {
        let ahead = self.ahead.fetch_add(seconds, Ordering::Relaxed) + seconds;
        let before = self.stage.now().await?;
        self.clock.set(ahead)?;
        let noticed = async || {
            let passed = self.stage.now().await?.as_millis() - before.as_millis();
            ensure!(passed >= seconds * 1000, "only {passed} ms have passed");
            Ok(())
        };
        self.stage
            .wait("Redis' clock", NOTICED_WITHIN, noticed)
            .await?;
        let note = json!({ "metadata": { "annotations": { "looked-at": ahead.to_string() } } });
        for key in self.stage.objects.keys().await? {
            making::unless_gone(self.stage.objects.edit(name(&key), &note).await)?;
        }
        Ok(())
    }

    /// Waits until everything is as declared. What can never be made good ends the wait.
    pub async fn settle(&self) -> Result<()> {
        self.operators.go_on()?;
        self.stage.objects.edit_api(&offering(true)).await?;
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
        let waited = self.stage.wait_for_all("rest", SETTLED_WITHIN, settled);
        match waited.await.with_context(|| self.operators.log_ends())? {
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
        let gone = self.stage.wait("no ApiKey", SETTLED_WITHIN, gone).await;
        gone.with_context(|| self.operators.log_ends())?;
        self.settle().await?;
        for secret in self.stage.objects.secrets().await? {
            delete(&self.stage.objects, secret).await?;
        }
        Ok(())
    }

    /// Waits until what was stripped is swept, too, and looks at the invariants that take long.
    pub async fn swept(&self) -> Result<()> {
        let swept = async || self.stage.holds().await;
        let waited = self.stage.wait_for_all("two sweeps", SWEPT_WITHIN, swept);
        waited.await?;
        self.operators.leave_to_first(&self.stage).await?;
        self.stage.holds_for_good().await
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

/// Looks after each change: in between it would see the same.
async fn look(stage: Arc<Stage>, memory: Arc<Mutex<Memory>>, changed: Arc<Notify>) {
    loop {
        changed.notified().await;
        {
            let mut memory = memory.lock().await;
            let looked = look_once(&stage, &mut memory).await;
            let collected = match looked {
                Ok(keys) => collect(&stage.objects, &keys).await,
                Err(error) => Err(error),
            };
            // An API server that does not answer is asked again.
            if collected.is_err() {
                changed.notify_one();
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn look_once(stage: &Stage, memory: &mut Memory) -> Result<Vec<ApiKey>> {
    let keys = stage.objects.keys().await?;
    note(stage, &keys, memory);
    Ok(keys)
}

/// What the clients must be answered from here on.
fn note(stage: &Stage, keys: &[ApiKey], memory: &mut Memory) {
    let living: BTreeSet<&str> = keys.iter().map(uid).collect();
    let Memory {
        known,
        stripped,
        unswept,
        revoked,
        recalled,
        ..
    } = memory;
    known.retain(|uid, hashes| {
        let is_living = living.contains(uid.as_str());
        if !is_living {
            if stripped.contains(uid) {
                unswept.extend(hashes.iter());
            }
            revoked.extend(hashes.iter());
            hashes.iter().for_each(|hash| ended(stage, hash, unswept));
        }
        is_living
    });
    let now = stage.gate.now();
    for key in keys {
        let known = known.entry(uid(key).into()).or_default();
        let named = expectations(key, now);
        // In force at every gate: so is the end of those before.
        if shown(key, "Ready").starts_with("True/") {
            let before = known.iter().filter(|hash| !named.contains_key(*hash));
            before.for_each(|hash| ended(stage, hash, unswept));
        }
        for (hash, expected) in named {
            known.insert(hash);
            let expected = match expected {
                // Gates refuse it from the rebuild on, and the status says so a moment later.
                Expected::Accepted if recalled.contains(&hash) => Expected::Either,
                expected => expected,
            };
            stage.clients.expect(hash, expected);
        }
    }
}

/// Its ApiKey is gone, or names it no more.
fn ended(stage: &Stage, hash: &KeyHash, unswept: &BTreeSet<KeyHash>) {
    let expected = match unswept.contains(hash) {
        true => Expected::Either,
        false => Expected::Refused,
    };
    stage.clients.expect(*hash, expected);
}

/// Of every key that spec and status name, at that time of the gate's.
fn expectations(key: &ApiKey, now: Option<Timestamp>) -> BTreeMap<KeyHash, Expected> {
    let mut expected = BTreeMap::new();
    let brought = key.spec.material.hash.as_ref();
    let brought = brought.and_then(|brought| brought.sha256.parse().ok());
    expected.extend(brought.map(|hash| (hash, Expected::Either)));
    let Some(status) = &key.status else {
        return expected;
    };
    let announced = status.unrevealed.iter().map(|issued| &issued.hash);
    let before = status.previous.iter().map(|issued| &issued.hash);
    let others = announced.chain(before);
    expected.extend(others.filter_map(|hash| Some((hash.parse().ok()?, Expected::Either))));
    let end = key.spec.expiration_time;
    let ends = end.is_some() || key.metadata.deletion_timestamp.is_some();
    let has_ended = end
        .zip(now)
        .is_some_and(|(end, now)| end.plus(CLOCK_ERROR) <= now);
    // A key that is replaced by itself, or of which the Secret is gone, may end before the status
    // tells of another.
    let rotation = &key.spec.rotation;
    let is_steady =
        rotation.period_seconds.is_none() && rotation.overlap_seconds >= LONG_OVERLAP.into();
    let current = match shown(key, "Ready").as_str() {
        "True/Active" | "False/Expired" if has_ended => Expected::Refused,
        "True/Active" if !ends && is_steady => Expected::Accepted,
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
            delete(objects, secret).await?;
        }
    }
    Ok(())
}

async fn delete(objects: &Objects, secret: Secret) -> Result<()> {
    let name = secret.metadata.name.context("a name")?;
    let uid = secret.metadata.uid.context("a uid")?;
    objects.delete_secret_of(&name, &uid).await
}

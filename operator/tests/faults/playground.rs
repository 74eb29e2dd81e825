//! A stage for random changes: it remembers every key that was ever named, tells the clients what they
//! must be answered, and collects the Secrets of ApiKeys that are gone, as Kubernetes does.

use std::collections::{BTreeSet, HashMap};
use std::future;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use water_domain::{KeyHash, Timestamp};
use water_harness::{Clock, Network, Proxy, Redis};
use water_resources::ApiKey;

use crate::change::{self, Change, offering};
use crate::clients::Expected;
use crate::expectations::{expectations, is_restricted, named};
use crate::facts::{name, uid};
use crate::invariants::Violation;
use crate::making;
use crate::objects::{Objects, shown, text_hash};
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
/// At least between two looks at all ApiKeys …
const LOOK: Duration = Duration::from_millis(50);
/// … and at most, so that what is expected for a short while is expected again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// A gate that says nothing for its grace of two minutes is not waited for any more. It is not cut off
/// for half of that.
const CUT_OFF_WITHIN: Duration = Duration::from_secs(60);

pub struct Playground {
    pub stage: Arc<Stage>,
    operators: Operators,
    /// Redis', and by how many seconds it is ahead.
    clock: Clock,
    ahead: AtomicI64,
    /// The network between the gate and Redis, and since when it is cut.
    to_gate: Proxy,
    cut: Lock<Option<Instant>>,
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
    /// The earliest expiration that was declared of a key: one that is replaced keeps it, though the
    /// ApiKey's is put off.
    ends: HashMap<KeyHash, Timestamp>,
}

impl Memory {
    /// Keeps the expiration of all keys that an ApiKey names, before it is changed.
    fn keep_end(&mut self, key: &ApiKey) {
        let Some(end) = key.spec.expiration_time else {
            return;
        };
        for hash in named(key) {
            let earliest = self.ends.entry(hash).or_insert(end);
            *earliest = end.min(*earliest);
        }
    }
}

impl Playground {
    pub async fn new(namespace: &str) -> Result<Self> {
        let clock = Clock::read_every_second()?;
        let redis = Redis::start_on(&clock).await?;
        let to_gate = Proxy::before(redis.address()).await?;
        let through = format!("redis://{}/", to_gate.address());
        let world = World::with_redis(namespace, &through).await?;
        let mut stage = Stage::of(world, redis, |operator| operator).await?;
        // Only the gate is cut off, not who looks at everything.
        stage.world.redis_url = stage.redis.url();
        let stage = Arc::new(stage);
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
            to_gate,
            cut: Lock::default(),
            memory,
            number: AtomicU64::new(1),
            changed,
            _looking: looking,
        })
    }

    /// Makes a change.
    pub async fn make(&self, change: Change) -> Result<()> {
        let cut = *self.cut();
        if cut.is_some_and(|since| since.elapsed() >= CUT_OFF_WITHIN) {
            self.cut_gate(false);
        }
        match change {
            Change::Age(seconds) => return self.age(seconds.into()).await,
            Change::CutGate(on) => {
                self.cut_gate(on);
                return Ok(());
            }
            // Without them nothing is enforced.
            Change::Enforce if self.cut().is_some() || !self.operators.run() => return Ok(()),
            Change::Enforce => return self.enforced().await,
            _ => {}
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
            memory.keep_end(found);
            for hash in memory.known.entry(uid(found).into()).or_default().iter() {
                self.stage.clients.expect(*hash, Expected::Either);
            }
            if matches!(change, Change::Strip(_)) {
                memory.stripped.insert(uid(found).into());
            }
        }
        let mut number = self.number.fetch_add(1, Ordering::Relaxed);
        match (change, &found) {
            (Change::Create(_), None) | (Change::Rotate(_) | Change::Rename(..), Some(_)) => {
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

    fn cut(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts the link between the gate and Redis, or mends it. Connections are reset: an answer that came
    /// late would put the gate's clock wrong by half of that.
    fn cut_gate(&self, on: bool) {
        let mut cut = self.cut();
        *cut = on.then(|| cut.unwrap_or_else(Instant::now));
        let network = if on { Network::Reset } else { Network::Good };
        self.to_gate.set(network);
    }

    /// Puts Redis' clock ahead. The operators' timers run on: all keys are to be looked at again. The gate
    /// is not cut off: its grace would be over after some jumps.
    async fn age(&self, seconds: i64) -> Result<()> {
        self.cut_gate(false);
        let ahead = self.ahead.fetch_add(seconds, Ordering::Relaxed) + seconds;
        let before = self.stage.now().await?;
        self.clock.set(ahead)?;
        let noticed = async || {
            let passed = self.stage.now().await?.as_millis() - before.as_millis();
            ensure!(passed >= seconds * 1000, "only {passed} ms have passed");
            let gate = self.stage.gate.now().context("a gate without a clock")?;
            let passed = gate.as_millis() - before.as_millis();
            ensure!(passed >= seconds * 1000, "{passed} ms at the gate");
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

    /// Waits until the gate refuses all keys that are suspended, have expired or do not begin yet, though
    /// something hinders them: a missing plan, somebody else's Secret.
    async fn enforced(&self) -> Result<()> {
        let enforced = async || {
            let keys = self.stage.objects.keys().await?;
            let memory = self.memory.lock().await;
            let now = self.stage.gate.now().context("a gate without a clock")?;
            for key in keys.iter().filter(|key| is_restricted(key, now)) {
                let known = memory.known.get(uid(key)).into_iter().flatten();
                let all: BTreeSet<KeyHash> = known.copied().chain(named(key)).collect();
                // Keys of stripped ApiKeys are accepted until a sweep.
                for hash in all.difference(&memory.unswept) {
                    let accepted = self.stage.gate.account(hash)?.is_some();
                    ensure!(!accepted, "{hash} is accepted: {key:?}");
                }
            }
            Ok(())
        };
        let enforced = self
            .stage
            .wait("every restriction", SETTLED_WITHIN, enforced);
        enforced.await.with_context(|| self.operators.log_ends())
    }

    /// Waits until everything is as declared. What can never be made good ends the wait.
    pub async fn settle(&self) -> Result<()> {
        self.operators.go_on()?;
        self.cut_gate(false);
        self.enforced().await?;
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
        let _ = timeout(LOOK_AGAIN, changed.notified()).await;
        {
            let mut memory = memory.lock().await;
            let looked = look_once(&stage, &mut memory).await;
            let collected = match looked {
                Ok((keys, secrets)) => collect(&stage.objects, &keys, secrets).await,
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

async fn look_once(stage: &Stage, memory: &mut Memory) -> Result<(Vec<ApiKey>, Vec<Secret>)> {
    let now = stage.gate.now();
    let keys = stage.objects.keys().await?;
    // After the status: a Secret that still holds the current key was not replaced before.
    let secrets = stage.objects.secrets().await?;
    let in_secrets = in_secrets(&keys, &secrets);
    note(stage, &keys, &in_secrets, now, memory);
    Ok((keys, secrets))
}

/// The keys in Secrets that stay: the others are about to be collected.
fn in_secrets(keys: &[ApiKey], secrets: &[Secret]) -> BTreeSet<KeyHash> {
    let living: BTreeSet<&str> = keys.iter().map(uid).collect();
    let staying = secrets
        .iter()
        .filter(|secret| !is_collected(secret, &living));
    staying
        .filter_map(|secret| text_hash(secret).ok())
        .collect()
}

/// What the clients must be answered from here on.
fn note(
    stage: &Stage,
    keys: &[ApiKey],
    in_secrets: &BTreeSet<KeyHash>,
    now: Option<Timestamp>,
    memory: &mut Memory,
) {
    let living: BTreeSet<&str> = keys.iter().map(uid).collect();
    let Memory {
        known,
        stripped,
        unswept,
        revoked,
        recalled,
        ends,
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
    for key in keys {
        let known = known.entry(uid(key).into()).or_default();
        let named = expectations(key, in_secrets, ends, now);
        // In force at every gate: so is the end of those before.
        if shown(key, "Ready").starts_with("True/") {
            let before = known.iter().filter(|hash| !named.contains_key(*hash));
            before.for_each(|hash| ended(stage, hash, unswept));
        }
        for (hash, expected) in named {
            known.insert(hash);
            // Gates refuse it from the rebuild on, and the status says so a moment later.
            let expected = match recalled.contains(&hash) && expected.accepts() {
                true => Expected::Either.into(),
                false => expected,
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

/// What the garbage collector does.
async fn collect(objects: &Objects, keys: &[ApiKey], secrets: Vec<Secret>) -> Result<()> {
    let living: BTreeSet<&str> = keys.iter().map(uid).collect();
    for secret in secrets {
        if is_collected(&secret, &living) {
            delete(objects, secret).await?;
        }
    }
    Ok(())
}

fn is_collected(secret: &Secret, living: &BTreeSet<&str>) -> bool {
    let owners = secret.metadata.owner_references.iter().flatten();
    let mut owners = owners.map(|owner| owner.uid.as_str());
    owners.any(|owner| !living.contains(owner))
}

async fn delete(objects: &Objects, secret: Secret) -> Result<()> {
    let name = secret.metadata.name.context("a name")?;
    let uid = secret.metadata.uid.context("a uid")?;
    objects.delete_secret_of(&name, &uid).await
}

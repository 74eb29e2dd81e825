//! A stage for random changes: it remembers every key that was ever named, sets the required answers to
//! clients, and collects the Secrets of ApiKeys that are gone, as Kubernetes does.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use water_domain::{KeyHash, Timestamp};
use water_harness::{Clock, Network, Redis};
use water_kit::operator::clients::Expected;
use water_kit::operator::invariants::Violation;
use water_kit::operator::objects::{name, shown, text_hash, uid};
use water_kit::operator::stage::Stage;
use water_resources::ApiKey;

use super::change::{self, Change, Edit, offering};
use super::expectations::{expectations, is_restricted, named};
use super::making::{self, unless_gone};
use super::operators::Operators;

/// Time until everything is as declared, when nothing happens any more: the next pass over a blocked key follows within
/// half a minute.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// The first sweep comes 10 s after the start, the second a minute later.
const SWEPT_WITHIN: Duration = Duration::from_secs(150);
/// Time within which Redis notices its clock, which it reads once a second.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
/// Pause between a write and the reading of all ApiKeys …
const LOOK: Duration = Duration::from_millis(50);
/// … and at most between two readings, so that what is expected for a short while is expected again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// A gate that has no lease, such as one that Redis has lost, is not waited for beyond two minutes. It is not cut off
/// for half of that.
const CUT_OFF_WITHIN: Duration = Duration::from_secs(60);

pub struct Playground {
    pub stage: Arc<Stage>,
    operators: Operators,
    /// Redis', and by how many seconds it is ahead.
    clock: Clock,
    ahead: AtomicI64,
    /// Time since which the network between the gate and Redis is cut.
    cut: Lock<Option<Instant>>,
    memory: Arc<Mutex<Memory>>,
    /// Makes every hash and every description another.
    number: AtomicU64,
    looking: JoinHandle<()>,
}

/// Memory of keys; `known` and `stripped` are by the ApiKey's uid.
#[derive(Default)]
struct Memory {
    known: HashMap<String, BTreeSet<KeyHash>>,
    stripped: BTreeSet<String>,
    /// Hashes of stripped ApiKeys: the gates accept them until a sweep.
    unswept: BTreeSet<KeyHash>,
    /// Hashes of ApiKeys that are gone. One that is provided again is accepted if Redis has forgotten its
    /// revocation.
    revoked: BTreeSet<KeyHash>,
    /// Hashes whose revocation a restored dump may hold.
    recalled: BTreeSet<KeyHash>,
    /// The number of the hash that was last provided at a place, by the place.
    provided: HashMap<u8, u64>,
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

    /// Required answer to the key of an ApiKey that is gone, or names it no more.
    fn ended(&self, hash: &KeyHash) -> Expected {
        if self.unswept.contains(hash) {
            Expected::Either
        } else {
            Expected::Refused
        }
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl Playground {
    pub async fn new(namespace: &str) -> Result<Self> {
        let clock = Clock::read_every_second()?;
        let redis = Redis::start_on(&clock).await?;
        let stage = Arc::new(Stage::with_redis(namespace, redis).await?);
        let operators = Operators::start(&stage)?;
        stage.objects.edit_api(&offering(true))?;
        let memory = Arc::<Mutex<Memory>>::default();
        let looking = look(Arc::clone(&stage), Arc::clone(&memory));
        Ok(Self {
            stage,
            operators,
            clock,
            ahead: AtomicI64::new(0),
            cut: Lock::default(),
            memory,
            number: AtomicU64::new(1),
            looking: tokio::spawn(looking),
        })
    }

    /// Makes a change.
    pub async fn make(&self, change: Change) -> Result<()> {
        let cut = *self.cut();
        if cut.is_some_and(|since| since.elapsed() >= CUT_OFF_WITHIN) {
            self.cut_gate(false);
        }
        match change {
            Change::Key(place, edit) => return self.edit(place, edit).await,
            Change::Age(seconds) => return self.age(seconds.into()).await,
            Change::CutGate(on) => self.cut_gate(on),
            // Without them nothing is enforced.
            Change::Enforce if self.cut().is_some() || !self.operators.run() => {}
            Change::Enforce => return self.enforced().await,
            Change::Restore => {
                let mut memory = self.memory.lock().await;
                memory.recalled = memory.revoked.clone();
                look_once(&self.stage, &mut memory)?;
            }
            _ => {}
        }
        making::of_world(change, &self.stage, &self.operators).await
    }

    /// Changes a key. Nobody reads between the change and its meaning for the clients.
    async fn edit(&self, place: u8, edit: Edit) -> Result<()> {
        let (stage, mut memory) = (&self.stage, self.memory.lock().await);
        let found = stage.objects.key(&change::name(place))?;
        if let Some(found) = &found {
            memory.keep_end(found);
            for hash in memory.known.entry(uid(found).into()).or_default().iter() {
                stage.clients.expect(*hash, Expected::Either);
            }
            if edit == Edit::Strip {
                memory.stripped.insert(uid(found).into());
            }
        }
        let mut number = self.number.fetch_add(1, Ordering::Relaxed);
        match (edit, &found) {
            (Edit::Create, None) | (Edit::Rotate | Edit::Rename(_), Some(_)) => {
                memory.provided.insert(place, number);
            }
            (Edit::Return, None) => {
                number = *memory.provided.entry(place).or_insert(number);
            }
            _ => {}
        }
        if found.is_none() {
            // The former is dead; a new one may bring its key to life again.
            look_once(stage, &mut memory)?;
            let hash = change::hash(place, number).and_then(|hash| hash.parse().ok());
            // Its provided hash, and the key in a Secret that was left behind. Both are revoked, unless
            // Redis has forgotten that.
            let in_secret = stage.objects.text_hash(&change::name(place));
            let returned = hash.into_iter().chain(in_secret.ok().flatten());
            returned.for_each(|hash| stage.clients.expect(hash, Expected::Either));
        }
        making::of_key(edit, stage, place, found, number).await?;
        if edit == Edit::Strip {
            stage.releases.strip(&change::name(place));
        }
        // It may have changed nothing but what is expected.
        stage.written.notify_one();
        Ok(())
    }

    fn cut(&self) -> MutexGuard<'_, Option<Instant>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts the link between the gate and Redis, or mends it. Connections are reset: an answer that came
    /// late would put the gate's clock wrong by half of that.
    fn cut_gate(&self, on: bool) {
        let mut cut = self.cut();
        *cut = on.then(|| cut.unwrap_or_else(Instant::now));
        let network = if on { Network::Reset } else { Network::Good };
        self.stage.to_gate.set(network);
    }

    /// Puts Redis' clock ahead. The operators' timers run on: all keys have to be read again. The gate is not cut off:
    /// it has to notice.
    async fn age(&self, seconds: i64) -> Result<()> {
        self.cut_gate(false);
        let ahead = self.ahead.fetch_add(seconds, Ordering::Relaxed) + seconds;
        let before = self.stage.now().await?;
        self.clock.set(ahead)?;
        let noticed = async || {
            let gate = self.stage.gate.now().context("a gate without a clock")?;
            for now in [self.stage.now().await?, gate] {
                let passed = now.as_millis() - before.as_millis();
                ensure!(passed >= seconds * 1000, "only {passed} ms have passed");
            }
            Ok(())
        };
        let what = "Redis' clock";
        self.stage.wait(what, NOTICED_WITHIN, noticed).await?;
        let note = json!({ "metadata": { "annotations": { "looked-at": ahead.to_string() } } });
        for key in self.stage.objects.keys()? {
            unless_gone(self.stage.objects.edit(name(&key), &note))?;
        }
        Ok(())
    }

    /// Waits until the gate refuses all keys that are suspended, have expired or do not begin yet, though
    /// something blocks them: a missing plan, somebody else's Secret.
    async fn enforced(&self) -> Result<()> {
        let enforced = async || {
            let keys = self.stage.objects.keys()?;
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
        let what = "every restriction";
        self.stage.wait(what, SETTLED_WITHIN, enforced).await
    }

    /// Waits until everything is as declared.
    pub async fn settle(&self) -> Result<()> {
        self.operators.go_on()?;
        self.cut_gate(false);
        self.enforced().await?;
        self.stage.objects.edit_api(&offering(true))?;
        let violations = async || {
            for key in self.stage.objects.keys()? {
                is_settled(&key)?;
            }
            self.violations().await
        };
        let nothing = async || Ok(());
        self.stage.rests(SETTLED_WITHIN, violations, nothing).await
    }

    /// Deletes all ApiKeys, and waits until they are gone.
    pub async fn clear(&self) -> Result<()> {
        for key in self.stage.objects.keys()? {
            let place = name(&key).strip_prefix("key-").context("a place")?;
            self.edit(place.parse()?, Edit::Delete).await?;
        }
        let gone = async || {
            let left = self.stage.objects.keys()?;
            let left: Vec<_> = left.iter().map(|key| &key.status).collect();
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        };
        self.stage.wait("no ApiKey", SETTLED_WITHIN, gone).await?;
        self.settle().await?;
        for secret in self.stage.objects.secrets()? {
            unless_gone(self.stage.objects.delete_exactly(&secret))?;
        }
        Ok(())
    }

    /// Waits until what was stripped is swept, too, and checks the invariants that take long.
    pub async fn swept(&self) -> Result<()> {
        let swept = async || self.stage.holds().await;
        let waited = self.stage.wait_for_all("two sweeps", SWEPT_WITHIN, swept);
        waited.await?;
        self.operators.leave_to_first(&self.stage).await?;
        self.stage.holds_for_good().await
    }

    /// Violations that a sweep will not make good.
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

/// Checks that its end is through, or its last edit was read.
fn is_settled(key: &ApiKey) -> Result<()> {
    let (name, metadata) = (name(key), &key.metadata);
    let is_deleting = metadata.deletion_timestamp.is_some();
    ensure!(!is_deleting, "{name} is being deleted");
    let status = key.status.as_ref();
    let seen = status.and_then(|status| status.observed_generation);
    ensure!(seen == metadata.generation, "{name} was not read: {seen:?}");
    Ok(())
}

/// Reads after each write: in between it would see the same.
async fn look(stage: Arc<Stage>, memory: Arc<Mutex<Memory>>) {
    loop {
        let _ = timeout(LOOK_AGAIN, stage.written.notified()).await;
        // It is on its way yet.
        sleep(LOOK).await;
        let mut memory = memory.lock().await;
        let looked = look_once(&stage, &mut memory);
        // An API server that does not answer is asked again.
        if looked.and_then(|gone| collect(&stage, &gone)).is_err() {
            stage.written.notify_one();
        }
    }
}

/// Reads all ApiKeys, and sets the required answers. Returns the Secrets of those that are gone.
fn look_once(stage: &Stage, memory: &mut Memory) -> Result<Vec<Secret>> {
    let now = stage.gate.now();
    let keys = stage.objects.keys()?;
    // After the status: a Secret that still holds the current key was not replaced before.
    let secrets = stage.objects.secrets()?;
    let living: BTreeSet<&str> = keys.iter().map(uid).collect();
    let (gone, staying): (Vec<Secret>, Vec<Secret>) = secrets.into_iter().partition(|secret| {
        let owners = secret.metadata.owner_references.iter().flatten();
        owners
            .into_iter()
            .any(|owner| !living.contains(&*owner.uid))
    });
    let in_secrets = staying.iter().filter_map(|secret| text_hash(secret).ok());
    note(stage, &keys, &in_secrets.collect(), now, memory);
    Ok(gone)
}

/// Sets the required answers to clients from here on.
fn note(
    stage: &Stage,
    keys: &[ApiKey],
    in_secrets: &BTreeSet<KeyHash>,
    now: Option<Timestamp>,
    memory: &mut Memory,
) {
    let living: BTreeSet<&str> = keys.iter().map(uid).collect();
    let mut known = std::mem::take(&mut memory.known);
    known.retain(|uid, hashes| {
        let is_living = living.contains(uid.as_str());
        if !is_living {
            if memory.stripped.contains(uid) {
                memory.unswept.extend(hashes.iter());
            }
            memory.revoked.extend(hashes.iter());
            let hashes = hashes.iter();
            hashes.for_each(|hash| stage.clients.expect(*hash, memory.ended(hash)));
        }
        is_living
    });
    for key in keys {
        let known = known.entry(uid(key).into()).or_default();
        let named = expectations(key, in_secrets, &memory.ends, now);
        // In force at every gate: so is the end of those before.
        if shown(key, "Ready").starts_with("True/") {
            let before = known.iter().filter(|hash| !named.contains_key(*hash));
            before.for_each(|hash| stage.clients.expect(*hash, memory.ended(hash)));
        }
        for (hash, expected) in named {
            known.insert(hash);
            // Gates refuse it from the rebuild on, and the status says so a moment later.
            let is_recalled = memory.recalled.contains(&hash) && expected.accepts();
            let either = Expected::Either.into();
            let expected = if is_recalled { either } else { expected };
            stage.clients.expect(hash, expected);
        }
    }
    memory.known = known;
}

/// Deletes these Secrets, as the garbage collector does.
fn collect(stage: &Stage, gone: &[Secret]) -> Result<()> {
    let mut gone = gone.iter();
    gone.try_for_each(|secret| unless_gone(stage.objects.delete_exactly(secret)))
}

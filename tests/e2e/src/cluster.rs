//! The cluster under test, shared by tests that keep to their own accounts, or
//! taken alone by tests that measure, break or reload something for everyone.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Error, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;
use tokio::sync::{
    OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit, watch,
};
use tokio::time::Instant;
use water_harness::{wait_for_steps, wait_until};

use crate::kubectl::is_kubectls;
use crate::{ApiKey, Environment, Kubectl, Water, rollout};

/// The namespace of the release under test.
pub const NAMESPACE: &str = "water";
/// The name of the release, and of its WaterDataApi.
pub const RELEASE: &str = "water-data";

/// Long enough for a loaded machine; what must be quicker is measured where it matters.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Longest step of a rollout: a pod's start, its probes, and the pause before the next one.
const STEP: Duration = Duration::from_secs(120);
/// Accounts for tests that ask for any: none of them meets its limit.
const ACCOUNTS: usize = 40;
/// Accounts of loads: at 500 requests a second each has 100 a minute.
const LOAD_ACCOUNTS: usize = 300;
/// Tests that run at a time: they wait most of their time, and kubectl takes memory.
const BESIDE: usize = 8;

static BESIDE_OTHERS: Semaphore = Semaphore::const_new(BESIDE);
static IN_USE: RwLock<()> = RwLock::const_new(());
/// Tests that share the cluster, or wait for that.
static SHARING: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::channel(0).0);
static ANY_KEYS: OnceCell<Vec<String>> = OnceCell::const_new();
static LOAD_KEYS: OnceCell<Vec<String>> = OnceCell::const_new();
static NEXT_KEY: AtomicUsize = AtomicUsize::new(0);

/// Member of [`SHARING`], until it is dropped.
struct Sharing;

impl Sharing {
    fn begin() -> Self {
        SHARING.send_modify(|sharing| *sharing += 1);
        Self
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        SHARING.send_modify(|sharing| *sharing -= 1);
    }
}

/// Prints, once it is dropped, how long a test had the cluster: what libtest measures has the wait for it in it.
struct Taken(Instant);

impl Drop for Taken {
    fn drop(&mut self) {
        println!("the cluster was in use for {:.1?}", self.0.elapsed());
    }
}

enum Use {
    Shared {
        _guard: RwLockReadGuard<'static, ()>,
        _turn: SemaphorePermit<'static>,
        _sharing: Sharing,
        _taken: Taken,
    },
    Alone {
        _guard: RwLockWriteGuard<'static, ()>,
        _taken: Taken,
    },
}

/// The cluster, for as long as the test holds it.
pub struct Cluster {
    /// Variables that describe it.
    pub environment: Environment,
    /// kubectl in the release's namespace.
    pub kubectl: Kubectl,
    /// The API behind the ingress.
    pub water: Water,
    held: Arc<Use>,
}

impl Cluster {
    /// Takes the cluster together with other tests that keep to their own accounts.
    pub async fn shared() -> Result<Self> {
        let _sharing = Sharing::begin();
        Self::held(Use::Shared {
            _turn: BESIDE_OTHERS.acquire().await?,
            _guard: IN_USE.read().await,
            _sharing,
            _taken: Taken(Instant::now()),
        })
        .await
    }

    /// Takes the cluster without any other test, once those that share it have ended, and it is as installed.
    pub async fn alone() -> Result<Self> {
        let mut sharing = SHARING.subscribe();
        sharing.wait_for(|sharing| *sharing == 0).await?;
        let cluster = Self::held(Use::Alone {
            _guard: IN_USE.write().await,
            _taken: Taken(Instant::now()),
        })
        .await?;
        cluster.as_installed().await?;
        Ok(cluster)
    }

    async fn held(held: Use) -> Result<Self> {
        let environment = Environment::read()?;
        let kubectl = Kubectl::new(environment.kubeconfig.clone(), NAMESPACE).await?;
        let water = Water::at(&environment.url)?;
        Ok(Self {
            environment,
            kubectl,
            water,
            held: Arc::new(held),
        })
    }

    /// Returns another installation on the same cluster, known to the ingress by `host`.
    pub fn in_namespace(&self, namespace: &str, host: &str) -> Self {
        Self {
            environment: self.environment.clone(),
            kubectl: self.kubectl.in_namespace(namespace),
            water: self.water.host(host),
            held: Arc::clone(&self.held),
        }
    }

    /// Waits for a condition; one that does not come is shown with the objects and events around it.
    pub async fn wait_until<T>(
        &self,
        what: &str,
        within: Duration,
        condition: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let waited = wait_until(what, within, condition).await;
        waited.with_context(|| self.picture())
    }

    /// Waits like [`Cluster::wait_until`] for a rollout, of which each step may take its time: the condition's error
    /// describes the state, by which steps are known. That of a kubectl that failed describes none.
    pub async fn wait_for_steps<T>(
        &self,
        what: &str,
        condition: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let is_state = |said: &Error| !is_kubectls(said);
        let waited = wait_for_steps(what, STEP, is_state, condition).await;
        waited.with_context(|| self.picture())
    }

    fn picture(&self) -> String {
        format!("the namespace looks so:\n{}\n", self.kubectl.picture())
    }

    /// Returns the release's WaterDataApi.
    pub fn api(&self) -> Result<Value> {
        self.kubectl.get(&format!("waterdataapi/{RELEASE}"))
    }

    /// Returns a key of an Enterprise account that no other test uses; it has no history.
    pub async fn key(&self) -> Result<String> {
        let keys = ANY_KEYS
            .get_or_try_init(|| self.keys_of_accounts("any", ACCOUNTS))
            .await?;
        let number = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
        keys.get(number)
            .cloned()
            .with_context(|| format!("tests want more than {ACCOUNTS} keys"))
    }

    /// Returns keys of all accounts from which loads come.
    pub async fn load_keys(&self) -> Result<Vec<String>> {
        let keys = || self.keys_of_accounts("load", LOAD_ACCOUNTS);
        LOAD_KEYS.get_or_try_init(keys).await.cloned()
    }

    /// Returns keys of `count` Enterprise accounts named `<prefix>-000` and so on, issued if they are not
    /// there.
    pub async fn keys_of_accounts(&self, prefix: &str, count: usize) -> Result<Vec<String>> {
        let names: Vec<_> = (0..count)
            .map(|number| format!("{prefix}-{number:03}"))
            .collect();
        let manifests = names
            .iter()
            .map(|name| ApiKey::named(name).manifest())
            .collect();
        self.kubectl.apply_all(manifests)?;
        self.wait_until(&format!("{count} keys to be Ready"), PATIENCE, async || {
            let ready = self.ready_keys(&format!("{prefix}-"))?;
            ensure!(ready == count, "{ready} are");
            Ok(())
        })
        .await?;
        let secrets = self.kubectl.get("secrets")?;
        let secrets = secrets["items"].as_array().context("a list of Secrets")?;
        let text_of = |name: &String| {
            let secret = format!("{name}-apikey");
            let found = secrets
                .iter()
                .find(|found| found["metadata"]["name"] == secret.as_str());
            key_in(found.with_context(|| format!("no Secret {secret}"))?)
        };
        names.iter().map(text_of).collect()
    }

    fn ready_keys(&self, prefix: &str) -> Result<usize> {
        let keys = self.kubectl.get("apikeys")?;
        let items = keys["items"].as_array().context("a list of ApiKeys")?;
        let named = items.iter().filter(|key| {
            key["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.starts_with(prefix))
        });
        Ok(named
            .filter(|key| condition(key, "Ready").is_ok_and(|(status, _)| status == "True"))
            .filter(|key| is_current(key))
            .count())
    }

    /// Applies the key, after removing one of that name, waits until it is in force and returns its text.
    pub async fn issue(&self, key: &ApiKey) -> Result<String> {
        self.delete(key.name())?;
        self.kubectl.apply(&key.manifest())?;
        self.wait_for_key(key.name(), "True", None).await?;
        key_in(&self.kubectl.get(&format!("secret/{}-apikey", key.name()))?)
    }

    /// Deletes a key if it exists, and waits until its finalizer is gone: it is dead then.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.kubectl.run(&[
            "delete",
            "apikey",
            name,
            "--ignore-not-found",
            "--timeout=180s",
        ])?;
        Ok(())
    }

    /// Waits until the key's Ready condition has this status, for this reason, for its present spec.
    pub async fn wait_for_key(&self, name: &str, status: &str, reason: Option<&str>) -> Result<()> {
        self.wait_until(
            &format!("{name} to be Ready={status}"),
            PATIENCE,
            async || {
                let key = self.kubectl.get(&format!("apikey/{name}"))?;
                let (is, because) = condition(&key, "Ready")?;
                let as_wanted = is == status && reason.is_none_or(|reason| because == reason);
                ensure!(is_current(&key) && as_wanted, "it is {}", key["status"]);
                Ok(())
            },
        )
        .await
    }

    /// Waits for a condition of the WaterDataApi, for its present spec.
    pub async fn wait_for_api(&self, wanted: &str, status: &str) -> Result<Value> {
        let what = format!("the WaterDataApi to be {wanted}={status}");
        self.wait_for_steps(&what, async || {
            let api = self.api()?;
            let (is, _) = condition(&api, wanted)?;
            let as_wanted = is == status && is_current(&api);
            ensure!(as_wanted, "it says: {}", rollout(&api));
            Ok(api)
        })
        .await
    }
}

/// Returns status and reason of a condition.
pub fn condition<'a>(object: &'a Value, wanted: &str) -> Result<(&'a str, &'a str)> {
    let conditions = object["status"]["conditions"]
        .as_array()
        .context("it has no conditions yet")?;
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == wanted);
    let found = found.with_context(|| format!("it has no condition {wanted}: {conditions:?}"))?;
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    Ok((text("status"), text("reason")))
}

/// Whether an object's status is about its present spec.
pub fn is_current(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

fn key_in(secret: &Value) -> Result<String> {
    let encoded = secret["data"]["api-key"]
        .as_str()
        .context("a Secret without api-key")?;
    Ok(String::from_utf8(BASE64.decode(encoded)?)?)
}

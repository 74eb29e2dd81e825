//! One test's world: a namespace with the operator's rights, the stores' Secrets and its own
//! directory in Redis; the API server and Redis are shared by all tests of this binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use water_harness::{ControlPlane, Process, Program, Proxy, Redis, scratch_directory, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, Directory, Instance, Leases, Observation};

use crate::rights::{self, ACCOUNT};

/// Long enough for a busy machine; what is fast is measured elsewhere.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// What a look into the directory waits for: Redis answers late on a busy machine.
const REDIS: &str = "Redis to answer";
/// The name of every WaterDataApi, since a world has one.
pub const API: &str = "water-data";
/// The operator's program of this version.
pub const OPERATOR: &str = env!("CARGO_BIN_EXE_water-operator");

/// One test's world.
pub struct World {
    /// The API server.
    pub cluster: &'static ControlPlane,
    /// Where the directory is.
    pub redis_url: String,
    /// The test's namespace.
    pub namespace: String,
    kubeconfig: PathBuf,
    /// Settings of every operator beside those that all have.
    settings: Vec<(&'static str, String)>,
    /// All that were started, to show their logs when a wait fails.
    operators: Mutex<Vec<Arc<Process>>>,
}

impl World {
    /// A namespace of that name with everything but an operator, a WaterDataApi and keys.
    pub async fn new(namespace: &str) -> Result<Self> {
        let redis = Redis::shared().await?;
        Self::with_redis(namespace, &redis.url()).await
    }

    /// The same on a Redis of the test's own.
    pub async fn with_redis(namespace: &str, redis_url: &str) -> Result<Self> {
        Self::at(cluster().await?, namespace, redis_url, &[]).await
    }

    /// The same at an API server of its own with `rbac.scope: Cluster`, and WaterDataApis in `more`
    /// namespaces too. Its operator looks after every namespace there is.
    pub async fn of_all_namespaces(namespace: &str, more: &[&str]) -> Result<Self> {
        let redis = Redis::shared().await?;
        Self::of_all_namespaces_on(namespace, &redis.url(), more).await
    }

    /// The same on a Redis of the test's own.
    pub async fn of_all_namespaces_on(
        namespace: &str,
        redis_url: &str,
        more: &[&str],
    ) -> Result<Self> {
        let cluster = prepared(ControlPlane::start().await?).await?;
        for namespace in more {
            cluster.apply(&namespace_object(namespace))?;
        }
        let values = more.iter().enumerate();
        let values = values.map(|(index, name)| format!("rbac.apiNamespaces[{index}]={name}"));
        let values: Vec<String> = values.chain(["rbac.scope=Cluster".into()]).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let mut world = Self::at(cluster, namespace, redis_url, &values).await?;
        world.settings = vec![
            ("WATER_SCOPE", "Cluster".into()),
            ("WATER_API_NAMESPACES", more.join(",")),
        ];
        Ok(world)
    }

    /// Another namespace of the same API server, with the stores' Secrets and nobody's rights.
    pub fn beside(&self, namespace: &str) -> Result<Self> {
        let world = Self {
            cluster: self.cluster,
            redis_url: self.redis_url.clone(),
            namespace: namespace.into(),
            kubeconfig: self.kubeconfig.clone(),
            settings: self.settings.clone(),
            operators: Mutex::default(),
        };
        world.apply_secrets()?;
        Ok(world)
    }

    /// Another namespace of the same API server, with the rights of an operator of its own that looks
    /// after no other namespace.
    pub async fn with_own_operator(&self, namespace: &str) -> Result<Self> {
        Self::at(self.cluster, namespace, &self.redis_url, &[]).await
    }

    /// The same at an API server of the test's own, which it may kill.
    pub async fn alone(namespace: &str) -> Result<Self> {
        let redis = Redis::shared().await?;
        Self::on(ControlPlane::start().await?, namespace, &redis.url()).await
    }

    /// The same at that API server, on a Redis of the test's own.
    pub async fn on(cluster: ControlPlane, namespace: &str, redis_url: &str) -> Result<Self> {
        Self::at(prepared(cluster).await?, namespace, redis_url, &[]).await
    }

    async fn at(
        cluster: &'static ControlPlane,
        namespace: &str,
        redis_url: &str,
        values: &[&str],
    ) -> Result<Self> {
        cluster.apply(&namespace_object(namespace))?;
        rights::grant(cluster, namespace, values)?;
        let kubeconfig = scratch_directory("operator")?.join("kubeconfig");
        fs::write(&kubeconfig, cluster.kubeconfig_of(namespace, ACCOUNT)?)?;
        let world = Self {
            cluster,
            redis_url: redis_url.into(),
            namespace: namespace.into(),
            kubeconfig,
            settings: Vec::new(),
            operators: Mutex::default(),
        };
        world.apply_secrets()?;
        Ok(world)
    }

    fn apply_secrets(&self) -> Result<()> {
        self.apply(&self.secret("postgres", &["owner-url", "writer-url", "reader-url"]))?;
        self.apply(&self.secret("redis", &["operator-url", "gate-url"]))
    }

    /// The same with a WaterDataApi and an operator.
    pub async fn running(namespace: &str) -> Result<(Self, Arc<Process>)> {
        let world = Self::new(namespace).await?;
        world.apply(&api())?;
        let operator = world.operator("operator-0")?;
        Ok((world, operator))
    }

    /// The same on a Redis of the test's own.
    pub async fn on_own_redis(namespace: &str) -> Result<(Redis, Self, Arc<Process>)> {
        let redis = Redis::start().await?;
        let world = Self::with_redis(namespace, &redis.url()).await?;
        world.apply(&api())?;
        let operator = world.operator("operator-0")?;
        Ok((redis, world, operator))
    }

    /// Waits until the key directory is complete.
    pub async fn synced(&self) -> Result<Value> {
        let api = format!("waterdataapi/{API}");
        self.condition(&api, "DirectorySynced", "True/Published")
            .await
    }

    /// Applies an ApiKey, and waits until every gate accepts its key.
    pub async fn in_force(&self, key: &Value) -> Result<Value> {
        self.apply(key)?;
        let name = key["metadata"]["name"].as_str().context("a name")?;
        self.condition(&format!("apikey/{name}"), "Ready", "True/Active")
            .await
    }

    /// Starts an operator as the pod of that name; it ends with the world.
    pub fn operator(&self, pod: &str) -> Result<Arc<Process>> {
        self.start(Path::new(OPERATOR), pod, &self.kubeconfig)
    }

    /// The same with that program, which may be another version's.
    pub fn operator_of(&self, program: &Path, pod: &str) -> Result<Arc<Process>> {
        self.start(program, pod, &self.kubeconfig)
    }

    /// The same, which reaches the API server through a proxy.
    pub fn operator_through(&self, pod: &str, proxy: &Proxy) -> Result<Arc<Process>> {
        let kubeconfig = self.kubeconfig_through(&self.kubeconfig, proxy)?;
        self.start(Path::new(OPERATOR), pod, &kubeconfig)
    }

    /// A kubeconfig like that one, which reaches the API server through a proxy.
    pub fn kubeconfig_through(&self, kubeconfig: &Path, proxy: &Proxy) -> Result<PathBuf> {
        let kubeconfig = fs::read_to_string(kubeconfig)?;
        let (direct, through) = (self.cluster.address(), proxy.address());
        let kubeconfig = kubeconfig.replace(&direct.to_string(), &through.to_string());
        let file = scratch_directory("operator")?.join("kubeconfig");
        fs::write(&file, kubeconfig)?;
        Ok(file)
    }

    fn start(&self, program: &Path, pod: &str, kubeconfig: &Path) -> Result<Arc<Process>> {
        let operator = Program::new(program)
            .arg("run")
            .env("KUBECONFIG", kubeconfig)
            .env("WATER_POD_NAME", pod)
            .env("WATER_POD_NAMESPACE", &self.namespace)
            .env("WATER_ADMIN_ADDRESS", "127.0.0.1:0");
        let settings = self.settings.iter().cloned();
        let operator = settings.fold(operator, |operator, (name, value)| {
            operator.env(name, value)
        });
        let operator = Arc::new(operator.start()?);
        self.operators
            .lock()
            .expect("no test panics while it holds this")
            .push(Arc::clone(&operator));
        Ok(operator)
    }

    /// Waits for a condition; an error shows the ends of the operators' logs.
    pub async fn wait<T>(
        &self,
        what: &str,
        within: Duration,
        condition: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        wait_until(what, within, condition).await.with_context(|| {
            let operators = self
                .operators
                .lock()
                .expect("no test panics while it holds this");
            let logs = operators.iter().map(|operator| operator.log_end());
            logs.collect::<Vec<_>>().join("\n\n")
        })
    }

    fn secret(&self, name: &str, keys: &[&str]) -> Value {
        // The default user may do everything, which a gate's must not.
        let gate = format!("://{}@", Redis::READER);
        let gate_url = self.redis_url.replace("://", &gate);
        let urls = keys.iter().map(|key| match *key {
            "gate-url" => ("gate-url".to_owned(), Value::from(gate_url.as_str())),
            key => (key.to_owned(), Value::from(self.redis_url.as_str())),
        });
        let data: serde_json::Map<String, Value> = urls.collect();
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": data })
    }

    /// Applies an object in the test's namespace.
    pub fn apply(&self, object: &Value) -> Result<()> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = self.namespace.as_str().into();
        self.cluster.apply(&object.to_string()).map(drop)
    }

    /// kubectl in the test's namespace.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut all = vec!["--namespace", &self.namespace];
        all.extend(arguments);
        self.cluster.kubectl(&all)
    }

    /// Merges a patch into an object, or into its status.
    pub fn patch(&self, object: &str, patch: &Value, more: &[&str]) -> Result<()> {
        let patch = patch.to_string();
        let mut arguments = vec!["patch", object, "--type=merge", "--patch", &patch];
        arguments.extend(more);
        self.kubectl(&arguments).map(drop)
    }

    /// An object, such as `apikey/acme`, as kubectl shows it.
    pub fn get(&self, object: &str) -> Result<Value> {
        let (kind, name) = object.split_once('/').context("a kind and a name")?;
        let Some((group, plural)) = place_of(kind) else {
            let shown = self.kubectl(&["get", object, "--output=json"])?;
            return Ok(serde_json::from_str(&shown)?);
        };
        let mut found = self.look(&format!(
            "{group}/namespaces/{}/{plural}/{name}",
            self.namespace
        ))?;
        let metadata = found["metadata"].as_object_mut();
        metadata.context("an object")?.remove("managedFields");
        Ok(found)
    }

    /// What the API server has at a path.
    pub fn look(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.cluster.proxy().get(path)?)?)
    }

    /// Waits until a condition reads `<status>/<reason>`, and returns the object.
    pub async fn condition(&self, object: &str, aspect: &str, wanted: &str) -> Result<Value> {
        let what = format!("{object} to be {aspect}={wanted}");
        self.wait(&what, PATIENCE, async || {
            let found = self.get(object)?;
            ensure!(shown(&found, aspect) == wanted, "{}", found["status"]);
            Ok(found)
        })
        .await
    }

    /// Waits until an object is gone.
    pub async fn gone(&self, object: &str) -> Result<()> {
        self.wait(
            &format!("the end of {object}"),
            PATIENCE,
            async || match self.get(object) {
                Ok(found) => bail!("still there: {found}"),
                Err(error) if error.to_string().contains("NotFound") => Ok(()),
                Err(error) => Err(error),
            },
        )
        .await
    }

    /// The reasons of the events about an object, oldest first, each as often as it was told.
    pub fn events(&self, name: &str) -> Result<Vec<String>> {
        let events = format!("/api/v1/namespaces/{}/events", self.namespace);
        let list = self.look(&format!(
            "{events}?fieldSelector=involvedObject.name={name}"
        ))?;
        let mut events: Vec<&Value> = list["items"].as_array().context("a list")?.iter().collect();
        events.sort_by_key(|event| event["eventTime"].as_str().unwrap_or_default().to_owned());
        let told = |event: &Value| {
            let times = event["series"]["count"].as_u64().unwrap_or(1);
            vec![event["reason"].as_str().unwrap_or_default().to_owned(); times as usize]
        };
        Ok(events.into_iter().flat_map(told).collect())
    }

    /// Waits until the events about an object are these: they are written after the status.
    pub async fn told(&self, name: &str, reasons: &[&str]) -> Result<()> {
        let what = format!("the events about {name}");
        self.wait(&what, PATIENCE, async || {
            let events = self.events(name)?;
            ensure!(events == reasons, "{events:?}");
            Ok(())
        })
        .await
    }

    /// The directory, for looking at.
    pub fn directory(&self) -> Result<Directory> {
        let settings = ConnectionSettings::new(&self.redis_url, None)?;
        let instance = Instance::new(&self.namespace, API)?;
        Ok(Directory::new(
            settings.connect(Purpose::Directory),
            instance,
        ))
    }

    /// What the directory says of itself.
    pub async fn observe(&self) -> Result<Observation> {
        let ask = async || Ok(self.directory()?.observe().await?);
        self.wait(REDIS, PATIENCE, ask).await
    }

    /// The gates' leases.
    pub async fn leases(&self) -> Result<Leases> {
        let ask = async || Ok(self.directory()?.leases().await?);
        self.wait(REDIS, PATIENCE, ask).await
    }

    /// Key ids in the directory, each with its plan and whether it is suspended.
    pub async fn published(&self) -> Result<Vec<String>> {
        let ask = async || Ok(self.directory()?.stored().await?);
        let stored = self.wait(REDIS, PATIENCE, ask).await?;
        let mut records = Vec::new();
        for found in stored.values() {
            let record = found.record.as_ref().context("undecodable")?;
            records.push(format!(
                "{} {} {:?}",
                record.key_id, record.plan, record.state
            ));
        }
        records.sort();
        Ok(records)
    }
}

/// Where the API server has the kinds that waits look at many times a second: the group and version
/// in its paths, and the plural.
fn place_of(kind: &str) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        "apikey" => ("/apis/waterdata.dev/v1", "apikeys"),
        "waterdataapi" => ("/apis/waterdata.dev/v1", "waterdataapis"),
        "configmap" => ("/api/v1", "configmaps"),
        "pod" => ("/api/v1", "pods"),
        "secret" => ("/api/v1", "secrets"),
        "service" => ("/api/v1", "services"),
        "deployment" => ("/apis/apps/v1", "deployments"),
        "lease" => ("/apis/coordination.k8s.io/v1", "leases"),
        "ingress" => ("/apis/networking.k8s.io/v1", "ingresses"),
        "networkpolicy" => ("/apis/networking.k8s.io/v1", "networkpolicies"),
        _ => return None,
    })
}

/// A condition as `<status>/<reason>`.
pub fn shown(object: &Value, aspect: &str) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let condition = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == aspect);
    condition.map_or_else(String::new, |condition| {
        format!("{}/{}", condition["status"], condition["reason"]).replace('"', "")
    })
}

/// A WaterDataApi with the plans Enterprise and Free and an Ingress.
pub fn api() -> Value {
    json!({
        "apiVersion": "waterdata.dev/v1",
        "kind": "WaterDataApi",
        "metadata": { "name": API },
        "spec": {
            "image": { "registry": "registry.example/water", "tag": "1.2.3" },
            "postgres": { "secretRef": { "name": "postgres" } },
            "redis": { "secretRef": { "name": "redis" } },
            "plans": [
                { "name": "Enterprise", "access": "Allowed", "requestsPerMinute": 120, "requestsPerDay": 50000 },
                { "name": "Free", "access": "Denied" },
            ],
            "exposure": { "ingress": { "host": "water.example" } },
        },
    })
}

/// The same, with limits that no account meets.
pub fn unlimited() -> Value {
    let mut api = api();
    api["spec"]["plans"][0]["requestsPerMinute"] = json!(100_000);
    api["spec"]["plans"][0]["requestsPerDay"] = json!(100_000_000);
    api
}

/// An ApiKey of account acme on plan Enterprise.
pub fn key(name: &str) -> Value {
    json!({
        "apiVersion": "waterdata.dev/v1",
        "kind": "ApiKey",
        "metadata": { "name": name },
        "spec": { "accountId": "acme", "plan": "Enterprise" },
    })
}

/// The same, brought along by its hash: 64 times that digit.
pub fn brought(name: &str, digit: char) -> Value {
    let mut key = key(name);
    key["spec"]["material"] = json!({ "hash": { "sha256": digit.to_string().repeat(64) } });
    key
}

/// The shared API server, with the custom resources that the operator's own command installed.
async fn cluster() -> Result<&'static ControlPlane> {
    static READY: OnceCell<&'static ControlPlane> = OnceCell::const_new();
    let start = async || {
        let cluster = ControlPlane::shared().await?;
        install_definitions(cluster).await?;
        Ok(cluster)
    };
    READY.get_or_try_init(start).await.copied()
}

/// It ends with the test process, as the shared one does.
async fn prepared(cluster: ControlPlane) -> Result<&'static ControlPlane> {
    let cluster = Box::leak(Box::new(cluster));
    install_definitions(cluster).await?;
    Ok(cluster)
}

/// By the operator's own command, as the chart's hook does it.
pub async fn install_definitions(cluster: &ControlPlane) -> Result<()> {
    let apply = Program::new(OPERATOR)
        .args(["crd", "apply"])
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .start()?;
    let status = apply.ended(PATIENCE).await?;
    ensure!(
        status.success(),
        "crd apply ended with {status}:\n{}",
        apply.log()
    );
    Ok(())
}

fn namespace_object(name: &str) -> String {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }).to_string()
}

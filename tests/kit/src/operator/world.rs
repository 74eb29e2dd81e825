//! World of one test: a namespace with the operator's rights, the stores' Secrets and its own directory in
//! Redis; the API server and Redis are shared by all tests of a program.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use water_harness::{
    AuditEvents, ControlPlane, Port, Process, Program, Proxy, Redis, scratch_directory,
    until_answered, wait_until,
};
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, Directory, Instance, Leases, Observation};

pub use super::cluster::{OPERATOR, PATIENCE, install_definitions};
use super::cluster::{Own, cluster, create_namespace};
use super::objects::{Objects, is_missing};
use super::rights::{self, ACCOUNT};
pub use super::samples::{API, OBJECT, api, brought, key, shown, unlimited};
use crate::{PatientDirectory, built};

/// Name of the waits for the directory: Redis answers late on a busy machine.
const REDIS: &str = "Redis to answer";

/// World of one test.
pub struct World {
    /// The API server.
    pub cluster: &'static ControlPlane,
    /// URL of the Redis with the directory.
    pub redis_url: String,
    /// The test's namespace.
    pub namespace: String,
    /// Objects in it.
    pub objects: Objects,
    kubeconfig: PathBuf,
    /// Settings of every operator, besides those that all have.
    settings: Vec<(&'static str, String)>,
    operators: Mutex<Vec<Operator>>,
    requests: Mutex<AuditEvents>,
    /// The last field, since fields are dropped in their order: an API server of the test's own ends after the
    /// operators, with the last world that has it.
    own: Option<Arc<Own>>,
}

/// An operator that was started, and its admin port, which stays its own when it starts again.
struct Operator {
    process: Arc<Process>,
    admin: Port,
}

impl World {
    /// Makes a namespace of that name with everything but an operator, a WaterDataApi and keys.
    pub async fn new(namespace: &str) -> Result<Self> {
        Self::with_redis(namespace, &Redis::shared().await?.url()).await
    }

    /// Makes a world on a Redis of the test's own.
    pub async fn with_redis(namespace: &str, redis_url: &str) -> Result<Self> {
        Self::at(cluster().await?, namespace, redis_url, &[])
    }

    /// Makes a world at its own API server with `rbac.scope: Cluster`, and WaterDataApis in `more` namespaces
    /// too. Its operator serves every namespace there is.
    pub async fn of_all_namespaces(namespace: &str, more: &[&str]) -> Result<Self> {
        Self::of_all_namespaces_on(namespace, &Redis::shared().await?.url(), more).await
    }

    /// Makes a world of all namespaces on a Redis of the test's own.
    pub async fn of_all_namespaces_on(
        namespace: &str,
        redis_url: &str,
        more: &[&str],
    ) -> Result<Self> {
        let (list, variable) = ("rbac.apiNamespaces", "WATER_API_NAMESPACES");
        Self::of_listed_namespaces(namespace, redis_url, more, list, variable).await
    }

    /// Makes a world with `rbac.keyNamespaces`: the operator may read and write Secrets in these and its own.
    pub async fn of_key_namespaces(namespace: &str, keys: &[&str]) -> Result<Self> {
        let redis = Redis::shared().await?;
        let (list, variable) = ("rbac.keyNamespaces", "WATER_KEY_NAMESPACES");
        Self::of_listed_namespaces(namespace, &redis.url(), keys, list, variable).await
    }

    async fn of_listed_namespaces(
        namespace: &str,
        redis_url: &str,
        listed: &[&str],
        list: &str,
        variable: &'static str,
    ) -> Result<Self> {
        let own = Own::prepared(ControlPlane::start().await?).await?;
        let cluster = own.cluster();
        for namespace in listed {
            create_namespace(cluster, namespace)?;
        }
        let values = listed.iter().enumerate();
        let values = values.map(|(index, name)| format!("{list}[{index}]={name}"));
        let values: Vec<String> = values.chain(["rbac.scope=Cluster".into()]).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let mut world = Self::at(cluster, namespace, redis_url, &values)?;
        world.settings = vec![
            ("WATER_SCOPE", "Cluster".into()),
            (variable, listed.join(",")),
        ];
        world.own = Some(own);
        Ok(world)
    }

    /// Makes another namespace of the same API server, with the stores' Secrets and nobody's rights.
    pub fn beside(&self, namespace: &str) -> Result<Self> {
        let world = Self {
            cluster: self.cluster,
            redis_url: self.redis_url.clone(),
            namespace: namespace.into(),
            objects: Objects::new(self.cluster, namespace),
            kubeconfig: self.kubeconfig.clone(),
            settings: self.settings.clone(),
            operators: Mutex::default(),
            requests: requests_in(self.cluster, namespace),
            own: self.own.clone(),
        };
        world.apply_secrets()?;
        Ok(world)
    }

    /// Makes another namespace of the same API server, with the rights of a separate operator that serves no
    /// other namespace.
    pub async fn with_own_operator(&self, namespace: &str) -> Result<Self> {
        let mut world = Self::at(self.cluster, namespace, &self.redis_url, &[])?;
        world.own = self.own.clone();
        Ok(world)
    }

    /// Makes a world at an API server of the test's own, which it may kill, and which ends with the world.
    pub async fn alone(namespace: &str) -> Result<Self> {
        let redis = Redis::shared().await?;
        Self::on(ControlPlane::start().await?, namespace, &redis.url()).await
    }

    /// Makes a world at that API server, which ends with the world, on a Redis of the test's own.
    pub async fn on(cluster: ControlPlane, namespace: &str, redis_url: &str) -> Result<Self> {
        let own = Own::prepared(cluster).await?;
        let mut world = Self::at(own.cluster(), namespace, redis_url, &[])?;
        world.own = Some(own);
        Ok(world)
    }

    fn at(
        cluster: &'static ControlPlane,
        namespace: &str,
        redis_url: &str,
        values: &[&str],
    ) -> Result<Self> {
        create_namespace(cluster, namespace)?;
        rights::grant(cluster, namespace, values)?;
        let kubeconfig = scratch_directory("operator")?.join("kubeconfig");
        fs::write(&kubeconfig, cluster.kubeconfig_of(namespace, ACCOUNT)?)?;
        let world = Self {
            cluster,
            redis_url: redis_url.into(),
            namespace: namespace.into(),
            objects: Objects::new(cluster, namespace),
            kubeconfig,
            settings: Vec::new(),
            operators: Mutex::default(),
            requests: requests_in(cluster, namespace),
            own: None,
        };
        world.apply_secrets()?;
        Ok(world)
    }

    fn apply_secrets(&self) -> Result<()> {
        // Nobody connects to it.
        let url = &self.redis_url;
        let postgres = json!({ "owner-url": url, "writer-url": url, "reader-url": url });
        self.apply(&secret("postgres", &postgres))?;
        self.apply(&redis_secret("redis", url))
    }

    /// Makes a world with a WaterDataApi and an operator.
    pub async fn running(namespace: &str) -> Result<(Self, Arc<Process>)> {
        let world = Self::new(namespace).await?;
        world.apply(&api())?;
        let operator = world.operator("operator-0")?;
        Ok((world, operator))
    }

    /// Makes a world with a WaterDataApi and an operator, on a Redis of the test's own.
    pub async fn on_own_redis(namespace: &str) -> Result<(Redis, Self, Arc<Process>)> {
        let redis = Redis::start().await?;
        let world = Self::with_redis(namespace, &redis.url()).await?;
        world.apply(&api())?;
        let operator = world.operator("operator-0")?;
        Ok((redis, world, operator))
    }

    /// Waits until the key directory is complete.
    pub async fn synced(&self) -> Result<Value> {
        self.condition(OBJECT, "DirectorySynced", "True/Published")
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
        self.start(pod, &self.kubeconfig)
    }

    /// Starts an operator that reaches the API server through a proxy.
    pub fn operator_through(&self, pod: &str, proxy: &Proxy) -> Result<Arc<Process>> {
        let (direct, through) = (self.cluster.address(), proxy.address());
        let kubeconfig = replaced(&self.kubeconfig, &direct.to_string(), &through.to_string())?;
        self.start(pod, &kubeconfig)
    }

    /// Lets operators that start from now on reach the API server at this address over plain HTTP.
    pub fn reach_api_server_at(&mut self, address: SocketAddr) -> Result<()> {
        let direct = format!("https://{}", self.cluster.address());
        self.kubeconfig = replaced(&self.kubeconfig, &direct, &format!("http://{address}"))?;
        Ok(())
    }

    fn start(&self, pod: &str, kubeconfig: &Path) -> Result<Arc<Process>> {
        let admin = Port::reserve()?;
        let operator = Program::new(built(OPERATOR))
            .arg("run")
            .env("KUBECONFIG", kubeconfig)
            .env("WATER_POD_NAME", pod)
            .env("WATER_POD_NAMESPACE", &self.namespace)
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string());
        let settings = self.settings.iter().cloned();
        let operator = settings.fold(operator, |operator, (name, value)| {
            operator.env(name, value)
        });
        let process = Arc::new(operator.start()?);
        self.add_operator(Arc::clone(&process), admin);
        Ok(process)
    }

    /// Adds a process as an operator with that admin port, from now on.
    pub fn add_operator(&self, process: Arc<Process>, admin: Port) {
        self.operators().push(Operator { process, admin });
    }

    fn operators(&self) -> MutexGuard<'_, Vec<Operator>> {
        self.operators
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the logs of all operators.
    pub fn logs(&self) -> String {
        let operators = self.operators();
        operators.iter().map(|one| one.process.log()).collect()
    }

    /// Returns the admin ports of all operators that run.
    pub fn admins(&self) -> Result<Vec<SocketAddr>> {
        let mut running = Vec::new();
        for operator in self.operators().iter() {
            if operator.process.exit_status()?.is_none() {
                running.push(operator.admin.address());
            }
        }
        Ok(running)
    }

    /// Returns those requests of the world's operators of which this is true, in the order of the audit log.
    pub fn requests(&self, is: impl Fn(&Value) -> bool) -> Result<Vec<Value>> {
        let requests = self.requests.lock();
        let mut requests = requests.unwrap_or_else(PoisonError::into_inner);
        let all = requests.all()?.iter();
        Ok(all.filter(|&event| is(event)).cloned().collect())
    }

    /// Waits for a condition; an error shows the ends of the operators' logs.
    pub async fn wait<T>(
        &self,
        what: &str,
        within: Duration,
        condition: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        wait_until(what, within, condition).await.with_context(|| {
            let operators = self.operators();
            let logs = operators.iter().map(|operator| operator.process.log_end());
            logs.collect::<Vec<_>>().join("\n\n")
        })
    }

    /// Waits until an operator's log contains a text.
    pub async fn logged(&self, operator: &Process, text: &str) -> Result<()> {
        let logged = async || {
            ensure!(operator.log().contains(text), "it does not");
            Ok(())
        };
        self.wait(text, PATIENCE, logged).await
    }

    /// Applies an object in the test's namespace.
    pub fn apply(&self, object: &Value) -> Result<()> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = self.namespace.as_str().into();
        self.objects.apply(&object)
    }

    /// Runs kubectl in the test's namespace.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut all = vec!["--namespace", &self.namespace];
        all.extend(arguments);
        self.cluster.kubectl(&all)
    }

    /// Merges a patch into an object, or into its status.
    pub fn patch(&self, object: &str, patch: &Value, more: &[&str]) -> Result<()> {
        match more {
            ["--subresource=status"] => self.objects.patch(&format!("{object}/status"), patch),
            _ => self.objects.patch(object, patch),
        }
    }

    /// Returns an object, such as `apikey/acme`, as it is stored.
    pub fn get(&self, object: &str) -> Result<Value> {
        self.objects.get(object)
    }

    /// Returns the API server's answer at a path.
    pub fn look(&self, path: &str) -> Result<Value> {
        let proxy = self.cluster.proxy();
        Ok(serde_json::from_str(&until_answered(|| proxy.get(path))?)?)
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
        let gone = async || match self.get(object) {
            Ok(found) => bail!("still there: {found}"),
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(error),
        };
        self.wait(&format!("the end of {object}"), PATIENCE, gone)
            .await
    }

    /// Returns the reasons of the events about an object, oldest first, each as often as it was reported.
    pub fn events(&self, name: &str) -> Result<Vec<String>> {
        let selector = format!("fieldSelector=involvedObject.name={name}");
        let mut events = self.objects.list("event", &selector)?;
        events.sort_by_key(|event| event["eventTime"].as_str().unwrap_or_default().to_owned());
        let reported = |event: Value| {
            let times = event["series"]["count"].as_u64().unwrap_or(1);
            vec![event["reason"].as_str().unwrap_or_default().to_owned(); times as usize]
        };
        Ok(events.into_iter().flat_map(reported).collect())
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

    /// Returns the directory, for reading.
    pub fn directory(&self) -> Result<PatientDirectory> {
        let settings = ConnectionSettings::new(&self.redis_url, None)?;
        let instance = Instance::new(&self.namespace, API)?;
        let connection = settings.connect(Purpose::Directory);
        Ok(Directory::new(connection, instance).into())
    }

    /// Observes the directory.
    pub async fn observe(&self) -> Result<Observation> {
        let ask = async || self.directory()?.observe().await;
        self.wait(REDIS, PATIENCE, ask).await
    }

    /// Returns the gates' leases.
    pub async fn leases(&self) -> Result<Leases> {
        let ask = async || self.directory()?.leases().await;
        self.wait(REDIS, PATIENCE, ask).await
    }

    /// Returns the key ids in the directory, each with its plan and whether it is suspended; as they were
    /// between two changes, since a rebuild replaces one part after another.
    pub async fn published(&self) -> Result<Vec<String>> {
        let ask = async || {
            let directory = self.directory()?;
            let before = directory.observe().await?.meta;
            let stored = directory.stored().await?;
            let after = directory.observe().await?.meta;
            let is_whole = before.as_ref().is_none_or(|meta| meta.complete);
            ensure!(is_whole && before == after, "{before:?}, then {after:?}");
            Ok(stored)
        };
        let stored = self.wait("a whole directory", PATIENCE, ask).await?;
        let mut records = Vec::new();
        for found in stored.values() {
            let record = found.record.as_ref().context("undecodable")?;
            let (id, plan, state) = (&record.key_id, &record.plan, record.state);
            records.push(format!("{id} {plan} {state:?}"));
        }
        records.sort();
        Ok(records)
    }
}

/// Returns the Secret through which a WaterDataApi finds a Redis.
pub fn redis_secret(name: &str, url: &str) -> Value {
    // The default user may do everything, which a gate's must not.
    let gate_url = url.replace("://", &format!("://{}@", Redis::READER));
    secret(name, &json!({ "operator-url": url, "gate-url": gate_url }))
}

fn secret(name: &str, urls: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": urls })
}

/// Makes a reader of the requests that operators with the rights of a namespace's ServiceAccount send.
fn requests_in(cluster: &ControlPlane, namespace: &str) -> Mutex<AuditEvents> {
    let user = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
    Mutex::new(cluster.audit_events_of(&user))
}

/// Makes a copy of a kubeconfig with another server.
fn replaced(kubeconfig: &Path, server: &str, other: &str) -> Result<PathBuf> {
    let kubeconfig = fs::read_to_string(kubeconfig)?.replace(server, other);
    let file = scratch_directory("operator")?.join("kubeconfig");
    fs::write(&file, kubeconfig)?;
    Ok(file)
}

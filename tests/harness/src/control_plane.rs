//! A private Kubernetes without nodes: etcd and kube-apiserver on loopback, with
//! RBAC and an audit log. No controller runs: a namespace that is deleted stays
//! terminating unless a test starts the controller of namespaces, nothing collects
//! orphans, and Deployments never get pods.

mod audit_events;
mod gateway;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{
    ApiProxy, Port, Process, Program,
    certificates::{self, Authority, Purpose},
    programs, repetition, scratch,
};

pub use audit_events::AuditEvents;

/// Two to three seconds on an idle machine; the compiler may run at the same time.
const START: Duration = Duration::from_secs(180);
/// etcd's own default, in bytes.
const ROOM: u64 = 2 * 1024 * 1024 * 1024;
const ISSUER: &str = "https://kubernetes.default.svc";

/// Options of a control plane.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes at which etcd is full.
    pub room: u64,
    /// More flags of kube-apiserver.
    pub flags: &'static [&'static str],
}

impl Options {
    /// Options of the one that tests share.
    pub const DEFAULT: Self = Self {
        room: ROOM,
        flags: &[],
    };
}

/// A running API server with its etcd.
pub struct ControlPlane {
    api_server: Process,
    etcd: Process,
    port: Port,
    etcd_ports: [Port; 2],
    authority: Authority,
    directory: PathBuf,
    kubectl: PathBuf,
    kubeconfig: String,
    proxy: Arc<ApiProxy>,
}

impl ControlPlane {
    /// Returns the control plane that all tests of this binary share, started by the first that asks. A
    /// test keeps to its own namespace.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// Starts a control plane of the test's own, to stop and to kill.
    pub async fn start() -> Result<Self> {
        Self::start_with(Options::DEFAULT).await
    }

    /// Starts a control plane of the test's own, with these options.
    pub async fn start_with(options: Options) -> Result<Self> {
        let node = programs::Program::Node.find_or_build(&mut |progress| {
            let (compiled, packages) = (progress.compiled, progress.packages);
            let message = progress.message;
            eprintln!("building Kubernetes: {compiled} of {packages} packages, {message}");
        })?;
        let directory = scratch::directory("control-plane")?;
        let (port, etcd_ports) = (Port::reserve()?, [Port::reserve()?, Port::reserve()?]);
        let authority = Authority::new("water-harness")?;
        let admin = authority.sign("admin", Some("system:masters"), &[], Purpose::Client)?;
        let kubeconfig = authority.kubeconfig(&url(&port), &admin);
        write_files(&directory, &authority, &kubeconfig)?;
        let etcd = start_etcd(&node, &directory, &etcd_ports, options.room)?;
        let api_server = start_api_server(&node, &directory, &etcd_ports[0], &port, options.flags)?;
        let kubectl = programs::named(&node, "kubectl");
        let proxy = ApiProxy::start(&kubectl, &admin_kubeconfig(&directory)).await?;
        let proxy = Arc::new(proxy);
        let control_plane = Self {
            api_server,
            etcd,
            port,
            etcd_ports,
            authority,
            directory,
            kubectl,
            kubeconfig,
            proxy,
        };
        control_plane.ready().await?;
        Ok(control_plane)
    }

    /// Waits until the API server is ready, the roles that RBAC starts with included.
    pub async fn ready(&self) -> Result<()> {
        let ready = async || self.proxy.get("/readyz").map(drop);
        self.api_server.ready(START, ready).await
    }

    /// Returns the address of the API server.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the administrator's kubeconfig, as text.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Returns the administrator's kubeconfig, as a file.
    pub fn kubeconfig_path(&self) -> PathBuf {
        admin_kubeconfig(&self.directory)
    }

    /// Makes a kubeconfig with the rights of a ServiceAccount that exists, valid for a day.
    pub fn kubeconfig_of(&self, namespace: &str, service_account: &str) -> Result<String> {
        let path =
            format!("/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token");
        let asked = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "expirationSeconds": 24 * 60 * 60 } });
        let asked = asked.to_string();
        // It may be asked for twice: no token is kept by the API server.
        let token = repetition::until_answered(|| {
            let (_, answer) = self.proxy.send("POST", &path, "application/json", &asked)?;
            token_in(&answer).with_context(|| format!("POST {path}: {answer}"))
        })?;
        Ok(self
            .authority
            .kubeconfig_with_token(&url(&self.port), &token))
    }

    /// Runs kubectl as the administrator and returns its output. A call that nobody answers is made again, if it means
    /// the same however often it is made.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        if repetition::is_repeatable(arguments) {
            repetition::until_answered(|| self.run_kubectl(arguments))
        } else {
            self.run_kubectl(arguments)
        }
    }

    fn run_kubectl(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(self.kubeconfig_path())
            // The common cache would remember what another server on this port once offered.
            .arg("--cache-dir")
            .arg(self.directory.join("kubectl"))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("start kubectl")?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl {}: {}", arguments.join(" "), error.trim_end());
        }
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned())
    }

    /// Applies manifests, YAML or JSON, on the server's side.
    pub fn apply(&self, manifests: &str) -> Result<String> {
        let file = scratch::directory("manifests")?.join("manifests.yaml");
        fs::write(&file, manifests)?;
        self.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()])
    }

    /// Returns the API server over plain HTTP, as the administrator: for reading objects again and again,
    /// and for requests by the thousand. A kubectl takes a twentieth of a second of a core.
    pub fn proxy(&self) -> Arc<ApiProxy> {
        Arc::clone(&self.proxy)
    }

    /// Returns the file to which the API server appends an audit event, one line of JSON without bodies,
    /// for each request of a ServiceAccount that it has answered.
    pub fn audit_log(&self) -> PathBuf {
        self.directory.join("audit.log")
    }

    /// Makes a reader of the requests that a ServiceAccount sends, by its user's name.
    pub fn audit_events_of(&self, user: &str) -> AuditEvents {
        AuditEvents::new(self.audit_log(), user)
    }

    /// Returns the certificate of the authority that has signed the API server's, as PEM.
    pub fn authority_pem(&self) -> &str {
        self.authority.certificate_pem()
    }

    /// Starts Kubernetes' own controller of namespaces, which deletes what is in a terminating namespace,
    /// its pods first. It does so in every namespace, so that tests that share a control plane do
    /// without it. A pod that is bound to a node stays until the test removes it, as a kubelet would.
    pub fn start_namespace_controller(&self) -> Result<Process> {
        Program::new(self.kubectl.with_file_name("kube-controller-manager"))
            .args([
                format!("--kubeconfig={}", self.kubeconfig_path().display()),
                "--controllers=namespace-controller".to_owned(),
                "--leader-elect=false".to_owned(),
                // Nobody asks it anything.
                "--secure-port=0".to_owned(),
            ])
            .start()
    }

    /// Returns etcd's content of a namespace, apart from Secrets: keys and values one after the other.
    pub async fn etcd_dump_without_secrets(&self, namespace: &str) -> Result<Vec<u8>> {
        gateway::dump(self.etcd_ports[0].address(), |path| {
            !path.starts_with("/registry/secrets/") && path.split('/').any(|part| part == namespace)
        })
        .await
    }

    /// Gives back the room of all that was deleted or changed, after etcd was full.
    pub async fn make_room(&self) -> Result<()> {
        gateway::make_room(self.etcd_ports[0].address()).await
    }

    /// Stops etcd for a moment, and returns the path of a copy of its content.
    pub async fn snapshot(&self) -> Result<PathBuf> {
        let snapshot = scratch::directory("snapshot")?.join("etcd");
        self.stop().await?;
        copy(&self.directory.join("etcd"), &snapshot)?;
        self.start_again().await?;
        Ok(snapshot)
    }

    /// Brings etcd back to a snapshot; the API server is restarted with it.
    pub async fn restore(&self, snapshot: &Path) -> Result<()> {
        let data = self.directory.join("etcd");
        let aside = scratch::directory("replaced")?.join("etcd");
        self.stop().await?;
        fs::rename(&data, aside).context("put etcd's data aside")?;
        copy(snapshot, &data)?;
        self.start_again().await
    }

    async fn stop(&self) -> Result<()> {
        self.api_server.kill()?;
        self.etcd.stop(START).await.map(drop)
    }

    async fn start_again(&self) -> Result<()> {
        self.etcd.start_again()?;
        self.api_server.start_again()?;
        self.ready().await
    }

    /// Ends all its processes, as dropping it does, for good: for one that was leaked.
    pub fn end(&self) {
        self.proxy.end();
        self.api_server.end();
        self.etcd.end();
    }

    /// Returns the API server's process, for faults.
    pub fn api_server(&self) -> &Process {
        &self.api_server
    }

    /// Returns etcd's process, for faults.
    pub fn etcd(&self) -> &Process {
        &self.etcd
    }
}

/// Returns the token in the answer to a TokenRequest.
fn token_in(answer: &str) -> Result<String> {
    let answer: Value = serde_json::from_str(answer)?;
    let token = answer["status"]["token"].as_str();
    Ok(token.context("no token")?.to_owned())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = Command::new("cp").arg("-a").args([from, to]).status()?;
    ensure!(
        copied.success(),
        "cp of {} ended with {copied}",
        from.display()
    );
    Ok(())
}

fn admin_kubeconfig(directory: &Path) -> PathBuf {
    directory.join("admin.kubeconfig")
}

fn url(port: &Port) -> String {
    format!("https://{}", port.address())
}

fn write_files(directory: &Path, authority: &Authority, kubeconfig: &str) -> Result<()> {
    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
    let server = authority.sign("kube-apiserver", None, &names, Purpose::Server)?;
    server.write(directory, "api-server")?;
    authority.write(directory, "authority")?;
    certificates::write_token_keys(directory, "tokens")?;
    certificates::write_private(&admin_kubeconfig(directory), kubeconfig)?;
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        // Those of the administrator, who polls, and of the API server itself are many, and nobody reads them. Of the
        // others no verb and no resource is left out: readers also look for what should not have been asked.
        "rules": [
            { "level": "Metadata", "userGroups": ["system:serviceaccounts"] },
            { "level": "None" },
        ],
    });
    fs::write(directory.join("audit-policy.json"), policy.to_string())
        .context("write the audit policy")
}

fn start_etcd(
    node: &Path,
    directory: &Path,
    [clients, peers]: &[Port; 2],
    room: u64,
) -> Result<Process> {
    let (clients, peers) = (clients.address(), peers.address());
    Program::new(programs::named(node, "etcd"))
        .args([
            format!("--data-dir={}", directory.join("etcd").display()),
            // Nothing survives the test, so nothing needs to reach the disk.
            "--unsafe-no-fsync".to_owned(),
            format!("--quota-backend-bytes={room}"),
            format!("--listen-client-urls=http://{clients}"),
            format!("--advertise-client-urls=http://{clients}"),
            format!("--listen-peer-urls=http://{peers}"),
            format!("--initial-advertise-peer-urls=http://{peers}"),
            format!("--initial-cluster=default=http://{peers}"),
        ])
        .start()
}

fn start_api_server(
    node: &Path,
    directory: &Path,
    etcd: &Port,
    port: &Port,
    flags: &[&str],
) -> Result<Process> {
    let file = |name: &str| directory.join(name).display().to_string();
    Program::new(programs::named(node, "kube-apiserver"))
        .args([
            format!("--etcd-servers=http://{}", etcd.address()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", port.number()),
            // Its own address may not be announced when it is a loopback address.
            "--endpoint-reconciler-type=none".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            format!("--tls-cert-file={}", file("api-server.crt")),
            format!("--tls-private-key-file={}", file("api-server.key")),
            format!("--client-ca-file={}", file("authority.crt")),
            format!("--service-account-issuer={ISSUER}"),
            format!("--service-account-key-file={}", file("tokens.pub")),
            format!("--service-account-signing-key-file={}", file("tokens.key")),
            "--authorization-mode=RBAC".to_owned(),
            format!("--audit-policy-file={}", file("audit-policy.json")),
            format!("--audit-log-path={}", file("audit.log")),
            // In MiB: never rotated, so that one file has everything.
            "--audit-log-maxsize=100000".to_owned(),
        ])
        .args(flags)
        .start()
}

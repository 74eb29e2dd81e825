//! kubectl as its users call it: its output and its refusals are part of what is tested. Objects are read without it,
//! since a wait reads them again and again.

use std::{
    error, fmt,
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Error, Result, bail};
use serde_json::Value;
use tokio::sync::OnceCell;
use water_harness::programs::{self, Program};
use water_harness::{ApiProxy, until_answered};

/// Kinds that are read, with the version of the API that has each.
const KINDS: [(&str, &str); 6] = [
    ("apikey", "apis/waterdata.dev/v1"),
    ("deployment", "apis/apps/v1"),
    ("job", "apis/batch/v1"),
    ("pod", "api/v1"),
    ("secret", "api/v1"),
    ("waterdataapi", "apis/waterdata.dev/v1"),
];

/// kubectl for one namespace.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
    /// What objects are read through, shared by all clients of this program.
    api: &'static ApiProxy,
}

impl Kubectl {
    /// Returns the client of the cluster's own version with the rights of `kubeconfig`, which is the same at each call
    /// of a program.
    pub async fn new(kubeconfig: PathBuf, namespace: &str) -> Result<Self> {
        static API: OnceCell<ApiProxy> = OnceCell::const_new();
        let program = programs::named(&Program::Node.path()?, "kubectl");
        let start = || ApiProxy::start(&program, &kubeconfig);
        let api = API.get_or_try_init(start).await?;
        Ok(Self {
            program,
            kubeconfig,
            namespace: namespace.to_owned(),
            api,
        })
    }

    /// Returns the client in another namespace.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            ..self.clone()
        }
    }

    /// Runs kubectl and returns its output; a refusal is an error with kubectl's own message.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        self.run_with_input(arguments, "")
    }

    /// Applies manifests as `kubectl apply -f -` does.
    pub fn apply(&self, manifests: &Value) -> Result<String> {
        self.run_with_input(&["apply", "-f", "-"], &manifests.to_string())
    }

    /// Applies many objects at once.
    pub fn apply_all(&self, items: Vec<Value>) -> Result<String> {
        self.apply(&serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items }))
    }

    /// Returns an object, such as `job/ingest`, or a list, such as `secrets`.
    pub fn get(&self, object: &str) -> Result<Value> {
        self.read(&path(&self.namespace, object)?)
    }

    /// Returns the list of the pods with these labels.
    pub fn pods(&self, labels: &str) -> Result<Value> {
        let path = path(&self.namespace, "pods")?;
        self.read(&format!("{path}?labelSelector={labels}"))
    }

    fn read(&self, path: &str) -> Result<Value> {
        let read = || {
            let text = self.api.get(path)?;
            // Without the text, which may be a Secret's.
            serde_json::from_str(&text).with_context(|| format!("not whole JSON: {path}"))
        };
        Ok(until_answered(read).map_err(|error| Failed(format!("{error:#}")))?)
    }

    /// Merges a change into an object.
    pub fn patch(&self, object: &str, change: &Value) -> Result<String> {
        self.run(&["patch", object, "--type=merge", "-p", &change.to_string()])
    }

    /// Returns a picture of the namespace for the message of a failed test.
    pub fn picture(&self) -> String {
        let events = ["get", "events", "--sort-by=.lastTimestamp"];
        let objects = ["get", "waterdataapis,deployments,jobs,pods", "-o", "wide"];
        let show = |arguments: &[&str]| {
            self.run(arguments)
                .unwrap_or_else(|error| error.to_string())
        };
        let events = show(&events);
        let lines: Vec<_> = events.lines().collect();
        let last = lines[lines.len().saturating_sub(25)..].join("\n");
        format!("{}\n\nlast events:\n{last}", show(&objects))
    }

    /// Returns the client, ready to be given arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", &self.namespace])
            // It blocks its thread, so that no deadline of a wait would end it.
            .arg("--request-timeout=60s");
        command
    }

    fn run_with_input(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin
                .write_all(input.as_bytes())
                .context("hand kubectl its input")?;
        }
        text_of(&child.wait_with_output().context("wait for kubectl")?)
    }
}

/// Returns the path of an object or a list.
fn path(namespace: &str, object: &str) -> Result<String> {
    let (kind, name) = object.split_once('/').unwrap_or((object, ""));
    let kind = kind.trim_end_matches('s');
    let place = KINDS.iter().find(|(known, _)| *known == kind);
    let (_, version) = place.with_context(|| format!("the version that has {kind}"))?;
    let path = format!("/{version}/namespaces/{namespace}/{kind}s/{name}");
    Ok(path.trim_end_matches('/').to_owned())
}

/// Error output of a program that failed, or what was said instead of an object.
#[derive(Debug)]
struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl error::Error for Failed {}

/// Whether an error says that kubectl or a read failed: its text may have a time in it, and is no state of what was
/// asked for.
pub(crate) fn is_kubectls(error: &Error) -> bool {
    error.is::<Failed>()
}

/// Returns a program's output, or, when it failed, its error output as the whole message.
pub fn text_of(output: &Output) -> Result<String> {
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(Failed(said.trim_end().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}

/// Returns the message of something that has to be refused; that it was done instead is the error.
pub fn refusal(outcome: Result<String>) -> Result<String> {
    match outcome {
        Err(refused) => Ok(refused.to_string()),
        Ok(done) => bail!(
            "it was not refused: {}",
            done.lines().next().unwrap_or_default()
        ),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn an_object_and_a_list_have_their_places_in_the_api() {
        let path = |object: &str| path("water", object).unwrap();
        assert_eq!(path("pods"), "/api/v1/namespaces/water/pods");
        let key = "/apis/waterdata.dev/v1/namespaces/water/apikeys/life";
        assert_eq!(path("apikey/life"), key);
        assert_eq!(path("apikeys/life"), key);
        assert!(super::path("water", "nodes").is_err());
    }

    #[test]
    fn what_kubectl_says_when_it_fails_is_the_message_and_known_to_be_kubectls() {
        let mut program = Command::new("sh");
        let output = program.args(["-c", "echo refused >&2; exit 1"]).output();
        let error = text_of(&output.unwrap()).unwrap_err();
        assert_eq!(format!("{error:#}"), "refused");
        assert!(is_kubectls(&error) && is_kubectls(&error.context("look")));
        assert!(!is_kubectls(&anyhow!("a state")));
    }
}

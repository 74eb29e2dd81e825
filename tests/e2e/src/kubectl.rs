//! kubectl as its users call it: its output and its refusals are part of what is tested.

use std::{
    error, fmt,
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Error, Result, bail};
use serde_json::Value;
use water_harness::programs::{self, Program};

/// kubectl for one namespace.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
}

impl Kubectl {
    /// Returns the client of the cluster's own version with the rights of `kubeconfig`.
    pub fn new(kubeconfig: PathBuf, namespace: &str) -> Result<Self> {
        let program = programs::named(&Program::Node.path()?, "kubectl");
        Ok(Self {
            program,
            kubeconfig,
            namespace: namespace.to_owned(),
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

    /// Returns an object, or a List.
    pub fn get(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.run(&[&["get", "-o", "json"], arguments].concat())?;
        serde_json::from_str(&text).with_context(|| format!("not JSON: {text}"))
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

/// Error output of a program that failed.
#[derive(Debug)]
struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl error::Error for Failed {}

/// Whether an error says that kubectl failed: its text may have a time in it, and is no state of what was asked for.
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
    fn what_kubectl_says_when_it_fails_is_the_message_and_known_to_be_kubectls() {
        let mut program = Command::new("sh");
        let output = program.args(["-c", "echo refused >&2; exit 1"]).output();
        let error = text_of(&output.unwrap()).unwrap_err();
        assert_eq!(format!("{error:#}"), "refused");
        assert!(is_kubectls(&error) && is_kubectls(&error.context("look")));
        assert!(!is_kubectls(&anyhow!("a state")));
    }
}

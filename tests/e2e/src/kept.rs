//! The release as the tests find it: a test that changes it for a while leaves it so, whatever comes of the test.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{Cluster, Kubectl, RELEASE, condition, is_current};

/// The spec of the WaterDataApi as this program first found it, without the version.
static FIRST: OnceCell<Value> = OnceCell::const_new();

/// The WaterDataApi's spec as it was: dropped, this puts it back and does not wait for the pods.
#[derive(Debug)]
pub struct KeptSpec {
    kubectl: Kubectl,
    spec: Value,
    is_let_go: bool,
}

impl KeptSpec {
    /// Leaves the spec as it has become.
    pub fn let_go(mut self) {
        self.is_let_go = true;
    }

    fn put_back(&self) -> Result<()> {
        let change = json!([{ "op": "replace", "path": "/spec", "value": self.spec }]);
        let api = format!("waterdataapi/{RELEASE}");
        let change = change.to_string();
        let patch = ["patch", &api, "--type=json", "-p", &change];
        self.kubectl.run(&patch).map(drop)
    }
}

impl Drop for KeptSpec {
    fn drop(&mut self) {
        if self.is_let_go {
            return;
        }
        // The next test that has the cluster for itself waits for it, and fails where this has failed.
        if let Err(error) = self.put_back() {
            println!("the spec of {RELEASE} could not be put back: {error:#}");
        }
    }
}

impl Cluster {
    /// Keeps the spec of the WaterDataApi, to be put back when what is returned is dropped.
    pub fn keep_spec(&self) -> Result<KeptSpec> {
        let mut api = self.api()?;
        Ok(KeptSpec {
            kubectl: self.kubectl.clone(),
            spec: api["spec"].take(),
            is_let_go: false,
        })
    }

    /// Waits until the release is as it was when this program first found it, at any version: what an earlier test has
    /// put back may be under way.
    pub async fn as_installed(&self) -> Result<()> {
        let is_as_installed = async || {
            let api = self.api()?;
            let first = FIRST.get_or_init(|| async { without_version(&api) }).await;
            let spec = without_version(&api);
            ensure!(spec == *first, "its spec is {spec}, and was {first}");
            is_rolled_out(&api)
        };
        self.wait_for_steps("the release to be as installed", is_as_installed)
            .await
    }
}

/// Returns a WaterDataApi's spec without the version, of which the tests of rollouts leave the one that they rolled to.
fn without_version(api: &Value) -> Value {
    let mut spec = api["spec"].clone();
    spec["image"]["tag"].take();
    spec
}

/// Fails if not all pods of a WaterDataApi are Ready pods of its present spec.
fn is_rolled_out(api: &Value) -> Result<()> {
    let state = rollout(api);
    ensure!(is_current(api), "its spec is new; {state}");
    ensure!(condition(api, "Ready")?.0 == "True", "{state}");
    let (version, wanted) = (&api["status"]["version"], &api["spec"]["image"]["tag"]);
    ensure!(version == wanted, "{version} is not {wanted}; {state}");
    let components = api["status"]["components"].as_array();
    let components = components.context("it has no components yet")?;
    for component in components {
        let desired = &component["desired"];
        let is_whole = component["ready"] == *desired && component["updated"] == *desired;
        ensure!(is_whole, "{state}");
    }
    Ok(())
}

/// Returns what a WaterDataApi's status says of a rollout, without times: it changes with each step.
pub fn rollout(api: &Value) -> String {
    let status = &api["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let said = conditions.map(|condition| {
        let [kind, status, reason, message] = ["type", "status", "reason", "message"]
            .map(|field| condition[field].as_str().unwrap_or_default());
        format!("{kind}={status} {reason}: {message}")
    });
    let said = said.collect::<Vec<_>>().join("; ");
    format!("components {}; {said}", status["components"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(ready: u32, since: &str) -> Value {
        let condition = json!({
            "type": "Ready", "status": "True", "reason": "AllReady", "message": "", "lastTransitionTime": since,
        });
        json!({
            "metadata": { "generation": 3 },
            "spec": { "image": { "tag": "2" } },
            "status": {
                "observedGeneration": 3,
                "version": "2",
                "components": [{ "name": "gate", "desired": 2, "ready": ready, "updated": 2 }],
                "conditions": [condition],
            },
        })
    }

    #[test]
    fn a_step_of_a_rollout_is_another_number_of_pods_and_not_another_time() {
        let seen = rollout(&api(1, "2026-01-01T00:00:00Z"));
        assert_eq!(seen, rollout(&api(1, "2026-01-02T00:00:00Z")));
        assert_ne!(seen, rollout(&api(2, "2026-01-01T00:00:00Z")));
    }

    #[test]
    fn a_release_is_rolled_out_when_all_pods_are_of_the_present_spec() {
        let whole = api(2, "");
        is_rolled_out(&whole).unwrap();
        is_rolled_out(&api(1, "")).unwrap_err();
        for (pointer, value) in [
            ("/metadata/generation", json!(4)),
            ("/spec/image/tag", json!("3")),
            ("/status/components/0/updated", json!(1)),
            ("/status/conditions/0/status", json!("False")),
        ] {
            let mut changed = whole.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            is_rolled_out(&changed).unwrap_err();
        }
    }

    #[test]
    fn specs_that_differ_in_their_version_only_are_the_same() {
        let spec = |tag: &str, replicas: u32| {
            let image = json!({ "registry": "r", "tag": tag });
            json!({ "spec": { "image": image, "replicas": replicas } })
        };
        assert_eq!(
            without_version(&spec("1", 2)),
            without_version(&spec("2", 2))
        );
        assert_ne!(
            without_version(&spec("1", 2)),
            without_version(&spec("1", 3))
        );
    }
}

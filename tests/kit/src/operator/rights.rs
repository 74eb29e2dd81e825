//! The operator's ServiceAccount and its rights in a test: exactly those that the chart gives it, as
//! Helm renders them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use water_harness::ControlPlane;
use water_harness::programs::Program;

use super::objects::Objects;

/// The operator's ServiceAccount in a release of this name.
pub const ACCOUNT: &str = "water-operator";
const RELEASE: &str = "water";
/// Namespace of a release in rendered rights, to be replaced.
const ANY_NAMESPACE: &str = "namespace-of-the-release";

/// Values that the chart requires, and no test here cares about.
const REQUIRED: [&str; 3] = [
    "postgres.existingSecret=postgres",
    "redis.existingSecret=redis",
    "api.exposure.trustedProxiesNone=true",
];

/// Returns the Helm client, built first if it is missing.
pub fn helm() -> Result<PathBuf> {
    Program::Helm.find_or_build(&mut |_| {})
}

/// Renders the whole chart, or one of its templates, with Helm for a release in `namespace`.
pub fn rendered(namespace: &str, template: Option<&str>, values: &[&str]) -> Result<String> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/water-data");
    let mut command = Command::new(helm()?);
    command
        .args(["template", RELEASE, "--namespace", namespace])
        .arg(chart);
    let values = REQUIRED.iter().chain(values);
    command.args(values.flat_map(|value| ["--set", value]));
    command.args(template.iter().flat_map(|name| ["--show-only", name]));
    let output = command.output().context("start helm")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// Gives the ServiceAccount of a release in `namespace` its rights.
pub fn grant(cluster: &ControlPlane, namespace: &str, values: &[&str]) -> Result<()> {
    let rights = rights(values)?.replace(ANY_NAMESPACE, namespace);
    for object in serde_yaml_ng::Deserializer::from_str(&rights) {
        let object = Value::deserialize(object)?;
        let at = object["metadata"]["namespace"]
            .as_str()
            .unwrap_or(namespace);
        Objects::new(cluster, at).apply(&object)?;
    }
    Ok(())
}

/// Renders rights with these values in any namespace. Helm takes a fifth of a second, so it renders them
/// once.
fn rights(values: &[&str]) -> Result<String> {
    static RENDERED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut all = RENDERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(&values.concat()) {
        return Ok(known.clone());
    }
    let rights = rendered(ANY_NAMESPACE, Some("templates/rbac.yaml"), values)?;
    all.insert(values.concat(), rights.clone());
    Ok(rights)
}

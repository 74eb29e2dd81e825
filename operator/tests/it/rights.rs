//! The operator's ServiceAccount and its rights in a test: exactly those that the chart gives it, as
//! Helm renders them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use water_harness::programs::Program;
use water_harness::{ControlPlane, scratch_directory};

/// The operator's ServiceAccount in a release of this name.
pub const ACCOUNT: &str = "water-operator";
const RELEASE: &str = "water";

/// What the chart asks for, and no test here cares about.
const REQUIRED: [&str; 3] = [
    "postgres.existingSecret=postgres",
    "redis.existingSecret=redis",
    "api.exposure.trustedProxiesNone=true",
];

/// The Helm client, built first if it is missing.
pub fn helm() -> Result<PathBuf> {
    Program::Helm.find_or_build(&mut |_| {})
}

/// The whole chart, or one of its templates, as Helm renders it for a release in `namespace`.
pub fn rendered(namespace: &str, template: Option<&str>, values: &[&str]) -> Result<String> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/water-data");
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
    let file = scratch_directory("rights")?.join("rbac.yaml");
    fs::write(
        &file,
        rendered(namespace, Some("templates/rbac.yaml"), values)?,
    )?;
    let file = file.to_string_lossy();
    cluster
        .kubectl(&["apply", "--server-side", "-f", &file])
        .map(drop)
}

//! What the chart gives the product's programs, as Helm renders it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use water_harness::programs::Program;

/// Values without which the chart refuses to be rendered.
const VALUES: [&str; 3] = [
    "postgres.existingSecret=postgres",
    "redis.existingSecret=redis",
    "api.exposure.trustedProxiesNone=true",
];

/// The manifests of `templates/<template>.yaml` in this namespace, with more values.
pub fn rendered(namespace: &str, template: &str, values: &[&str]) -> Result<String> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/water-data");
    let values = VALUES.iter().chain(values);
    let output = Command::new(Program::Helm.find_or_build(&mut |_| {})?)
        .args(["template", "water", "--namespace", namespace])
        .arg("--show-only")
        .arg(format!("templates/{template}.yaml"))
        .args(values.flat_map(|value| ["--set", value]))
        .arg(chart)
        .output()
        .context("start helm")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

//! Kustomize with the file that the chart's README gives for it.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;
use water_e2e::{project, text_of};
use water_harness::programs::{self, Program};
use water_harness::scratch_directory;

/// Returns the README's YAML block that begins with this line.
fn block(first_line: &str) -> Result<String> {
    let readme = project().join("charts/water-data/README.md");
    let readme = fs::read_to_string(readme)?;
    let mut blocks = readme.split("```yaml\n").skip(1);
    let found = blocks.find(|block| block.starts_with(first_line));
    let (block, _) = found
        .and_then(|block| block.split_once("```"))
        .with_context(|| {
            format!("the chart's README has no YAML that begins with {first_line:?}")
        })?;
    Ok(block.to_owned())
}

#[test]
fn an_apikeys_secret_follows_its_prefix_wherever_a_workload_names_it() -> Result<()> {
    let key = json!({
        "apiVersion": "waterdata.dev/v1",
        "kind": "ApiKey",
        "metadata": { "name": "acme" },
        "spec": { "material": { "generated": { "secretName": "acme" } } },
    });
    let secret = json!({ "name": "acme", "key": "apiKey" });
    let pods = json!({ "spec": {
        "containers": [{
            "name": "main",
            "env": [{ "name": "KEY", "valueFrom": { "secretKeyRef": secret } }],
            "envFrom": [{ "secretRef": { "name": "acme" } }],
        }],
        "volumes": [{ "name": "key", "secret": { "secretName": "acme" } }],
    }});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "reader" },
        "spec": { "template": pods },
    });
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": { "name": "report" },
        "spec": { "jobTemplate": { "spec": { "template": pods } } },
    });
    let kustomization = json!({
        "namePrefix": "team-",
        "resources": ["objects.yaml"],
        "configurations": ["names.yaml"],
    });
    let folder = scratch_directory("kustomize")?;
    fs::write(folder.join("kustomization.yaml"), kustomization.to_string())?;
    fs::write(
        folder.join("objects.yaml"),
        format!("{key}\n---\n{deployment}\n---\n{job}\n"),
    )?;
    fs::write(folder.join("names.yaml"), block("nameReference:\n")?)?;
    let kubectl = programs::named(&Program::Node.path()?, "kubectl");
    let built = Command::new(kubectl)
        .arg("kustomize")
        .arg(&folder)
        .output()?;
    let built = text_of(&built)?;
    let named = |name: &str| built.lines().filter(|line| line.ends_with(name)).count();
    // The ApiKey's own name, the one that it gives its Secret, and three of each workload.
    assert_eq!(named(": team-acme"), 8, "{built}");
    assert_eq!(named(": acme"), 0, "{built}");
    Ok(())
}

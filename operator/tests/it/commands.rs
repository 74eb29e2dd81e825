//! The subcommands that a person or a script runs.

use anyhow::{bail, ensure};
use serde_json::json;
use water_harness::{Process, Program};

use crate::Result;
use crate::world::{PATIENCE, World, brought};

fn operator(arguments: &[&str]) -> Program {
    Program::new(env!("CARGO_BIN_EXE_water-operator")).args(arguments.iter().copied())
}

fn release(world: &World) -> anyhow::Result<Process> {
    operator(&["release", "--all", "--namespace", &world.namespace])
        .env("KUBECONFIG", world.cluster.kubeconfig_path())
        .start()
}

/// The API server refuses every change of that ApiKey from when this returns.
async fn forbid_changes(world: &World, name: &str) -> Result {
    let policy = format!("{}-{name}", world.namespace);
    let (kind, group) = (
        "ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io/v1",
    );
    let rule = json!({
        "apiGroups": ["waterdata.dev"], "apiVersions": ["v1"], "resources": ["apikeys"], "operations": ["UPDATE"],
    });
    let object = format!(
        "object.metadata.namespace == '{}' && object.metadata.name == '{name}'",
        world.namespace
    );
    let items = json!([
        {
            "apiVersion": group, "kind": kind, "metadata": { "name": policy },
            "spec": {
                "matchConstraints": { "resourceRules": [rule] },
                "matchConditions": [{ "name": "one", "expression": object }],
                "validations": [{ "expression": "false", "message": "nobody may" }],
            },
        },
        {
            "apiVersion": group, "kind": format!("{kind}Binding"), "metadata": { "name": policy },
            "spec": { "policyName": policy, "validationActions": ["Deny"] },
        },
    ]);
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    world.cluster.apply(&list.to_string())?;
    let key = format!("apikey/{name}");
    let refused = async || match world.kubectl(&["annotate", &key, "tried=1", "--overwrite"]) {
        Ok(_) => bail!("changed"),
        Err(error) if error.to_string().contains("nobody may") => Ok(()),
        Err(error) => Err(error),
    };
    world
        .wait("the policy to be in force", PATIENCE, refused)
        .await
}

#[tokio::test]
async fn release_frees_what_it_can_and_names_the_rest() -> Result {
    let (world, running) = World::running("release").await?;
    for (name, digit) in [("acme", 'a'), ("refused", 'b'), ("unreadable", 'c')] {
        world.apply(&brought(name, digit))?;
        world
            .condition(&format!("apikey/{name}"), "Ready", "True/Active")
            .await?;
    }
    running.kill()?;
    // The schema admits it, and no operator can read it.
    let comma = json!({ "spec": { "notBefore": "2026-01-01T00:00:00,5Z" } });
    world.patch("apikey/unreadable", &comma, &[])?;
    forbid_changes(&world, "refused").await?;
    world.kubectl(&["delete", "apikey", "--all", "--wait=false"])?;
    let release = release(&world)?;
    let status = release.ended(PATIENCE).await?;
    let log = release.log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(
        log.contains("2 ApiKeys freed") && log.contains("release/refused"),
        "{log}"
    );
    world.gone("apikey/acme").await?;
    world.gone("apikey/unreadable").await?;
    let lease = world.get("lease/water-operator")?;
    assert_eq!(
        lease["spec"]["holderIdentity"], "",
        "it gave the Lease back"
    );
    Ok(())
}

#[tokio::test]
async fn release_does_nothing_beside_an_operator_that_runs() -> Result {
    let (world, running) = World::running("release-beside").await?;
    world.apply(&brought("acme", 'd'))?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    let release = release(&world)?;
    assert_eq!(release.ended(PATIENCE).await?.code(), Some(1));
    assert!(
        release
            .log()
            .contains("an operator leads in namespace release-beside"),
        "{}",
        release.log()
    );
    let key = world.get("apikey/acme")?;
    assert_eq!(key["metadata"]["finalizers"][0], "waterdata.dev/revoke");
    assert_eq!(running.exit_status()?, None);
    Ok(())
}

#[tokio::test]
async fn release_has_to_be_meant() -> Result {
    let release = operator(&["release"]).start()?;
    assert_eq!(release.ended(PATIENCE).await?.code(), Some(2));
    assert!(release.log().contains("--all"), "{}", release.log());
    Ok(())
}

#[tokio::test]
async fn redis_acl_prints_the_operators_line_and_the_gates() -> Result {
    let hash = "a".repeat(64);
    let arguments = [
        "redis-acl",
        "--operator-password-hash",
        &hash,
        "--gate-password-hash",
        &hash,
    ];
    let acl = operator(&arguments).start()?;
    ensure!(acl.ended(PATIENCE).await?.success(), "{}", acl.log());
    let log = acl.log();
    let users: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(users, ["water-operator", "water-gate"]);
    assert!(log.contains("~wd:{water.water-data}:*"), "{log}");
    Ok(())
}

#[tokio::test]
async fn bad_settings_are_told_all_at_once_with_exit_code_64() -> Result {
    let run = operator(&["run"]).env("WATER_SCOPE", "World").start()?;
    assert_eq!(run.ended(PATIENCE).await?.code(), Some(64));
    let log = run.log();
    for variable in ["WATER_POD_NAME", "WATER_POD_NAMESPACE", "WATER_SCOPE"] {
        assert!(log.contains(variable), "{log}");
    }
    Ok(())
}

#[tokio::test]
async fn its_version_is_its_images() -> Result {
    let version = operator(&["--version"])
        .env("WATER_VERSION", "1.2.3-next")
        .start()?;
    assert!(version.ended(PATIENCE).await?.success());
    assert_eq!(version.log(), "water-operator 1.2.3-next\n");
    Ok(())
}

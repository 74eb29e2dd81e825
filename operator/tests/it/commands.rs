//! The subcommands that a person or a script runs.

use anyhow::ensure;
use water_harness::Program;

use crate::Result;
use crate::world::{PATIENCE, World, brought};

fn operator(arguments: &[&str]) -> Program {
    Program::new(env!("CARGO_BIN_EXE_water-operator")).args(arguments.iter().copied())
}

#[tokio::test]
async fn release_frees_keys_that_no_operator_can_revoke() -> Result {
    let (world, running) = World::running("release").await?;
    world.apply(&brought("acme", 'a'))?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    running.kill()?;
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    let release = operator(&["release", "--all", "--namespace", "release"])
        .env("KUBECONFIG", world.cluster.kubeconfig_path())
        .start()?;
    ensure!(
        release.ended(PATIENCE).await?.success(),
        "{}",
        release.log()
    );
    assert!(
        release.log().contains("1 ApiKeys freed"),
        "{}",
        release.log()
    );
    world.gone("apikey/acme").await
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

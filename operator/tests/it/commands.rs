//! The subcommands that a person or a script runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};
use serde_json::json;
use water_harness::{Network, Process, Program, Proxy};

use crate::Result;
use crate::gate::{GRACE, Gate, end_pod};
use crate::turnover::holds;
use crate::world::{API, PATIENCE, World, api, brought, key};

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
async fn released_keys_are_refused_and_a_later_operator_publishes_those_that_live() -> Result {
    let (world, running) = World::running("release-later").await?;
    for object in [key("acme"), brought("partner", 'e')] {
        world.apply(&object)?;
    }
    for name in ["apikey/acme", "apikey/partner"] {
        world.condition(name, "Ready", "True/Active").await?;
    }
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let published = world.published().await?;
    running.kill()?;
    world.kubectl(&["delete", "apikey", "partner", "--wait=false"])?;
    let release = release(&world)?;
    let status = release.ended(PATIENCE).await?;
    assert!(status.success(), "{}", release.log());
    assert_eq!(gate.keys(), 0, "before it ends");
    assert!(world.published().await?.is_empty());
    world.gone("apikey/partner").await?;
    let acme = world.get("apikey/acme")?;
    assert!(acme["metadata"]["finalizers"].is_null(), "{acme}");

    let _next = world.operator("operator-1")?;
    let alone = holds(&world, 1).await?;
    assert!(published.contains(&alone[0]), "{alone:?}");
    world.apply(&brought("partner", 'e'))?;
    world
        .condition("apikey/partner", "Stalled", "True/RevokedInStore")
        .await?;
    Ok(())
}

#[tokio::test]
async fn release_frees_nothing_while_gates_may_accept_the_keys() -> Result {
    let (redis, world, running) = World::on_own_redis("release-away").await?;
    world.in_force(&brought("acme", 'f')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    running.stop(PATIENCE).await?;
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    let refused = async |why: &str| {
        let release = release(&world)?;
        assert_eq!(release.ended(PATIENCE).await?.code(), Some(1));
        let log = release.log();
        assert!(
            log.contains(why) && log.contains("nothing was freed"),
            "{log}"
        );
        world.get("apikey/acme").map(drop)
    };
    redis.kill()?;
    refused("Redis cannot be reached").await?;
    // Nobody knows its Redis any more, and its gate serves on.
    world.kubectl(&["delete", "waterdataapi", API])?;
    refused("delete gate-0").await?;
    end_pod(&world, &gate.name)?;
    let release = release(&world)?;
    assert!(
        release.ended(PATIENCE).await?.success(),
        "{}",
        release.log()
    );
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn release_frees_what_a_deleted_namespace_waits_for() -> Result {
    let (world, running) = World::running("release-namespace").await?;
    world.in_force(&brought("acme", '0')).await?;
    running.kill()?;
    world
        .cluster
        .kubectl(&["delete", "namespace", &world.namespace, "--wait=false"])?;
    // What the namespace controller, which is not there, deletes in an order of its own.
    for kind in [
        "rolebinding/water-operator",
        "role/water-operator",
        "serviceaccount/water-operator",
        "lease/water-operator",
        "waterdataapi/water-data",
    ] {
        world.kubectl(&["delete", kind])?;
    }
    world.kubectl(&["delete", "apikey", "acme", "--wait=false"])?;
    let release = release(&world)?;
    assert!(
        release.ended(PATIENCE).await?.success(),
        "{}",
        release.log()
    );
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn release_does_nothing_beside_an_operator_that_runs() -> Result {
    let (world, running) = World::running("release-beside").await?;
    world.in_force(&brought("acme", 'd')).await?;
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

/// Two namespaces of one API server, each with an operator of its own and a key in force.
async fn two_operators(names: [&str; 2]) -> anyhow::Result<[(World, Arc<Process>); 2]> {
    let first = World::alone(names[0]).await?;
    let second = first.with_own_operator(names[1]).await?;
    let start = async |world: World| {
        world.apply(&api())?;
        let running = world.operator("operator-0")?;
        world.in_force(&brought("acme", 'a')).await?;
        anyhow::Ok((world, running))
    };
    Ok([start(first).await?, start(second).await?])
}

fn release_everywhere(world: &World) -> anyhow::Result<Process> {
    operator(&["release", "--all"])
        .env("KUBECONFIG", world.cluster.kubeconfig_path())
        .start()
}

#[tokio::test]
async fn release_gives_back_the_leases_that_it_has_won_when_it_cannot_win_another() -> Result {
    let names = ["release-a-stopped", "release-b-led"];
    let [(stopped, running), (_led, _running)] = two_operators(names).await?;
    running.stop(PATIENCE).await?;
    let release = release_everywhere(&stopped)?;
    assert_eq!(release.ended(PATIENCE).await?.code(), Some(1));
    let log = release.log();
    let why = "an operator leads in namespace release-b-led";
    assert!(log.contains(why), "{log}");
    let lease = stopped.get("lease/water-operator")?;
    assert_eq!(lease["spec"]["holderIdentity"], "");
    Ok(())
}

#[tokio::test]
async fn release_renews_the_leases_that_it_has_won_until_a_killed_operators_runs_out() -> Result {
    let operators = two_operators(["release-first", "release-later-won"]).await?;
    let [(first, stopped), (later, killed)] = &operators;
    stopped.stop(PATIENCE).await?;
    killed.kill()?;
    let release = release_everywhere(first)?;
    let status = release.ended(PATIENCE).await?;
    assert!(status.success(), "{}", release.log());
    for world in [first, later] {
        let key = world.get("apikey/acme")?;
        assert!(key["metadata"]["finalizers"].is_null(), "{key}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn release_renews_the_leases_that_it_has_won_while_it_wins_many_from_a_slow_api_server()
-> Result {
    let world = World::alone("release-slow").await?;
    // Won in 0.8 s each: the first one would run out before the last is won.
    let namespaces = (0..20).flat_map(|number| {
        let namespace = format!("release-slow-{number}");
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "water-operator", "namespace": namespace },
            "spec": { "holderIdentity": "", "leaseDurationSeconds": 1 },
        });
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
        });
        [namespace, lease]
    });
    let items: Vec<_> = namespaces.collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    world.cluster.apply(&list.to_string())?;
    let proxy = Proxy::before(world.cluster.address()).await?;
    let kubeconfig = world.kubeconfig_through(&world.cluster.kubeconfig_path(), &proxy)?;
    proxy.set(Network::Delay(Duration::from_millis(400)));
    let release = operator(&["release", "--all"])
        .env("KUBECONFIG", kubeconfig)
        .start()?;
    let status = release.ended(PATIENCE).await?;
    assert!(status.success(), "{}", release.log());
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
async fn redis_acl_prints_a_line_for_operator_gate_and_portal() -> Result {
    let hash = "a".repeat(64);
    let arguments = [
        "redis-acl",
        "--operator-password-hash",
        &hash,
        "--gate-password-hash",
        &hash,
        "--portal-password-hash",
        &hash,
    ];
    let acl = operator(&arguments).start()?;
    ensure!(acl.ended(PATIENCE).await?.success(), "{}", acl.log());
    let log = acl.log();
    let users: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(users, ["water-operator", "water-gate", "water-portal"]);
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

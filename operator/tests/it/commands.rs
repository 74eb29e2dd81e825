//! The subcommands that a person or a script runs.

mod long;

use std::fs;
use std::mem;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use serde_json::{Value, json};
use water_harness::{Interceptor, Program, Redis, scratch_directory};

use crate::Result;
use crate::gate::{GRACE, Gate, end_pod};
use crate::moved_store::{BOTH, move_store, name_store, store};
use crate::steps::{NOTHING, OBJECT, count, delete, edit, given_back, holds, stalled, until};
use crate::world::{API, OPERATOR, PATIENCE, World, brought, key};

/// The operator with these arguments.
pub fn operator(arguments: &[&str]) -> Program {
    Program::new(water_kit::built(OPERATOR)).args(arguments.iter().copied())
}

/// Runs a command to its end: its exit code and all that it has said.
pub async fn run(program: Program) -> anyhow::Result<(Option<i32>, String)> {
    let process = program.start()?;
    Ok((process.ended(PATIENCE).await?.code(), process.log()))
}

/// Runs a release of the world's namespace, or with `everywhere` of all: its exit code and all that it has said.
async fn release(world: &World, everywhere: bool) -> anyhow::Result<(Option<i32>, String)> {
    let namespace: &[&str] = if everywhere {
        &[]
    } else {
        &["--namespace", &world.namespace]
    };
    let release = operator(&["release", "--all"]).args(namespace.iter().copied());
    run(release.env("KUBECONFIG", world.cluster.kubeconfig_path())).await
}

/// Runs a release, which must free every ApiKey.
pub async fn released(world: &World, everywhere: bool) -> Result {
    let (code, said) = release(world, everywhere).await?;
    assert_eq!(code, Some(0), "{said}");
    Ok(())
}

fn finalizers(world: &World, name: &str) -> anyhow::Result<Value> {
    Ok(world.get(&format!("apikey/{name}"))?["metadata"]["finalizers"].clone())
}

/// The API server refuses every change of that ApiKey from when this returns.
async fn forbid_changes(world: &World, name: &str) -> Result {
    let (policy, group) = (
        format!("{}-{name}", world.namespace),
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
            "apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": { "name": policy },
            "spec": {
                "matchConstraints": { "resourceRules": [rule] },
                "matchConditions": [{ "name": "one", "expression": object }],
                "validations": [{ "expression": "false", "message": "nobody may" }],
            },
        },
        {
            "apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": policy },
            "spec": { "policyName": policy, "validationActions": ["Deny"] },
        },
    ]);
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    world.cluster.apply(&list.to_string())?;
    let key = format!("apikey/{name}");
    until(world, "the policy to be in force", async || {
        match world.kubectl(&["annotate", &key, "tried=1", "--overwrite"]) {
            Ok(_) => bail!("changed"),
            Err(error) if error.to_string().contains("nobody may") => Ok(()),
            Err(error) => Err(error),
        }
    })
    .await
}

#[tokio::test]
async fn release_frees_what_it_can_and_names_the_rest() -> Result {
    let (world, running) = World::running("release").await?;
    for (name, digit) in [("acme", 'a'), ("refused", 'b'), ("unreadable", 'c')] {
        world.in_force(&brought(name, digit)).await?;
    }
    running.stop(PATIENCE).await?;
    // The schema admits it, and no operator can read it.
    let comma = json!({ "notBefore": "2026-01-01T00:00:00,5Z" });
    edit(&world, "unreadable", &comma)?;
    forbid_changes(&world, "refused").await?;
    world.kubectl(&["delete", "apikey", "--all", "--wait=false"])?;
    let (code, said) = release(&world, false).await?;
    assert_eq!(code, Some(1), "{said}");
    let told = said.contains("2 ApiKeys freed") && said.contains("release/refused");
    assert!(told, "{said}");
    world.gone("apikey/acme").await?;
    world.gone("apikey/unreadable").await?;
    let lease = world.get("lease/water-operator")?;
    assert_eq!(lease["spec"]["leaseTransitions"], 1, "not taken");
    given_back(&world, &said)
}

#[tokio::test]
async fn released_keys_are_refused_and_a_later_operator_publishes_those_that_live() -> Result {
    let (world, running) = World::running("release-later").await?;
    world.in_force(&key("acme")).await?;
    world.in_force(&brought("partner", 'e')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let published = world.published().await?;
    running.stop(PATIENCE).await?;
    delete(&world, "partner")?;
    released(&world, false).await?;
    assert_eq!(gate.keys(), 0, "before it ends");
    holds(&world, &NOTHING).await?;
    world.gone("apikey/partner").await?;
    assert!(finalizers(&world, "acme")?.is_null());

    let _next = world.operator("operator-1")?;
    let alone = count(&world, 1).await?;
    assert!(published.contains(&alone[0]), "{alone:?}");
    world.apply(&brought("partner", 'e'))?;
    stalled(&world, "partner", "RevokedInStore").await?;
    Ok(())
}

#[tokio::test]
async fn release_frees_nothing_while_gates_may_accept_the_keys() -> Result {
    let (redis, world, running) = World::on_own_redis("release-away").await?;
    world.in_force(&brought("acme", 'f')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    running.stop(PATIENCE).await?;
    delete(&world, "acme")?;
    let refused = async |why: &str| {
        let (code, said) = release(&world, false).await?;
        assert_eq!(code, Some(1));
        let told = said.contains(why) && said.contains("nothing was freed");
        assert!(told, "{said}");
        world.get("apikey/acme").map(drop)
    };
    redis.kill()?;
    refused("Redis cannot be reached").await?;
    // Nobody knows its Redis any more, and its gate serves on.
    world.kubectl(&["delete", "waterdataapi", API])?;
    refused("delete gate-0").await?;
    end_pod(&world, &gate.name)?;
    released(&world, false).await?;
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn release_frees_nothing_by_a_directory_that_has_missed_what_another_redis_was_told() -> Result
{
    let (first, mut world, running) = World::on_own_redis("release-moved").await?;
    world.in_force(&brought("acme", 'c')).await?;
    let second = Redis::start().await?;
    for redis in [&second, &first] {
        move_store(&mut world, &BOTH, redis).await?;
    }
    running.stop(PATIENCE).await?;
    name_store(&mut world, &BOTH, &second.url())?;
    let (code, said) = release(&world, false).await?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the key directory is not complete"), "{said}");
    // What it may have written there the first one has missed.
    assert_eq!(store(&world.get(OBJECT)?), None);
    Ok(())
}

/// Makes an account with all rights in the world's namespace, whose requests are in the audit log. Returns the name of
/// its user and its kubeconfig.
async fn account(world: &World, name: &str) -> anyhow::Result<(String, PathBuf)> {
    let (namespace, metadata) = (&world.namespace, json!({ "name": name }));
    world.apply(&json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata }))?;
    let account = format!("--serviceaccount={namespace}:{name}");
    let rights = "--clusterrole=cluster-admin";
    world.kubectl(&["create", "rolebinding", name, rights, &account])?;
    let user = format!("system:serviceaccount:{namespace}:{name}");
    let by = format!("--as={user}");
    let may = async || world.kubectl(&["auth", "can-i", "list", "leases", &by]);
    until(world, "its rights", may).await?;
    let kubeconfig = scratch_directory("account")?.join("kubeconfig");
    fs::write(&kubeconfig, world.cluster.kubeconfig_of(namespace, name)?)?;
    Ok((user, kubeconfig))
}

#[tokio::test]
async fn release_reads_nothing_but_leases_while_an_operator_leads_and_begins_when_that_has_stopped()
-> Result {
    let (world, running) = World::running("release-led").await?;
    world.in_force(&brought("acme", '8')).await?;
    let (user, kubeconfig) = account(&world, "person").await?;
    let release = operator(&["release", "--all", "--namespace", &world.namespace]);
    let release = release.env("KUBECONFIG", kubeconfig).start()?;
    let mut asked = world.cluster.audit_events_of(&user);
    let asked = until(&world, "three looks at the Lease", async || {
        let asked = asked.all()?;
        let looks = asked.iter().filter(|event| event["verb"] == "get");
        ensure!(looks.count() >= 3, "{asked:?}");
        Ok(asked.to_vec())
    })
    .await?;
    for event in &asked {
        let is_read = event["verb"] == "get" || event["verb"] == "list";
        let is_of_lease = event["objectRef"]["resource"] == "leases";
        assert!(is_read && is_of_lease, "{event}");
    }
    assert_eq!(release.exit_status()?, None);
    running.stop(PATIENCE).await?;
    let code = release.ended(PATIENCE).await?.code();
    if release.log().contains("an operator leads in namespace") {
        // It gave up after 30 s, which a busy machine took for all of this.
        released(&world, false).await?;
    } else {
        assert_eq!(code, Some(0), "{}", release.log());
    }
    assert!(finalizers(&world, "acme")?.is_null());
    Ok(())
}

/// Whether a request is a write to the ApiKey.
fn is_write(request: &str, name: &str) -> bool {
    request.starts_with("PATCH ") && request.contains(&format!("/apikeys/{name}?"))
}

#[tokio::test]
async fn release_tries_again_where_somebody_else_writes_and_names_what_changes_each_time() -> Result
{
    let (world, running) = World::running("release-beside").await?;
    for (name, digit) in [("acme", '4'), ("busy", '5')] {
        world.in_force(&brought(name, digit)).await?;
    }
    running.stop(PATIENCE).await?;
    let (_, kubeconfig) = account(&world, "person").await?;
    let (cluster, namespace) = (world.cluster, world.namespace.clone());
    let mut interceptor = Interceptor::default();
    let through = interceptor
        .before_api_server(cluster.address(), cluster.authority_pem())
        .await?;
    let direct = format!("https://{}", cluster.address());
    let settings = fs::read_to_string(&kubeconfig)?.replace(&direct, &format!("http://{through}"));
    fs::write(&kubeconfig, settings)?;
    // Somebody writes `acme` before its first write, and `busy` before each.
    let (mut changes, mut is_acme_changed) = (0, false);
    interceptor.show(move |_, request| {
        let request = String::from_utf8_lossy(request);
        let name = if is_write(&request, "busy") {
            "busy"
        } else if is_write(&request, "acme") && !mem::replace(&mut is_acme_changed, true) {
            "acme"
        } else {
            return;
        };
        changes += 1;
        let (key, change) = (format!("apikey/{name}"), format!("changed={changes}"));
        let changed = cluster.kubectl(&[
            "annotate",
            &key,
            &change,
            "--overwrite",
            "--namespace",
            &namespace,
        ]);
        changed.expect("a change between read and write");
    });
    let release = operator(&["release", "--all", "--namespace", &world.namespace]);
    let (code, said) = run(release.env("KUBECONFIG", kubeconfig)).await?;
    let told = said.contains("1 ApiKeys freed") && said.contains("release-beside/busy: ");
    assert!(code == Some(1) && told, "{said}");
    assert!(finalizers(&world, "acme")?.is_null());
    let requests = interceptor.requests();
    let writes = |name| requests.iter().filter(|one| is_write(one, name)).count();
    assert_eq!((writes("acme"), writes("busy")), (2, 5), "{requests:?}");
    Ok(())
}

#[tokio::test]
async fn release_frees_what_a_deleted_namespace_waits_for() -> Result {
    let (world, running) = World::running("release-namespace").await?;
    world.in_force(&brought("acme", '0')).await?;
    running.kill()?;
    let delete_namespace = ["delete", "namespace", &world.namespace, "--wait=false"];
    world.cluster.kubectl(&delete_namespace)?;
    // Deletes what the namespace controller, which is not there, deletes in any order.
    for kind in ["rolebinding", "role", "serviceaccount", "lease"] {
        world.kubectl(&["delete", kind, "water-operator"])?;
    }
    world.kubectl(&["delete", "waterdataapi", API])?;
    delete(&world, "acme")?;
    released(&world, false).await?;
    world.gone("apikey/acme").await
}

#[tokio::test]
async fn commands_say_what_they_are_and_what_they_lack() -> Result {
    let (code, said) = run(operator(&["release"])).await?;
    assert_eq!(code, Some(2), "it has to be meant");
    assert!(said.contains("--all"), "{said}");
    let (code, said) = run(operator(&["run"]).env("WATER_SCOPE", "World")).await?;
    assert_eq!(code, Some(64));
    for variable in ["WATER_POD_NAME", "WATER_POD_NAMESPACE", "WATER_SCOPE"] {
        assert!(said.contains(variable), "{said}");
    }
    let version = operator(&["--version"]).env("WATER_VERSION", "1.2.3-next");
    let (code, said) = run(version).await?;
    assert_eq!((code, &*said), (Some(0), "water-operator 1.2.3-next\n"));
    let (flags, hash) = (["operator", "gate", "portal"], "a".repeat(64));
    let flags = flags.map(|user| format!("--{user}-password-hash={hash}"));
    let acl = operator(&["redis-acl"]).args(flags.iter().map(String::as_str));
    let (code, said) = run(acl).await?;
    assert_eq!(code, Some(0), "{said}");
    let users = said.lines().filter_map(|line| line.split(' ').nth(1));
    let users: Vec<&str> = users.collect();
    assert_eq!(users, ["water-operator", "water-gate", "water-portal"]);
    assert!(said.contains("~wd:{water.water-data}:*"), "{said}");
    Ok(())
}

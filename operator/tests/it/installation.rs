//! A WaterDataApi is rolled out in order, repaired and pruned. The test plays the Job and Deployment
//! controllers, which are not there.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_harness::Redis;
use water_kit::is_all_asked_for;

use crate::Result;
use crate::audit::passed;
use crate::gate::{Started, end_pod, pod};
use crate::steps::{NOTHING, OBJECT, becomes, holds, message, stalled, until};
use crate::world::{API, PATIENCE, World, api, brought};

/// Time at which a Job that the tests end began and ended.
const WHEN: &str = "2026-01-01T00:00:00Z";
const SERVICES: [&str; 2] = ["departements", "history"];
const PARTS: [&str; 3] = ["departements", "history", "gate"];

/// The Job of a version ended with this status.
async fn end_migration(world: &World, version: &str, ended: &Value) -> anyhow::Result<()> {
    let selector = format!("--selector=app.kubernetes.io/version={version}");
    let of_version = async || {
        let jobs = world.kubectl(&["get", "jobs", "--output=name", &selector])?;
        jobs.lines().next().map(str::to_owned).context("no Job")
    };
    let name = until(world, "the migration Job", of_version).await?;
    let status = json!({ "status": ended }).to_string();
    let patch = [
        "patch",
        &name,
        "--subresource=status",
        "--type=merge",
        "--patch",
        &status,
    ];
    world.kubectl(&patch).map(drop)
}

fn condition(kind: &str) -> Value {
    json!({ "type": kind, "status": "True", "lastTransitionTime": WHEN })
}

/// The Job of a version succeeded.
pub async fn migrate(world: &World, version: &str) -> anyhow::Result<()> {
    let ended = json!({
        "startTime": WHEN, "completionTime": WHEN, "succeeded": 1, "uncountedTerminatedPods": {},
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    });
    end_migration(world, version, &ended).await
}

/// Every pod of a Deployment runs its latest template, which is that of a version.
pub async fn roll(world: &World, part: &str, version: &str) -> anyhow::Result<()> {
    let name = format!("deployment/{API}-{part}");
    let live = until(world, &format!("{name} of {version}"), async || {
        let live = world.get(&name)?;
        let image = image(&live);
        ensure!(image.ends_with(&format!(":{version}")), "{image}");
        Ok(live)
    })
    .await?;
    let replicas = &live["spec"]["replicas"];
    let status = json!({ "status": {
        "observedGeneration": live["metadata"]["generation"], "replicas": replicas, "readyReplicas": replicas,
        "updatedReplicas": replicas, "availableReplicas": replicas,
    }});
    world.patch(&name, &status, &["--subresource=status"])
}

fn image(deployment: &Value) -> String {
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    container["image"].as_str().unwrap_or_default().to_owned()
}

/// Migrated, and every part rolled out.
pub async fn complete(world: &World, version: &str) -> anyhow::Result<Value> {
    migrate(world, version).await?;
    for part in PARTS {
        roll(world, part, version).await?;
    }
    world.condition(OBJECT, "Ready", "True/Complete").await
}

/// A world whose installation is complete.
async fn installed(namespace: &str) -> anyhow::Result<(World, impl Sized)> {
    let (world, operator) = World::running(namespace).await?;
    complete(&world, "1.2.3").await?;
    Ok((world, operator))
}

/// Whether an object is there.
pub fn exists(world: &World, object: &str) -> bool {
    world.kubectl(&["get", object]).is_ok()
}

#[tokio::test]
async fn each_step_waits_for_the_one_before() -> Result {
    let (world, _operator) = World::running("steps").await?;
    let migrating = "False/Migrating";
    world
        .condition(OBJECT, "MigrationsComplete", migrating)
        .await?;
    for groundwork in ["service/water-data-gate", "networkpolicy/water-data-gate"] {
        assert!(exists(&world, groundwork), "{groundwork}");
    }
    assert!(!exists(&world, "deployment/water-data-departements"));
    migrate(&world, "1.2.3").await?;
    world.condition(OBJECT, "Ready", "False/RollingOut").await?;
    assert!(exists(&world, "deployment/water-data-history"));
    assert!(!exists(&world, "deployment/water-data-gate"));
    for part in PARTS {
        assert!(!exists(&world, "ingress/water-data"));
        roll(&world, part, "1.2.3").await?;
    }
    let ready = world.condition(OBJECT, "Ready", "True/Complete").await?;
    assert_eq!(ready["status"]["version"], "1.2.3");
    assert!(exists(&world, "ingress/water-data"));
    let told = ["RolloutStarted", "MigrationsComplete", "RolloutComplete"];
    world.told(API, &told).await
}

#[tokio::test]
async fn fault_35_what_is_ours_is_repaired_and_what_others_added_stays() -> Result {
    let (world, _operator) = installed("repair").await?;
    let drift = json!({
        "metadata": { "labels": { "team": "edge" } },
        "spec": { "template": { "spec": { "enableServiceLinks": true } } },
    });
    world.patch("deployment/water-data-gate", &drift, &[])?;
    world.kubectl(&["delete", "service", "water-data-history"])?;
    let repaired = async || {
        let gate = world.get("deployment/water-data-gate")?;
        let pod = &gate["spec"]["template"]["spec"];
        ensure!(pod["enableServiceLinks"] == false, "{gate}");
        ensure!(gate["metadata"]["labels"]["team"] == "edge", "{gate}");
        world.get("service/water-data-history").map(drop)
    };
    // On a busy machine the next regular pass may be the one that repairs.
    let within = if is_all_asked_for() {
        Duration::from_secs(5)
    } else {
        PATIENCE
    };
    world.wait("the repair", within, repaired).await
}

#[tokio::test]
async fn fault_29_a_migration_that_fails_leaves_the_version_before_in_service_until_one_succeeds()
-> Result {
    let (world, _operator) = installed("upgrade").await?;
    let serves = |version: &str| {
        for part in PARTS {
            let live = world.get(&format!("deployment/{API}-{part}"))?;
            assert!(image(&live).ends_with(version), "{live}");
        }
        anyhow::Ok(world.get(OBJECT)?["status"].clone())
    };
    let mut next = api();
    next["spec"]["image"]["tag"] = "1.3.0".into();
    next["spec"]["podDisruptionBudget"] = "Disabled".into();
    world.apply(&next)?;
    world.condition(OBJECT, "Ready", "False/Migrating").await?;
    let between = serves("1.2.3")?;
    assert_eq!(between["version"], "1.2.3");
    assert_eq!(between["targetVersion"], "1.3.0");
    let failed = json!({
        "startTime": WHEN, "failed": 1, "uncountedTerminatedPods": {},
        "conditions": [condition("FailureTarget"), condition("Failed")],
    });
    end_migration(&world, "1.3.0", &failed).await?;
    world
        .condition(OBJECT, "Ready", "False/MigrationFailed")
        .await?;
    assert_eq!(serves("1.2.3")?["version"], "1.2.3");
    let job = "--selector=app.kubernetes.io/version=1.3.0";
    world.kubectl(&["delete", "job", job])?;
    world.condition(OBJECT, "Ready", "False/Migrating").await?;
    complete(&world, "1.3.0").await?;
    assert_eq!(serves("1.3.0")?["version"], "1.3.0");
    until(&world, "the old Job and the budgets to go", async || {
        let left = world.kubectl(&["get", "jobs,pdb", "--output=name"])?;
        ensure!(left.lines().count() == 1, "{left}");
        Ok(())
    })
    .await
}

/// Hash of the settings that a Deployment's pods were made with: other settings roll them.
fn config_hash(world: &World, part: &str) -> anyhow::Result<Value> {
    let deployment = world.get(&format!("deployment/{API}-{part}"))?;
    let template = &deployment["spec"]["template"]["metadata"]["annotations"];
    Ok(template["waterdata.dev/config-hash"].clone())
}

#[tokio::test]
async fn fault_27_a_rotated_credential_rolls_the_pods_that_use_it_and_no_others() -> Result {
    let (world, _operator) = installed("credential").await?;
    let hashes = || {
        let hashes = PARTS.map(|part| config_hash(&world, part));
        hashes.into_iter().collect::<anyhow::Result<Vec<Value>>>()
    };
    let before = hashes()?;
    let reader = json!({ "reader-url": "postgresql://water_reader:new@other/water" });
    world.patch("secret/postgres", &json!({ "stringData": reader }), &[])?;
    let rolled = until(&world, "the services' new templates", async || {
        let after = hashes()?;
        let changed = (0..2).all(|part| after[part] != before[part]);
        ensure!(changed, "{after:?} after {before:?}");
        Ok(after)
    })
    .await?;
    for part in SERVICES {
        roll(&world, part, "1.2.3").await?;
    }
    // It is the gate's turn.
    passed(&world).await?;
    world.condition(OBJECT, "Ready", "True/Complete").await?;
    assert_eq!(hashes()?, rolled);
    assert_eq!(rolled[2], before[2], "no gate uses it");
    let gate = json!({ "gate-url": "redis://other/" });
    world.patch("secret/redis", &json!({ "stringData": gate }), &[])?;
    let last = until(&world, "the gate's new template", async || {
        let after = hashes()?;
        ensure!(after[2] != rolled[2], "{after:?}");
        Ok(after)
    })
    .await?;
    assert_eq!(last[..2], rolled[..2], "no service uses it");
    Ok(())
}

/// The identity keys in their order, and the templates' hashes of a service and of the gate.
fn identity(world: &World) -> anyhow::Result<([Value; 2], [Value; 2])> {
    let data = world.get("secret/water-data-identity")?["data"].clone();
    let keys = [data["current"].clone(), data["next"].clone()];
    let hash = |part| config_hash(world, part);
    Ok((keys, [hash("history")?, hash("gate")?]))
}

#[tokio::test]
async fn identity_keys_are_rotated_without_a_moment_at_which_a_service_refuses_a_gate() -> Result {
    let (world, _operator) = installed("identity").await?;
    let (first, before) = identity(&world)?;
    let rotate = "waterdata.dev/rotate-identity=now";
    world.kubectl(&["annotate", "waterdataapi", API, rotate])?;
    let hashes = until(&world, "the keys to change places", async || {
        let (keys, hashes) = identity(&world)?;
        let swapped = keys[0] == first[1] && keys[1] == first[0];
        ensure!(swapped, "not in each other's place");
        ensure!(hashes[1] != before[1], "the gate still has {}", before[1]);
        Ok(hashes)
    })
    .await?;
    assert_eq!(hashes[0], before[0], "the services know both keys already");

    // A gate of the old template still signs with the old key, and ends last.
    pod(&world, "old-gate", true, Started::Before)?;
    let template = json!({ "waterdata.dev/config-hash": before[1] });
    let template = json!({ "metadata": { "annotations": template } });
    world.patch("pod/old-gate", &template, &[])?;
    roll(&world, "gate", "1.2.3").await?;
    world.condition(OBJECT, "Ready", "True/Complete").await?;
    passed(&world).await?;
    let kept = &identity(&world)?.0[1];
    assert_eq!(kept, &first[0], "the old key is still accepted");
    end_pod(&world, "old-gate")?;
    let last = until(&world, "the old key to go", async || {
        let (keys, hashes) = identity(&world)?;
        let renewed = keys[0] == first[1] && keys[1] != first[0];
        ensure!(renewed, "the old key is still there");
        ensure!(hashes[0] != before[0], "the services have {}", before[0]);
        Ok(hashes)
    })
    .await?;
    assert_eq!(last[1], hashes[1], "the gates sign with the same key");
    for part in SERVICES {
        roll(&world, part, "1.2.3").await?;
    }
    until(&world, "the rotation's events", async || {
        let events = world.events(API)?;
        let rotation = ["IdentityRotating".into(), "IdentityRotated".into()];
        ensure!(events.ends_with(&rotation), "{events:?}");
        Ok(())
    })
    .await?;
    world
        .condition(OBJECT, "Ready", "True/Complete")
        .await
        .map(drop)
}

#[tokio::test]
async fn a_step_of_a_rotation_waits_for_the_pods_of_every_part_that_were_made_before_the_last()
-> Result {
    let (world, _operator) = installed("identity-waits").await?;
    let (first, _) = identity(&world)?;
    let mut before = None;
    for part in ["departements", "history", "portal"] {
        let old = format!("old-{part}");
        pod(&world, &old, true, Started::Before)?;
        let of_part = json!({ "metadata": {
            "labels": { "app.kubernetes.io/name": format!("water-{part}") },
            "annotations": { "waterdata.dev/config-hash": "that of an earlier template" },
        } });
        world.patch(&format!("pod/{old}"), &of_part, &[])?;
        match before.replace(old) {
            Some(before) => end_pod(&world, &before)?,
            None => {
                let rotate = "waterdata.dev/rotate-identity=now";
                world.kubectl(&["annotate", "waterdataapi", API, rotate])?;
            }
        }
        passed(&world).await?;
        assert_eq!(identity(&world)?.0, first, "{part}");
    }
    end_pod(&world, "old-portal")?;
    until(&world, "the keys to change places", async || {
        let (keys, _) = identity(&world)?;
        let swapped = keys[0] == first[1] && keys[1] == first[0];
        ensure!(swapped, "not in each other's place");
        Ok(())
    })
    .await
}

/// A WaterDataApi whose rollouts are stopped.
pub fn paused() -> Value {
    let mut paused = api();
    paused["spec"]["paused"] = true.into();
    paused
}

#[tokio::test]
async fn a_paused_installation_is_not_touched_and_still_issues_keys() -> Result {
    let world = World::new("paused").await?;
    world.apply(&paused())?;
    let _operator = world.operator("operator-0")?;
    let paused = world.condition(OBJECT, "Ready", "True/Paused").await?;
    let version = &paused["status"]["version"];
    assert_eq!(*version, Value::Null, "nothing was rolled out");
    world.in_force(&brought("acme", '8')).await?;
    assert!(!exists(&world, "service/water-data-gate"));
    Ok(())
}

#[tokio::test]
async fn the_directorys_plans_follow_the_spec_and_keep_what_a_key_names() -> Result {
    let (world, _operator) = World::running("plans").await?;
    world.in_force(&brought("acme", '9')).await?;
    let mut edited = api();
    let gold = json!({ "name": "Gold", "access": "Allowed", "requestsPerMinute": 7, "requestsPerDay": 70 });
    edited["spec"]["plans"] = json!([gold]);
    world.apply(&edited)?;
    until(&world, "the plans", async || {
        let mut plans: Vec<String> = Vec::new();
        for plan in world.directory()?.plans().await? {
            let minute = plan.limits.map(|limits| limits.requests_per_minute.get());
            plans.push(format!("{} {minute:?}", plan.name));
        }
        plans.sort();
        let wanted = ["Enterprise Some(120)", "Gold Some(7)"];
        ensure!(plans == wanted, "{plans:?}");
        Ok(())
    })
    .await?;
    stalled(&world, "acme", "PlanUnknown").await?;
    holds(&world, &["999999999999 Enterprise Active"]).await
}

#[tokio::test]
async fn no_gate_is_made_for_a_directory_that_an_earlier_api_left_and_nobody_has_claimed() -> Result
{
    let redis = Redis::start().await?;
    let world = World::with_redis("unclaimed", &redis.url()).await?;
    world.apply(&paused())?;
    let operator = world.operator("operator-0")?;
    world.in_force(&brought("acme", 'e')).await?;
    operator.stop(PATIENCE).await?;
    // Both go without the operator, which could not revoke the key.
    let stripped = json!({ "metadata": { "finalizers": null } });
    world.patch("apikey/acme", &stripped, &[])?;
    world.kubectl(&["delete", "apikey/acme", OBJECT])?;

    redis.pause()?;
    world.apply(&api())?;
    let _next = world.operator("operator-1")?;
    migrate(&world, "1.2.3").await?;
    for part in SERVICES {
        roll(&world, part, "1.2.3").await?;
    }
    becomes(&world, OBJECT, "waiting to be claimed", |found| {
        message(found, "Reconciling").contains("once the key directory is claimed")
    })
    .await?;
    assert!(!exists(&world, "deployment/water-data-gate"));
    redis.resume()?;
    roll(&world, "gate", "1.2.3").await?;
    holds(&world, &NOTHING).await?;
    world
        .condition(OBJECT, "Ready", "True/Complete")
        .await
        .map(drop)
}

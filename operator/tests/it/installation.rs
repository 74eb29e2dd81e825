//! A WaterDataApi is rolled out in order, repaired and pruned. The test plays the Job and Deployment
//! controllers, which are not there.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_harness::Redis;

use crate::Result;
use crate::gate::{Started, end_pod, pod};
use crate::world::{API, PATIENCE, World, api, brought};

/// When a Job that the tests end began and ended.
const WHEN: &str = "2026-01-01T00:00:00Z";

/// The Job of a version ended with this status.
async fn end_migration(world: &World, version: &str, ended: &Value) -> anyhow::Result<()> {
    let selector = format!("--selector=app.kubernetes.io/version={version}");
    let of_version = async || {
        let jobs = world.kubectl(&["get", "jobs", "--output=name", &selector])?;
        jobs.lines().next().map(str::to_owned).context("no Job")
    };
    let name = world
        .wait("the migration Job", PATIENCE, of_version)
        .await?;
    let status = json!({ "status": ended });
    world.patch(&name, &status, &["--subresource=status"])
}

/// The Job of a version succeeded.
pub async fn migrate(world: &World, version: &str) -> anyhow::Result<()> {
    let ended = json!({
        "startTime": WHEN, "completionTime": WHEN, "succeeded": 1, "uncountedTerminatedPods": {},
        "conditions": [
            { "type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": WHEN },
            { "type": "Complete", "status": "True", "lastTransitionTime": WHEN },
        ],
    });
    end_migration(world, version, &ended).await
}

/// Every pod of a Deployment runs its latest template, which is that of a version.
pub async fn roll(world: &World, part: &str, version: &str) -> anyhow::Result<()> {
    let name = format!("deployment/{API}-{part}");
    let of_version = async || {
        let live = world.get(&name)?;
        let image = live["spec"]["template"]["spec"]["containers"][0]["image"].to_string();
        ensure!(image.contains(&format!(":{version}")), "{image}");
        Ok(live)
    };
    let live = world
        .wait(&format!("{name} of {version}"), PATIENCE, of_version)
        .await?;
    let replicas = &live["spec"]["replicas"];
    let status = json!({ "status": {
        "observedGeneration": live["metadata"]["generation"], "replicas": replicas, "readyReplicas": replicas,
        "updatedReplicas": replicas, "availableReplicas": replicas,
    }});
    world.patch(&name, &status, &["--subresource=status"])
}

/// Migrated, and every part rolled out.
pub async fn complete(world: &World, version: &str) -> anyhow::Result<Value> {
    migrate(world, version).await?;
    for part in ["departements", "history", "gate"] {
        roll(world, part, version).await?;
    }
    world
        .condition("waterdataapi/water-data", "Ready", "True/Complete")
        .await
}

/// Whether an object is there.
pub fn exists(world: &World, object: &str) -> bool {
    world.get(object).is_ok()
}

#[tokio::test]
async fn each_step_waits_for_the_one_before() -> Result {
    let (world, _operator) = World::running("steps").await?;
    world
        .condition(
            "waterdataapi/water-data",
            "MigrationsComplete",
            "False/Migrating",
        )
        .await?;
    assert!(
        exists(&world, "service/water-data-gate")
            && exists(&world, "networkpolicy/water-data-gate")
    );
    assert!(!exists(&world, "deployment/water-data-departements"));
    migrate(&world, "1.2.3").await?;
    world
        .condition("waterdataapi/water-data", "Ready", "False/RollingOut")
        .await?;
    assert!(
        exists(&world, "deployment/water-data-history")
            && !exists(&world, "deployment/water-data-gate")
    );
    for part in ["departements", "history", "gate"] {
        assert!(!exists(&world, "ingress/water-data"));
        roll(&world, part, "1.2.3").await?;
    }
    let ready = world
        .condition("waterdataapi/water-data", "Ready", "True/Complete")
        .await?;
    assert_eq!(ready["status"]["version"], "1.2.3");
    assert!(exists(&world, "ingress/water-data"));
    world
        .told(
            API,
            &["RolloutStarted", "MigrationsComplete", "RolloutComplete"],
        )
        .await?;
    Ok(())
}

#[tokio::test]
async fn what_is_ours_is_repaired_and_what_others_added_stays() -> Result {
    let (world, _operator) = World::running("repair").await?;
    complete(&world, "1.2.3").await?;
    let drift = json!({
        "metadata": { "labels": { "team": "edge" } },
        "spec": { "template": { "spec": { "enableServiceLinks": true } } },
    });
    world.patch("deployment/water-data-gate", &drift, &[])?;
    world.kubectl(&["delete", "service", "water-data-history"])?;
    let repaired = async || {
        let gate = world.get("deployment/water-data-gate")?;
        ensure!(
            gate["spec"]["template"]["spec"]["enableServiceLinks"] == false,
            "{gate}"
        );
        ensure!(gate["metadata"]["labels"]["team"] == "edge", "{gate}");
        world.get("service/water-data-history").map(drop)
    };
    world
        .wait("the repair", std::time::Duration::from_secs(5), repaired)
        .await
}

#[tokio::test]
async fn another_version_migrates_first_and_leaves_nothing_old_behind() -> Result {
    let (world, _operator) = World::running("upgrade").await?;
    complete(&world, "1.2.3").await?;
    let mut next = api();
    next["spec"]["image"]["tag"] = "1.3.0".into();
    next["spec"]["podDisruptionBudget"] = "Disabled".into();
    world.apply(&next)?;
    world
        .condition("waterdataapi/water-data", "Ready", "False/Migrating")
        .await?;
    let gate = world.get("deployment/water-data-gate")?;
    assert_eq!(
        gate["spec"]["template"]["spec"]["containers"][0]["image"],
        "registry.example/water/water-gate:1.2.3"
    );
    let between = world.get("waterdataapi/water-data")?;
    assert_eq!(between["status"]["version"], "1.2.3");
    assert_eq!(between["status"]["targetVersion"], "1.3.0");
    let done = complete(&world, "1.3.0").await?;
    assert_eq!(done["status"]["version"], "1.3.0");
    let pruned = async || {
        let left = world.kubectl(&["get", "jobs,pdb", "--output=name"])?;
        ensure!(left.lines().count() == 1, "{left}");
        Ok(())
    };
    world
        .wait("the old Job and the budgets to go", PATIENCE, pruned)
        .await
}

#[tokio::test]
async fn a_migration_that_fails_leaves_the_version_before_in_service() -> Result {
    let (world, _operator) = World::running("failed-migration").await?;
    complete(&world, "1.2.3").await?;
    let images = || {
        let deployments = ["departements", "history", "gate"].map(|part| {
            let live = world.get(&format!("deployment/{API}-{part}"))?;
            anyhow::Ok(live["spec"]["template"]["spec"]["containers"][0]["image"].clone())
        });
        deployments.into_iter().collect::<anyhow::Result<Vec<_>>>()
    };
    let before = images()?;
    let mut next = api();
    next["spec"]["image"]["tag"] = "1.3.0".into();
    world.apply(&next)?;
    let failed = json!({
        "startTime": WHEN, "failed": 1, "uncountedTerminatedPods": {},
        "conditions": [
            { "type": "FailureTarget", "status": "True", "lastTransitionTime": WHEN },
            { "type": "Failed", "status": "True", "lastTransitionTime": WHEN },
        ],
    });
    end_migration(&world, "1.3.0", &failed).await?;
    world
        .condition("waterdataapi/water-data", "Ready", "False/MigrationFailed")
        .await?;
    let after = world.get("waterdataapi/water-data")?;
    assert_eq!(after["status"]["version"], "1.2.3");
    assert_eq!(images()?, before);
    Ok(())
}

#[tokio::test]
async fn a_rotated_credential_rolls_the_pods_that_use_it() -> Result {
    let (world, _operator) = World::running("credential").await?;
    complete(&world, "1.2.3").await?;
    let hash = |part| config_hash(&world, part);
    let (gate, history) = (hash("gate")?, hash("history")?);
    world.patch(
        "secret/redis",
        &json!({ "stringData": { "gate-url": "redis://other/" } }),
        &[],
    )?;
    let rolled = async || {
        ensure!(hash("gate")? != gate, "the gate still has {gate}");
        Ok(())
    };
    world
        .wait("the gate's new template", PATIENCE, rolled)
        .await?;
    assert_eq!(hash("history")?, history);
    Ok(())
}

#[tokio::test]
async fn the_readers_new_password_rolls_the_services_and_not_the_gate() -> Result {
    let (world, _operator) = World::running("reader-password").await?;
    complete(&world, "1.2.3").await?;
    let hash = |part| config_hash(&world, part);
    let before = [hash("departements")?, hash("history")?];
    let gate = hash("gate")?;
    let new =
        json!({ "stringData": { "reader-url": "postgresql://water_reader:new@other/water" } });
    world.patch("secret/postgres", &new, &[])?;
    let rolled = async || {
        let after = [hash("departements")?, hash("history")?];
        let changed = (0..2).all(|part| after[part] != before[part]);
        ensure!(changed, "{after:?} after {before:?}");
        Ok(())
    };
    world
        .wait("the services' new templates", PATIENCE, rolled)
        .await?;
    for part in ["departements", "history"] {
        roll(&world, part, "1.2.3").await?;
    }
    world
        .condition("waterdataapi/water-data", "Ready", "True/Complete")
        .await?;
    assert_eq!(hash("gate")?, gate);
    Ok(())
}

/// What of its settings a Deployment's pods were made with: other settings roll them.
fn config_hash(world: &World, part: &str) -> anyhow::Result<Value> {
    let deployment = world.get(&format!("deployment/{API}-{part}"))?;
    let template = &deployment["spec"]["template"]["metadata"]["annotations"];
    Ok(template["waterdata.dev/config-hash"].clone())
}

/// The identity keys in their order, and the templates' hashes of a service and of the gate.
fn identity(world: &World) -> anyhow::Result<([Value; 2], [Value; 2])> {
    let data = world.get("secret/water-data-identity")?["data"].clone();
    let hash = |part| config_hash(world, part);
    let keys = [data["current"].clone(), data["next"].clone()];
    Ok((keys, [hash("history")?, hash("gate")?]))
}

#[tokio::test]
async fn identity_keys_are_rotated_without_a_moment_at_which_a_service_refuses_a_gate() -> Result {
    let (world, _operator) = World::running("identity").await?;
    complete(&world, "1.2.3").await?;
    let (first, before) = identity(&world)?;
    world.kubectl(&[
        "annotate",
        "waterdataapi",
        API,
        "waterdata.dev/rotate-identity=now",
    ])?;
    let swapped = async || {
        let (keys, hashes) = identity(&world)?;
        ensure!(
            keys[0] == first[1] && keys[1] == first[0],
            "not in each other's place"
        );
        ensure!(hashes[1] != before[1], "the gate still has {}", before[1]);
        Ok(hashes)
    };
    let hashes = world
        .wait("the keys to change places", PATIENCE, swapped)
        .await?;
    assert_eq!(hashes[0], before[0], "the services know both keys already");

    // A gate of the old template still signs with the old key, and ends last.
    let draining = gate_of_template(&world, &before[1])?;
    roll(&world, "gate", "1.2.3").await?;
    world
        .condition("waterdataapi/water-data", "Ready", "True/Complete")
        .await?;
    world.kubectl(&["annotate", "waterdataapi", API, "looked-at=again"])?;
    assert_eq!(
        identity(&world)?.0[1],
        first[0],
        "the old key is still accepted"
    );
    end_pod(&world, &draining)?;
    let renewed = async || {
        let (keys, hashes) = identity(&world)?;
        ensure!(
            keys[0] == first[1] && keys[1] != first[0],
            "the old key is still there"
        );
        ensure!(
            hashes[0] != before[0],
            "the services still have {}",
            before[0]
        );
        Ok(hashes)
    };
    let last = world.wait("the old key to go", PATIENCE, renewed).await?;
    assert_eq!(last[1], hashes[1], "the gates sign with the same key");
    for part in ["departements", "history"] {
        roll(&world, part, "1.2.3").await?;
    }
    world
        .condition("waterdataapi/water-data", "Ready", "True/Complete")
        .await?;
    let told = async || {
        let events = world.events(API)?;
        let rotation = ["IdentityRotating".into(), "IdentityRotated".into()];
        ensure!(events.ends_with(&rotation), "{events:?}");
        Ok(())
    };
    world.wait("the rotation's events", PATIENCE, told).await
}

/// A gate's pod that was made of the template with that hash.
fn gate_of_template(world: &World, hash: &Value) -> anyhow::Result<String> {
    pod(world, "old-gate", true, Started::Before)?;
    let annotations =
        json!({ "metadata": { "annotations": { "waterdata.dev/config-hash": hash } } });
    world.patch("pod/old-gate", &annotations, &[])?;
    Ok("old-gate".into())
}

#[tokio::test]
async fn a_paused_installation_is_not_touched_and_still_issues_keys() -> Result {
    let world = World::new("paused").await?;
    let mut paused = api();
    paused["spec"]["paused"] = true.into();
    world.apply(&paused)?;
    let _operator = world.operator("operator-0")?;
    world
        .condition("waterdataapi/water-data", "Ready", "True/Paused")
        .await?;
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
    let followed = async || {
        let mut plans: Vec<String> = Vec::new();
        for plan in world.directory()?.plans().await? {
            let minute = plan.limits.map(|limits| limits.requests_per_minute.get());
            plans.push(format!("{} {minute:?}", plan.name));
        }
        plans.sort();
        ensure!(
            plans == ["Enterprise Some(120)", "Gold Some(7)"],
            "{plans:?}"
        );
        Ok(())
    };
    world.wait("the plans", PATIENCE, followed).await?;
    world
        .condition("apikey/acme", "Stalled", "True/PlanUnknown")
        .await?;
    assert_eq!(world.published().await?, ["999999999999 Enterprise Active"]);
    Ok(())
}

#[tokio::test]
async fn a_restart_beside_a_complete_installation_writes_nothing() -> Result {
    let world = World::new("complete-restart").await?;
    let mut declared = api();
    // The API server leaves such a zero out, and keeps these quantities as 500m, 1Gi and 3G.
    declared["spec"]["rollout"] = json!({ "minReadySeconds": 0 });
    declared["spec"]["components"]["gate"]["resources"] = json!({
        "requests": { "cpu": "0.5", "memory": "1024Mi" }, "limits": { "memory": "3000000000" },
    });
    world.apply(&declared)?;
    let operator = world.operator("operator-0")?;
    complete(&world, "1.2.3").await?;
    world.assert_restart_writes_nothing(&operator).await
}

#[tokio::test]
async fn no_gate_is_made_for_a_directory_that_an_earlier_api_left_and_nobody_has_claimed() -> Result
{
    let redis = Redis::start().await?;
    let world = World::with_redis("unclaimed", &redis.url()).await?;
    let mut earlier = api();
    earlier["spec"]["paused"] = true.into();
    world.apply(&earlier)?;
    let operator = world.operator("operator-0")?;
    world.in_force(&brought("acme", 'e')).await?;
    operator.stop(PATIENCE).await?;
    // Both go without the operator, which could not revoke the key.
    let stripped = json!({ "metadata": { "finalizers": null } });
    world.patch("apikey/acme", &stripped, &[])?;
    world.kubectl(&["delete", "apikey/acme", &format!("waterdataapi/{API}")])?;

    redis.pause()?;
    world.apply(&api())?;
    let _next = world.operator("operator-1")?;
    migrate(&world, "1.2.3").await?;
    for part in ["departements", "history"] {
        roll(&world, part, "1.2.3").await?;
    }
    let waits = async || {
        let status = world.get("waterdataapi/water-data")?["status"].to_string();
        ensure!(
            status.contains("once the key directory is claimed"),
            "{status}"
        );
        Ok(())
    };
    world.wait("the gate to be held", PATIENCE, waits).await?;
    assert!(!exists(&world, "deployment/water-data-gate"));
    redis.resume()?;
    roll(&world, "gate", "1.2.3").await?;
    assert!(world.published().await?.is_empty());
    world
        .condition("waterdataapi/water-data", "Ready", "True/Complete")
        .await?;
    Ok(())
}

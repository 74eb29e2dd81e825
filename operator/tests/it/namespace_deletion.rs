//! Tests of an operator that is asked to stop because its namespace is being deleted. Kubernetes deletes the pods first
//! (KEP-5080); the tests stop their processes, as a kubelet does. Most run without the controller that deletes the
//! rest, and check what the operator leaves.

mod long;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use water_harness::Process;
use water_keystore::Origin;
use water_operator::release::ending::WITHIN;

use crate::Result;
use crate::gate::{GRACE, Gate, end_pod};
use crate::rights::{ACCOUNT, rendered};
use crate::steps::{NOTHING, becomes, given_back, holds, logs, stalled, until};
use crate::world::{PATIENCE, World, api, brought, key};

/// The longest that a stopped operator may take.
const STOPPED: Duration = WITHIN.saturating_add(PATIENCE);
/// Finalizers of two ApiKeys that are not released.
const BOTH: &str = "waterdata.dev/revoke waterdata.dev/revoke";

/// Deletes the namespace: the part of `kubectl delete namespace` that the API server does.
fn delete_namespace(world: &World) -> Result {
    let delete = ["delete", "namespace", &world.namespace, "--wait=false"];
    world.cluster.kubectl(&delete).map(drop)
}

fn finalizers(world: &World) -> anyhow::Result<String> {
    let all = "--output=jsonpath={.items[*].metadata.finalizers[*]}";
    world.kubectl(&["get", "apikeys", all])
}

async fn ends(operator: &Process) -> Result {
    let status = operator.ended(STOPPED).await?;
    ensure!(status.success(), "{status}: {}", operator.log_end());
    Ok(())
}

/// Two keys in force, a generated and a brought one.
async fn with_keys(namespace: &str) -> anyhow::Result<(World, Arc<Process>)> {
    let (world, operator) = World::running(namespace).await?;
    world.in_force(&key("acme")).await?;
    world.in_force(&brought("partner", 'a')).await?;
    Ok((world, operator))
}

#[tokio::test]
async fn a_stopping_operator_keeps_all_in_a_namespace_that_stays() -> Result {
    let (world, operator) = with_keys("stopped-not-deleted").await?;
    let published = world.published().await?;
    operator.stop(PATIENCE).await?;
    assert_eq!(finalizers(&world)?, BOTH);
    assert_eq!(world.published().await?, published);
    Ok(())
}

#[tokio::test]
async fn without_redis_the_api_keys_of_a_deleted_namespace_go_when_its_gates_have_ended() -> Result
{
    let (redis, world, operator) = World::on_own_redis("deleted-without-redis").await?;
    world.in_force(&key("acme")).await?;
    let mut unplanned = key("unplanned");
    unplanned["spec"]["plan"] = "Typo".into();
    world.apply(&unplanned)?;
    stalled(&world, "unplanned", "PlanUnknown").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    redis.kill()?;
    delete_namespace(&world)?;
    operator.signal(Signal::SIGTERM)?;
    logs(&world, &operator, "may accept keys").await?;
    until(&world, "the one that never had a key to go", async || {
        let finalizers = finalizers(&world)?;
        ensure!(finalizers == "waterdata.dev/revoke", "{finalizers}");
        Ok(())
    })
    .await?;
    end_pod(&world, &gate.name)?;
    ends(&operator).await?;
    assert_eq!(finalizers(&world)?, "", "{}", operator.log_end());
    Ok(())
}

#[tokio::test]
async fn of_the_operators_of_a_deleted_namespace_a_standby_acts_if_the_leader_is_dead() -> Result {
    let (world, leader) = with_keys("deleted-dead-leader").await?;
    let standby = world.operator("operator-1")?;
    logs(&world, &standby, "the watches have told of everything").await?;
    leader.kill()?;
    delete_namespace(&world)?;
    standby.signal(Signal::SIGTERM)?;
    ends(&standby).await?;
    assert_eq!(finalizers(&world)?, "", "{}", standby.log_end());
    holds(&world, &NOTHING).await
}

#[tokio::test]
async fn kubernetes_deletes_a_whole_namespace_whose_operators_were_asked_to_stop() -> Result {
    let world = World::alone("deleted-whole").await?;
    let _controller = world.cluster.start_namespace_controller()?;
    world.apply(&api())?;
    let pods = ["operator-0", "operator-1"];
    let [leader, standby] = pods.map(|pod| {
        // It is on a node that the test plays.
        world.apply(&json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": pod },
            "spec": {
                "nodeName": "nowhere",
                "serviceAccountName": ACCOUNT,
                "automountServiceAccountToken": false,
                "containers": [{ "name": "operator", "image": "registry.example/water/water-operator:1.2.3" }],
            },
        }))?;
        world.operator(pod)
    });
    let (leader, standby) = (leader?, standby?);
    let acme = world.in_force(&key("acme")).await?;
    let uid = acme["metadata"]["uid"].as_str().context("a uid")?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    delete_namespace(&world)?;
    for pod in pods {
        let is_to_end = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
        becomes(&world, &format!("pod/{pod}"), "ending", is_to_end).await?;
    }
    leader.signal(Signal::SIGTERM)?;
    standby.signal(Signal::SIGTERM)?;
    ends(&leader).await?;
    ends(&standby).await?;
    assert_eq!(finalizers(&world)?, "", "{}", leader.log_end());
    assert_eq!(gate.keys(), 0);
    holds(&world, &NOTHING).await?;
    let directory = world.directory()?;
    let snapshot = directory.owner_snapshot(uid, &Origin::Generated, &[]);
    assert!(snapshot.await?.is_gone, "revoked for good");
    given_back(&world, &world.logs())?;
    for pod in ["operator-0", "operator-1", &gate.name] {
        end_pod(&world, pod)?;
    }
    world.gone(&format!("namespace/{}", world.namespace)).await
}

#[test]
fn the_charts_pod_lives_ten_seconds_longer_than_an_operator_takes_to_stop() -> Result {
    let operator = rendered("water", Some("templates/operator.yaml"), &[])?;
    let grace = format!("terminationGracePeriodSeconds: {}\n", WITHIN.as_secs() + 10);
    assert!(operator.contains(&grace), "{operator}");
    Ok(())
}

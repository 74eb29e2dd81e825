//! An operator that is asked to stop because its namespace is being deleted. Kubernetes deletes the
//! pods first (KEP-5080); the tests stop their processes, as a kubelet does. Most run without the
//! controller that deletes the rest, and look at what the operator leaves.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use serde_json::json;
use water_harness::Process;
use water_keystore::Origin;
use water_operator::release::ending::WITHIN;

use crate::Result;
use crate::gate::{GRACE, Gate, end_pod};
use crate::rights::{ACCOUNT, rendered};
use crate::world::{PATIENCE, World, api, brought, key};

/// The longest that a stopped operator may take.
const STOPPED: Duration = WITHIN.saturating_add(PATIENCE);

/// `kubectl delete namespace`, as far as the API server does it.
fn delete_namespace(world: &World) -> Result {
    let delete = ["delete", "namespace", &world.namespace, "--wait=false"];
    world.cluster.kubectl(&delete).map(drop)
}

fn finalizers(world: &World) -> anyhow::Result<String> {
    world.kubectl(&[
        "get",
        "apikeys",
        "--output=jsonpath={.items[*].metadata.finalizers[*]}",
    ])
}

async fn says(world: &World, operator: &Process, text: &str) -> Result {
    let said = async || {
        let log = operator.log();
        ensure!(log.contains(text), "{log}");
        Ok(())
    };
    world.wait(text, PATIENCE, said).await
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
async fn a_stopping_operator_revokes_the_keys_of_its_deleted_namespace_and_lets_the_api_keys_go()
-> Result {
    let (world, operator) = with_keys("deleted-namespace").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    assert_eq!(gate.keys(), 2);
    let acme = world.get("apikey/acme")?;
    let uid = acme["metadata"]["uid"].as_str().context("a uid")?;
    delete_namespace(&world)?;
    operator.stop(PATIENCE).await?;
    assert_eq!(finalizers(&world)?, "", "{}", operator.log_end());
    assert_eq!(gate.keys(), 0, "before it ended");
    assert_eq!(world.published().await?, Vec::<String>::new());
    let sight = world.directory()?;
    let sight = sight.owner_snapshot(uid, &Origin::Generated, &[]).await?;
    assert!(sight.is_gone, "revoked for good");
    let lease = world.get("lease/water-operator")?;
    assert_eq!(lease["spec"]["holderIdentity"], "");
    Ok(())
}

#[tokio::test]
async fn a_stopping_operator_keeps_all_in_a_namespace_that_stays() -> Result {
    let (world, operator) = with_keys("kept-namespace").await?;
    let published = world.published().await?;
    operator.stop(PATIENCE).await?;
    let both = "waterdata.dev/revoke waterdata.dev/revoke";
    assert_eq!(finalizers(&world)?, both);
    assert_eq!(world.published().await?, published);
    Ok(())
}

#[tokio::test]
async fn no_api_key_of_a_deleted_namespace_goes_while_a_gate_may_accept_its_key() -> Result {
    let (world, operator) = with_keys("deleted-silent-gate").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    gate.fall_silent();
    delete_namespace(&world)?;
    operator.signal(Signal::SIGTERM)?;
    ends(&operator).await?;
    assert!(
        operator
            .log()
            .contains("run `water-operator release --all`"),
        "{}",
        operator.log_end()
    );
    let both = "waterdata.dev/revoke waterdata.dev/revoke";
    assert_eq!(finalizers(&world)?, both);
    Ok(())
}

#[tokio::test]
async fn without_redis_the_api_keys_of_a_deleted_namespace_go_when_its_gates_have_ended() -> Result
{
    let (redis, world, operator) = World::on_own_redis("deleted-without-redis").await?;
    world.in_force(&key("acme")).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    redis.kill()?;
    delete_namespace(&world)?;
    operator.signal(Signal::SIGTERM)?;
    says(&world, &operator, "may accept keys").await?;
    assert_eq!(finalizers(&world)?, "waterdata.dev/revoke");
    end_pod(&world, &gate.name)?;
    ends(&operator).await?;
    assert_eq!(finalizers(&world)?, "", "{}", operator.log_end());
    Ok(())
}

#[tokio::test]
async fn of_the_operators_of_a_deleted_namespace_a_standby_acts_if_the_leader_is_dead() -> Result {
    let (world, leader) = with_keys("deleted-dead-leader").await?;
    let standby = world.operator("operator-1")?;
    says(&world, &standby, "the watches have told of everything").await?;
    leader.kill()?;
    delete_namespace(&world)?;
    standby.signal(Signal::SIGTERM)?;
    ends(&standby).await?;
    assert_eq!(finalizers(&world)?, "", "{}", standby.log_end());
    assert_eq!(world.published().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn all_operators_of_a_deleted_namespace_stop_at_once_and_end() -> Result {
    let (world, leader) = with_keys("deleted-all-operators").await?;
    let standby = world.operator("operator-1")?;
    says(&world, &standby, "the watches have told of everything").await?;
    delete_namespace(&world)?;
    leader.signal(Signal::SIGTERM)?;
    standby.signal(Signal::SIGTERM)?;
    ends(&leader).await?;
    ends(&standby).await?;
    assert_eq!(finalizers(&world)?, "", "{}", leader.log_end());
    assert_eq!(world.published().await?, Vec::<String>::new());
    Ok(())
}

/// The pod of an operator, on a node that the test plays.
fn operator_pod(world: &World, name: &str) -> Result {
    world.apply(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": {
            "nodeName": "nowhere",
            "serviceAccountName": ACCOUNT,
            "automountServiceAccountToken": false,
            "containers": [{ "name": "operator", "image": "registry.example/water/water-operator:1.2.3" }],
        },
    }))
}

/// Waits until Kubernetes wants a pod to end.
async fn is_to_end(world: &World, pod: &str) -> Result {
    let asked = async || {
        let pod = world.get(&format!("pod/{pod}"))?;
        let deleted = &pod["metadata"]["deletionTimestamp"];
        ensure!(deleted.is_string(), "{}", pod["metadata"]);
        Ok(())
    };
    world.wait("the end of the pods", PATIENCE, asked).await
}

#[tokio::test]
async fn kubernetes_deletes_a_whole_namespace_whose_operator_was_asked_to_stop() -> Result {
    let world = World::alone("deleted-whole").await?;
    let _controller = world.cluster.start_namespace_controller()?;
    world.apply(&api())?;
    let operator = world.operator("operator-0")?;
    operator_pod(&world, "operator-0")?;
    world.in_force(&key("acme")).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    delete_namespace(&world)?;
    is_to_end(&world, "operator-0").await?;
    operator.stop(PATIENCE).await?;
    assert_eq!(gate.keys(), 0);
    for pod in ["operator-0", &gate.name] {
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

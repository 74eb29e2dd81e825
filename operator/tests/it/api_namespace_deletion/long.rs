//! Ends that wait for a Redis to count as gone, for a watch to be begun again, or for Kubernetes' own controller.

use serde_json::Value;
use water_harness::Redis;

use super::{APIS, NAMES, Namespaces, of_apis, reported};
use crate::Result;
use crate::gate::{GRACE, Gate, end_pod};
use crate::steps::{OBJECT, becomes, delete, event, logs};
use crate::world::brought;

#[tokio::test]
async fn without_redis_a_leader_that_stays_lets_the_keys_of_a_gone_api_go() -> Result {
    let (namespaces, operator) = Namespaces::with_keys(Redis::start().await?).await?;
    namespaces.redis.kill()?;
    namespaces.delete_with_rights().await?;
    namespaces.apis.kubectl(&["delete", OBJECT])?;
    namespaces.keys_go().await?;
    reported(&namespaces.operators, &operator, "KeyNotRevoked", &NAMES).await?;
    event(&namespaces.tenant, "customer", "KeyNotRevoked").await
}

#[tokio::test]
async fn a_pod_that_ends_while_nobody_may_watch_it_counts_until_its_namespace_is_gone() -> Result {
    let namespaces = Namespaces::new(Redis::start().await?).await?;
    let Namespaces {
        redis,
        operators,
        apis,
        tenant,
    } = &namespaces;
    let operator = operators.operator("operator-0")?;
    let gate = Gate::start(apis, "gate-0", GRACE).await?;
    tenant.in_force(&of_apis(brought("customer", 'b'))).await?;
    namespaces.delete_with_rights().await?;
    redis.kill()?;
    apis.kubectl(&["delete", OBJECT])?;
    delete(tenant, "customer")?;
    let waits = |found: &Value| found["status"]["waitingFor"][0] == "gate-0";
    becomes(tenant, "apikey/customer", "waiting for the gate", waits).await?;
    // A watch lasts for a minute.
    logs(operators, &operator, "pods is forbidden").await?;
    gate.fall_silent();
    end_pod(apis, "gate-0")?;
    let _controller = operators.cluster.start_namespace_controller()?;
    apis.gone(&format!("namespace/{APIS}")).await?;
    tenant.gone("apikey/customer").await?;
    event(tenant, "customer", "KeyNotRevoked").await
}

#[tokio::test]
async fn kubernetes_deletes_a_whole_namespace_with_its_water_data_api() -> Result {
    let (namespaces, operator) = Namespaces::with_keys(Redis::start().await?).await?;
    let Namespaces {
        operators,
        apis,
        tenant,
        ..
    } = &namespaces;
    let _controller = operators.cluster.start_namespace_controller()?;
    let gate = Gate::start(apis, "gate-0", GRACE).await?;
    let whole = ["delete", "namespace", APIS, "--wait=false"];
    operators.cluster.kubectl(&whole)?;
    gate.fall_silent();
    end_pod(apis, "gate-0")?;
    apis.gone(&format!("namespace/{APIS}")).await?;
    reported(operators, &operator, "KeyRevoked", &["acme", "partner"]).await?;
    // Its WaterDataApi's namespace is gone.
    delete(tenant, "customer")?;
    tenant.gone("apikey/customer").await
}

//! The end of a namespace of `rbac.apiNamespaces`, whose WaterDataApi an operator of another namespace looks after.
//! The right to list its pods is a RoleBinding in it, which goes with everything else. Most tests run without the
//! controller that deletes the rest, and delete that RoleBinding first.

mod long;

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use water_harness::{Clock, Process, Redis};
use water_kit::is_all_asked_for;

use crate::Result;
use crate::gate::{GRACE, Gate, end_pod};
use crate::rights::ACCOUNT;
use crate::steps::{NOTHING, OBJECT, delete, event, holds, logs, one_leadership, until};
use crate::world::{API, PATIENCE, World, api, brought, key};

/// The longest that an ApiKey may keep its namespace, where nothing else runs.
const GOES_WITHIN: Duration = Duration::from_secs(60);
/// Namespace of the WaterDataApi.
const APIS: &str = "apis";
/// A namespace that stays, without rights in it.
const TENANT: &str = "tenant";

/// Beginning of the names of gates' pods.
const GATE: &str = "gate-";

/// Names of all ApiKeys.
const NAMES: [&str; 3] = ["acme", "partner", "customer"];

/// An operator's namespace, that of its WaterDataApi, and one with an ApiKey of that WaterDataApi.
struct Namespaces {
    redis: Redis,
    operators: World,
    apis: World,
    tenant: World,
}

impl Namespaces {
    async fn new(redis: Redis) -> anyhow::Result<Self> {
        let operators = World::of_all_namespaces_on("operators", &redis.url(), &[APIS]).await?;
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": TENANT } });
        operators.cluster.apply(&namespace.to_string())?;
        let (apis, tenant) = (operators.beside(APIS)?, operators.beside(TENANT)?);
        let mut api = api();
        api["spec"]["apiKeys"]["allowedNamespaces"] = json!({ "from": "All" });
        apis.apply(&api)?;
        // Pods of gates name it.
        apis.apply(&json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": ACCOUNT },
        }))?;
        Ok(Self {
            redis,
            operators,
            apis,
            tenant,
        })
    }

    /// Creates the namespaces with an operator, and with a generated, a brought and a tenant's key in force.
    async fn with_keys(redis: Redis) -> anyhow::Result<(Self, Arc<Process>)> {
        let namespaces = Self::new(redis).await?;
        let operator = namespaces.operators.operator("operator-0")?;
        namespaces.apis.in_force(&key("acme")).await?;
        namespaces.apis.in_force(&brought("partner", 'a')).await?;
        namespaces
            .tenant
            .in_force(&of_apis(brought("customer", 'b')))
            .await?;
        Ok((namespaces, operator))
    }

    /// Deletes the namespace of the WaterDataApi, the part of it that the API server does, and the RoleBinding in it.
    async fn delete_with_rights(&self) -> Result {
        let namespace = ["delete", "namespace", APIS, "--wait=false"];
        self.operators.cluster.kubectl(&namespace)?;
        let binding = format!("rolebinding/{}-{ACCOUNT}", self.operators.namespace);
        self.apis.objects.delete(&binding)?;
        let user = format!(
            "--as=system:serviceaccount:{}:{ACCOUNT}",
            self.operators.namespace
        );
        until(&self.operators, "the end of the right", async || {
            // kubectl fails where the answer is no.
            let answer = self.apis.kubectl(&["auth", "can-i", "list", "pods", &user]);
            ensure!(answer.is_err(), "{answer:?}");
            Ok(())
        })
        .await
    }

    /// Deletes the ApiKeys; they go, and none waits for anything but a gate's pod. A gate that nobody sees would be
    /// waited for until it cannot serve any more, which is 130 s in all.
    async fn keys_go(&self) -> Result {
        for name in ["acme", "partner"] {
            delete(&self.apis, name)?;
        }
        delete(&self.tenant, "customer")?;
        let left = async || {
            let mut left = self.apis.objects.list("apikey", "")?;
            left.extend(self.tenant.objects.list("apikey", "")?);
            if let Some(waiting) = left.iter().find(|key| waits_for_another(key)) {
                return Ok(Some(waiting.clone()));
            }
            ensure!(left.is_empty(), "{left:?}");
            Ok(None)
        };
        let within = if is_all_asked_for() {
            GOES_WITHIN
        } else {
            PATIENCE
        };
        let what = "the end of all ApiKeys";
        let waiting = self.operators.wait(what, within, left).await?;
        ensure!(waiting.is_none(), "{waiting:?}");
        Ok(())
    }
}

impl Borrow<World> for Namespaces {
    fn borrow(&self) -> &World {
        &self.operators
    }
}

/// Whether an ApiKey waits for something that is no gate's pod.
fn waits_for_another(key: &Value) -> bool {
    let mut awaited = key["status"]["waitingFor"].as_array().into_iter().flatten();
    awaited.any(|name| name.as_str().is_none_or(|name| !name.starts_with(GATE)))
}

/// An ApiKey of another namespace than its WaterDataApi.
fn of_apis(mut key: Value) -> Value {
    key["spec"]["apiRef"] = json!({ "name": API, "namespace": APIS });
    key
}

/// Waits until an operator's log has an event of that reason about each of these ApiKeys. A namespace that is being
/// deleted takes no event.
async fn reported(world: &World, operator: &Process, reason: &str, names: &[&str]) -> Result {
    until(world, reason, async || {
        for name in names {
            let is_it = |line: &str| {
                let line: Value = serde_json::from_str(line).unwrap_or_default();
                line["reason"] == reason && line["name"] == *name
            };
            ensure!(
                operator.log().lines().any(is_it),
                "{name}: {}",
                operator.log_end()
            );
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_leader_that_stays_revokes_by_the_last_word_of_its_watch() -> Result {
    // Each has an API server of its own.
    let start = async |_: &str| Namespaces::with_keys(Redis::start().await?).await;
    // The next leader has not seen the pods.
    one_leadership("operators", start, async |namespaces, operator| {
        let Namespaces {
            operators, apis, ..
        } = namespaces;
        let ended = Gate::start(apis, "gate-0", GRACE).await?;
        let running = Gate::start(apis, "gate-1", GRACE).await?;
        apis.in_force(&brought("later", 'c')).await?;
        delete(apis, "later")?;
        apis.gone("apikey/later").await?;
        // Killed: it has not given its lease back, and nobody renews it.
        ended.fall_silent();
        end_pod(apis, "gate-0")?;
        namespaces.delete_with_rights().await?;
        apis.kubectl(&["delete", OBJECT])?;
        namespaces.keys_go().await?;
        assert_eq!(running.keys(), 0);
        holds(apis, &NOTHING).await?;
        reported(operators, operator, "KeyRevoked", &NAMES).await?;
        event(&namespaces.tenant, "customer", "KeyRevoked").await
    })
    .await
}

#[tokio::test]
async fn a_new_leader_revokes_by_the_leases_alone() -> Result {
    let clock = Clock::new()?;
    let redis = Redis::start_on(&clock).await?;
    let (namespaces, former) = Namespaces::with_keys(redis).await?;
    let Namespaces {
        operators, apis, ..
    } = &namespaces;
    former.kill()?;
    namespaces.delete_with_rights().await?;
    // A gate that lost its lease in the directory's first rebuild would have stopped by now.
    clock.set(2 * 60 + 10)?;
    let claimed = async || anyhow::Ok(apis.observe().await?.meta.map(|meta| meta.term));
    let before = claimed().await?;
    let leader = operators.operator("operator-0")?;
    until(operators, "the new leader's claim", async || {
        let now = claimed().await?;
        ensure!(now > before, "{now:?}");
        Ok(())
    })
    .await?;
    apis.kubectl(&["delete", OBJECT])?;
    namespaces.keys_go().await?;
    holds(apis, &NOTHING).await?;
    reported(operators, &leader, "KeyRevoked", &NAMES).await?;
    event(&namespaces.tenant, "customer", "KeyRevoked").await
}

#[tokio::test]
async fn a_new_leader_lets_the_keys_of_a_gone_api_go() -> Result {
    let (namespaces, former) = Namespaces::with_keys(Redis::start().await?).await?;
    let Namespaces {
        operators, apis, ..
    } = &namespaces;
    former.kill()?;
    namespaces.delete_with_rights().await?;
    apis.kubectl(&["delete", OBJECT])?;
    let leader = operators.operator("operator-0")?;
    logs(operators, &leader, "the watches have told of everything").await?;
    namespaces.keys_go().await?;
    reported(operators, &leader, "KeyNotRevoked", &NAMES).await?;
    event(&namespaces.tenant, "customer", "KeyNotRevoked").await
}

#[tokio::test]
async fn an_operator_that_ends_lets_the_keys_of_a_gone_api_go_whose_namespace_is_deleted_too()
-> Result {
    let (namespaces, operator) = Namespaces::with_keys(Redis::start().await?).await?;
    let Namespaces {
        operators, apis, ..
    } = &namespaces;
    operators.in_force(&of_apis(brought("own", 'c'))).await?;
    namespaces.delete_with_rights().await?;
    apis.kubectl(&["delete", OBJECT])?;
    let own = ["delete", "namespace", &operators.namespace, "--wait=false"];
    operators.cluster.kubectl(&own)?;
    operator.signal(Signal::SIGTERM)?;
    let status = operator.ended(PATIENCE).await?;
    ensure!(status.success(), "{status}: {}", operator.log_end());
    let own = operators.get("apikey/own")?;
    assert_eq!(own["metadata"]["finalizers"], Value::Null, "{own}");
    Ok(())
}

//! ApiKeys outside of their WaterDataApi's namespace: which are admitted, and the operator's rights to
//! look after them.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use serde_yaml_ng::Value as Yaml;
use tokio::sync::OnceCell;
use water_harness::Redis;

use crate::Result;
use crate::rights::{ACCOUNT, rendered};
use crate::steps::{NOTHING, OBJECT, edit, generation, holds, keeps_term, ready, term, until};
use crate::world::{API, World, api, brought, key, shown};

/// Namespaces in which the chart lets WaterDataApis be rolled out.
const NAMESPACES: [&str; 4] = ["admission", "api-there", "beside-another", "rights"];

/// World of all namespaces, which one operator looks after: two would work against each other.
async fn platform() -> anyhow::Result<&'static World> {
    static PLATFORM: OnceCell<World> = OnceCell::const_new();
    let start = async || {
        let platform = World::of_all_namespaces("platform", &NAMESPACES).await?;
        platform.operator("operator-0")?;
        Ok::<World, anyhow::Error>(platform)
    };
    PLATFORM.get_or_try_init(start).await
}

/// World of a namespace of [`NAMESPACES`].
async fn namespace(name: &str) -> anyhow::Result<World> {
    platform().await?.beside(name)
}

/// Lets Redis lose which generation of the world's directory is complete; returns the log's line of the rebuild that
/// follows.
async fn rebuild(world: &World) -> anyhow::Result<Value> {
    let (redis, earlier) = (Redis::shared().await?, generation(world).await?);
    let meta = format!("wd:{{{}.{API}}}:meta", world.namespace);
    redis.command(&["DEL", &meta]).await?;
    let platform = platform().await?;
    let is_of_it = |line: &Value| {
        line["message"] == "key directory rebuilt"
            && line["namespace"] == world.namespace
            && line["generation"].as_u64() > Some(earlier)
    };
    until(platform, "the rebuild", async || {
        let log = platform.logs();
        let mut lines = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines.find(&is_of_it).context("it is not in the log")
    })
    .await
}

/// A WaterDataApi that admits these namespaces.
fn admitting(allowed: Value) -> Value {
    let mut api = api();
    api["spec"]["apiKeys"]["allowedNamespaces"] = allowed;
    api
}

/// A namespace without labels.
fn tenant(world: &World, name: &str) -> anyhow::Result<()> {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    world.cluster.apply(&namespace.to_string()).map(drop)
}

/// acme in another namespace, which names the world's WaterDataApi.
fn apply_key(world: &World, namespace: &str) -> anyhow::Result<()> {
    let mut key = key("acme");
    key["metadata"]["namespace"] = namespace.into();
    key["spec"]["apiRef"] = json!({ "name": API, "namespace": world.namespace });
    world.cluster.apply(&key.to_string()).map(drop)
}

#[tokio::test]
async fn an_api_admits_its_own_namespace_and_those_that_it_names_while_they_have_their_labels()
-> Result {
    const TENANT: &str = "admitted-tenant";
    let world = namespace("admission").await?;
    let get = |object: &str| {
        let place = ["--namespace", TENANT, "get", object, "--output=json"];
        anyhow::Ok(serde_json::from_str::<Value>(
            &world.cluster.kubectl(&place)?,
        )?)
    };
    let becomes = async |aspect: &str, wanted: &str| {
        until(&world, &format!("{aspect}={wanted}"), async || {
            let key = get("apikey/acme")?;
            ensure!(shown(&key, aspect) == wanted, "{}", key["status"]);
            Ok(())
        })
        .await
    };
    let refused = async |reason: &str| {
        becomes("Stalled", &format!("True/{reason}")).await?;
        holds(&world, &NOTHING).await
    };
    let admitted = async || becomes("Ready", "True/Active").await;
    let label = |label: &str| {
        let label = ["label", "namespace", TENANT, label];
        world.cluster.kubectl(&label).map(drop)
    };
    world.apply(&api())?;
    tenant(&world, TENANT)?;
    apply_key(&world, TENANT)?;
    refused("NamespaceNotAdmitted").await?;
    world.apply(&admitting(json!({ "from": "All" })))?;
    admitted().await?;
    get("secret/acme-apikey")?;
    let water = json!({ "matchLabels": { "water": "yes" } });
    let selected = admitting(json!({ "from": "Selector", "selector": water }));
    world.apply(&selected)?;
    refused("NamespaceNotAdmitted").await?;
    label("water=yes")?;
    admitted().await?;
    let mut bound = selected;
    bound["spec"]["apiKeys"]["accountBinding"] = "NamespaceLabel".into();
    world.apply(&bound)?;
    refused("AccountNotBound").await?;
    label("account.waterdata.dev/acme=")?;
    admitted().await?;
    let rebuilt = rebuild(&world).await?;
    assert_eq!(rebuilt["records"], 1, "{rebuilt}");
    label("water-")?;
    refused("NamespaceNotAdmitted").await
}

#[tokio::test]
async fn an_operator_of_one_namespace_says_that_its_scope_is_too_narrow() -> Result {
    let world = World::new("narrow").await?;
    world.apply(&admitting(json!({ "from": "All" })))?;
    let _operator = world.operator("operator-0")?;
    let narrow = "True/ScopeTooNarrow";
    world.condition(OBJECT, "Stalled", narrow).await.map(drop)
}

#[tokio::test]
async fn a_water_data_api_is_rolled_out_where_the_chart_gives_the_rights_and_nowhere_else() -> Result
{
    let there = namespace("api-there").await?;
    tenant(&there, "api-nowhere")?;
    let nowhere = there.beside("api-nowhere")?;
    there.apply(&api())?;
    nowhere.apply(&api())?;
    let migrating = "False/Migrating";
    there
        .condition(OBJECT, "MigrationsComplete", migrating)
        .await?;
    let narrow = "True/ScopeTooNarrow";
    nowhere.condition(OBJECT, "Stalled", narrow).await.map(drop)
}

#[tokio::test]
async fn a_deleted_water_data_api_that_another_operator_looks_after_is_left_to_it() -> Result {
    // Other tests' WaterDataApis may admit keys of every namespace.
    let of = |world: &World, digit| {
        let mut key = brought("acme", digit);
        key["spec"]["apiRef"] = json!({ "namespace": world.namespace, "name": API });
        key
    };
    // Waits until the operator of all namespaces works, too.
    let platform = namespace("beside-another").await?;
    platform.apply(&api())?;
    platform.in_force(&of(&platform, '0')).await?;
    let other = platform.with_own_operator("of-another").await?;
    let _operator = other.operator("operator-0")?;
    other.apply(&api())?;
    other.in_force(&of(&other, '1')).await?;
    let claimed = term(&other).await?;
    other.kubectl(&["delete", OBJECT, "--cascade=foreground", "--wait=false"])?;
    // Both operators reconcile an ApiKey that changes.
    for suspend in [true, false, true, false] {
        let wanted = if suspend {
            "True/Suspended"
        } else {
            "True/Active"
        };
        for world in [&other, &platform] {
            edit(world, "acme", &json!({ "suspend": suspend }))?;
            ready(world, "acme", wanted).await?;
        }
    }
    let object = other.get(OBJECT)?;
    assert!(object["metadata"]["deletionTimestamp"].is_string());
    // Nobody else has claimed the directory.
    keeps_term(&other, claimed, &other.logs()).await
}

/// Answer of `kubectl auth can-i` about the operator's ServiceAccount.
fn may(world: &World, namespace: &str, verb: &str, resource: &str) -> bool {
    may_of("platform", world, namespace, verb, resource)
}

/// Answer of `kubectl auth can-i` about an operator in that namespace.
fn may_of(operator: &str, world: &World, namespace: &str, verb: &str, resource: &str) -> bool {
    let user = format!("--as=system:serviceaccount:{operator}:{ACCOUNT}");
    let (resource, subresource) = match resource.split_once(':') {
        Some((resource, subresource)) => (resource, format!("--subresource={subresource}")),
        None => (resource, String::new()),
    };
    let place = ["--namespace", namespace, "auth", "can-i", &user];
    let mut question = [&place[..], &[verb, resource]].concat();
    question.extend(Some(subresource.as_str()).filter(|option| !option.is_empty()));
    match world.cluster.kubectl(&question) {
        Ok(answer) => answer == "yes",
        // kubectl fails where the answer is no, and then complains of nothing.
        Err(error) => {
            let complaint = error.to_string();
            assert!(complaint.ends_with(": "), "{complaint}");
            false
        }
    }
}

#[tokio::test]
async fn in_tenants_namespaces_the_operator_may_do_what_apikeys_need_and_no_more() -> Result {
    let world = namespace("rights").await?;
    let allowed =
        |namespace: &str, verb: &str, resource: &str| may(&world, namespace, verb, resource);
    for (verb, resource) in [
        ("watch", "apikeys"),
        ("update", "apikeys:status"),
        // To follow the metadata of keys' Secrets, which RBAC cannot separate from the rest.
        ("get", "secrets"),
        ("list", "secrets"),
        ("watch", "secrets"),
        ("create", "secrets"),
        ("patch", "secrets"),
        ("create", "events"),
    ] {
        assert!(allowed("default", verb, resource), "{verb} {resource}");
    }
    for (verb, resource) in [
        ("update", "secrets"),
        ("delete", "secrets"),
        ("delete", "apikeys"),
        ("create", "deployments.apps"),
        ("create", "jobs.batch"),
        ("list", "pods"),
        ("get", "leases.coordination.k8s.io/water-operator"),
        ("update", "leases.coordination.k8s.io/kube-scheduler"),
    ] {
        assert!(!allowed("default", verb, resource), "{verb} {resource}");
    }
    let lease = "leases.coordination.k8s.io";
    let leader = format!("{lease}/water-operator");
    assert!(allowed("platform", "update", &leader) && !allowed("rights", "update", &leader));
    assert!(!allowed("platform", "update", &format!("{lease}/another")));
    assert!(allowed("rights", "update", "secrets") && allowed("rights", "create", "jobs.batch"));
    Ok(())
}

#[tokio::test]
async fn with_named_key_namespaces_the_operator_has_no_right_to_secrets_of_others() -> Result {
    const OWN: &str = "named-keys";
    let world = World::of_key_namespaces(OWN, &["named", "unbound"]).await?;
    // One in which the right is missing keeps nobody else's waiting.
    let unbound = ["--namespace", "unbound", "delete", "rolebinding", "--all"];
    world.cluster.kubectl(&unbound)?;
    tenant(&world, "unnamed")?;
    for verb in ["get", "list", "watch", "create", "patch"] {
        let allowed = |namespace| may_of(OWN, &world, namespace, verb, "secrets");
        assert!(allowed(OWN) && allowed("named"), "{verb}");
        assert!(!allowed("unnamed") && !allowed("default"), "{verb}");
    }
    world.apply(&admitting(json!({ "from": "All" })))?;
    let operator = world.operator("operator-0")?;
    let get = |namespace: &str, object: &str| {
        let place = ["--namespace", namespace, "get", object, "--output=json"];
        anyhow::Ok(serde_json::from_str::<Value>(
            &world.cluster.kubectl(&place)?,
        )?)
    };
    let is = async |namespace: &str, wanted: &str| {
        until(&world, &format!("{namespace}: {wanted}"), async || {
            let key = get(namespace, "apikey/acme")?;
            ensure!(shown(&key, "Ready") == wanted, "{}", key["status"]);
            Ok(key)
        })
        .await
    };
    apply_key(&world, "named")?;
    is("named", "True/Active").await?;
    let of_named = || {
        let secret = get("named", "secret/acme-apikey")?;
        let hash = secret["metadata"]["annotations"]["waterdata.dev/key-hash"].as_str();
        Ok::<_, anyhow::Error>(hash.context("a hash")?.to_owned())
    };
    let before = of_named()?;
    // Its Secret is watched.
    let delete = ["--namespace", "named", "delete", "secret/acme-apikey"];
    world.cluster.kubectl(&delete)?;
    until(&world, "another key", async || {
        let now = of_named()?;
        ensure!(now != before, "{now}");
        Ok(())
    })
    .await?;
    apply_key(&world, "unnamed")?;
    let refused = is("unnamed", "False/ApiServerError").await?;
    let status = refused["status"].to_string();
    ensure!(status.contains("cannot get resource"), "{status}");
    assert_eq!(operator.exit_status()?, None);
    Ok(())
}

/// The rendered objects of a kind.
fn objects(rendered: &str, kind: &str) -> anyhow::Result<Vec<Yaml>> {
    let mut found = Vec::new();
    for text in rendered.split("\n---\n") {
        let object: Yaml = serde_yaml_ng::from_str(text)?;
        if object["kind"] == kind {
            found.push(object);
        }
    }
    Ok(found)
}

#[test]
fn an_installation_in_one_namespace_needs_no_right_outside_of_it() -> Result {
    let values = ["crds.install=false", "rbac.aggregatedRoles=false"];
    let rendered = rendered("team", None, &values)?;
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        assert_eq!(objects(&rendered, kind)?, Vec::<Yaml>::new());
    }
    Ok(())
}

#[test]
fn the_clusters_own_roles_are_never_given_secrets() -> Result {
    let rendered = rendered("team", Some("templates/rbac.yaml"), &[])?;
    let roles = objects(&rendered, "ClusterRole")?;
    assert_eq!(roles.len(), 2, "view and edit, which admin has too");
    for role in roles {
        let rules = role["rules"].as_sequence().context("rules")?;
        assert!(!rules.is_empty());
        let own = Yaml::from(vec!["waterdata.dev"]);
        assert!(rules.iter().all(|rule| rule["apiGroups"] == own));
    }
    Ok(())
}

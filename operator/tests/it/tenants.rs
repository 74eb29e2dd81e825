//! ApiKeys outside of their WaterDataApi's namespace: who is admitted, and with which rights the
//! operator looks after them.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use serde_yaml_ng::Value as Yaml;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::rights::{ACCOUNT, rendered};
use crate::world::{API, PATIENCE, World, api, brought, key, shown};

/// Where the chart lets WaterDataApis be rolled out.
const NAMESPACES: [&str; 6] = [
    "from-same",
    "from-selector",
    "binding",
    "api-there",
    "beside-another",
    "rights",
];

/// One of [`NAMESPACES`], all of which one operator looks after: two would work against each other.
async fn namespace(name: &str) -> anyhow::Result<World> {
    static PLATFORM: OnceCell<World> = OnceCell::const_new();
    let start = async || {
        let platform = World::of_all_namespaces("platform", &NAMESPACES).await?;
        platform.operator("operator-0")?;
        Ok::<World, anyhow::Error>(platform)
    };
    PLATFORM.get_or_try_init(start).await?.beside(name)
}

/// A WaterDataApi that admits these namespaces.
fn admitting(allowed: Value) -> Value {
    let mut api = api();
    api["spec"]["apiKeys"]["allowedNamespaces"] = allowed;
    api
}

/// A namespace with labels.
fn tenant(world: &World, name: &str, labels: Value) -> anyhow::Result<()> {
    let metadata = json!({ "name": name, "labels": labels });
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
    world.cluster.apply(&namespace.to_string()).map(drop)
}

/// An ApiKey in another namespace, which names the world's WaterDataApi.
fn key_of(world: &World, namespace: &str, name: &str) -> Value {
    let mut key = key(name);
    key["metadata"]["namespace"] = namespace.into();
    key["spec"]["apiRef"] = json!({ "name": "water-data", "namespace": world.namespace });
    key
}

fn apply_key(world: &World, namespace: &str, name: &str) -> anyhow::Result<()> {
    let key = key_of(world, namespace, name);
    world.cluster.apply(&key.to_string()).map(drop)
}

/// The same 200 times, each brought along by its hash.
fn apply_200_keys(world: &World, namespace: &str) -> anyhow::Result<()> {
    let keys = (0..200).map(|number| {
        let mut key = key_of(world, namespace, &format!("key-{number}"));
        let (hash, id) = (format!("{number:064x}"), format!("{number:012}"));
        key["spec"]["material"] = json!({ "hash": { "sha256": hash, "keyId": id } });
        key
    });
    let keys: Vec<_> = keys.collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": keys });
    world.cluster.apply(&list.to_string()).map(drop)
}

fn get(world: &World, namespace: &str, object: &str) -> anyhow::Result<Value> {
    let place = ["--namespace", namespace, "get", object, "--output=json"];
    Ok(serde_json::from_str(&world.cluster.kubectl(&place)?)?)
}

async fn becomes(world: &World, namespace: &str, aspect: &str, wanted: &str) -> Result {
    let what = format!("the key of {namespace} to be {aspect}={wanted}");
    world
        .wait(&what, PATIENCE, async || {
            let key = get(world, namespace, "apikey/acme")?;
            ensure!(shown(&key, aspect) == wanted, "{}", key["status"]);
            Ok(())
        })
        .await
}

#[tokio::test]
async fn only_its_own_namespace_is_admitted_unless_it_says_otherwise() -> Result {
    let world = namespace("from-same").await?;
    world.apply(&api())?;
    tenant(&world, "from-same-tenant", json!({}))?;
    apply_key(&world, "from-same-tenant", "acme")?;
    becomes(
        &world,
        "from-same-tenant",
        "Stalled",
        "True/NamespaceNotAdmitted",
    )
    .await?;
    world.apply(&admitting(json!({ "from": "All" })))?;
    becomes(&world, "from-same-tenant", "Ready", "True/Active").await?;
    get(&world, "from-same-tenant", "secret/acme-apikey")?;
    world.apply(&admitting(json!({ "from": "Same" })))?;
    becomes(
        &world,
        "from-same-tenant",
        "Stalled",
        "True/NamespaceNotAdmitted",
    )
    .await?;
    assert!(world.published().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_selector_admits_the_namespaces_that_have_its_labels_while_they_have_them() -> Result {
    let world = namespace("from-selector").await?;
    let selector = json!({ "matchLabels": { "water": "yes" } });
    world.apply(&admitting(
        json!({ "from": "Selector", "selector": selector }),
    ))?;
    let tenant_name = "from-selector-tenant";
    tenant(&world, tenant_name, json!({}))?;
    apply_key(&world, tenant_name, "acme")?;
    becomes(&world, tenant_name, "Stalled", "True/NamespaceNotAdmitted").await?;
    let label = |label: &str| {
        world
            .cluster
            .kubectl(&["label", "namespace", tenant_name, label])
    };
    label("water=yes")?;
    becomes(&world, tenant_name, "Ready", "True/Active").await?;
    label("water-")?;
    becomes(&world, tenant_name, "Stalled", "True/NamespaceNotAdmitted").await?;
    assert!(world.published().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_bound_namespace_names_only_the_accounts_of_its_labels() -> Result {
    let world = namespace("binding").await?;
    let mut api = admitting(json!({ "from": "All" }));
    api["spec"]["apiKeys"]["accountBinding"] = "NamespaceLabel".into();
    world.apply(&api)?;
    tenant(
        &world,
        "binding-tenant",
        json!({ "account.waterdata.dev/other": "" }),
    )?;
    apply_key(&world, "binding-tenant", "acme")?;
    becomes(&world, "binding-tenant", "Stalled", "True/AccountNotBound").await?;
    let label = [
        "label",
        "namespace",
        "binding-tenant",
        "account.waterdata.dev/acme=",
    ];
    world.cluster.kubectl(&label)?;
    becomes(&world, "binding-tenant", "Ready", "True/Active").await
}

#[tokio::test]
async fn an_operator_of_one_namespace_says_that_its_scope_is_too_narrow() -> Result {
    let world = World::new("narrow").await?;
    world.apply(&admitting(json!({ "from": "All" })))?;
    let _operator = world.operator("operator-0")?;
    world
        .condition("waterdataapi/water-data", "Stalled", "True/ScopeTooNarrow")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_water_data_api_is_rolled_out_where_the_chart_gives_the_rights_and_nowhere_else() -> Result
{
    let there = namespace("api-there").await?;
    tenant(&there, "api-nowhere", json!({}))?;
    let nowhere = there.beside("api-nowhere")?;
    there.apply(&api())?;
    nowhere.apply(&api())?;
    let object = "waterdataapi/water-data";
    there
        .condition(object, "MigrationsComplete", "False/Migrating")
        .await?;
    nowhere
        .condition(object, "Stalled", "True/ScopeTooNarrow")
        .await?;
    Ok(())
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
    let term = other.observe().await?.meta.context("claimed")?.term;
    let foreground = ["--cascade=foreground", "--wait=false"];
    other.kubectl(&[&["delete", "waterdataapi", API], &foreground[..]].concat())?;
    // Both operators look at an ApiKey that changes.
    for suspend in [true, false, true, false] {
        let (wanted, spec) = match suspend {
            true => ("True/Suspended", json!({ "suspend": true })),
            false => ("True/Active", json!({ "suspend": false })),
        };
        for world in [&other, &platform] {
            world.patch("apikey/acme", &json!({ "spec": spec }), &[])?;
            world.condition("apikey/acme", "Ready", wanted).await?;
        }
    }
    let object = other.get("waterdataapi/water-data")?;
    assert!(object["metadata"]["deletionTimestamp"].is_string());
    let now = other.observe().await?.meta.context("claimed")?.term;
    assert_eq!(now, term, "nobody else has claimed the directory");
    Ok(())
}

/// What `kubectl auth can-i` says of the operator's ServiceAccount.
fn may(world: &World, namespace: &str, verb: &str, resource: &str) -> bool {
    let user = format!("--as=system:serviceaccount:platform:{ACCOUNT}");
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
        // To follow the metadata of keys' Secrets, which RBAC cannot tell from the rest.
        ("get", "secrets"),
        ("list", "secrets"),
        ("watch", "secrets"),
        ("create", "secrets"),
        ("patch", "secrets"),
        ("create", "events.events.k8s.io"),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_with_200_keys_is_gone_within_a_minute_of_its_deletion() -> Result {
    let world = World::of_all_namespaces("outlives-tenant", &[]).await?;
    let _controller = world.cluster.start_namespace_controller()?;
    world.apply(&admitting(json!({ "from": "All" })))?;
    let _operator = world.operator("operator-0")?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    tenant(&world, "of-200-keys", json!({}))?;
    apply_200_keys(&world, "of-200-keys")?;
    let all = async || {
        ensure!(gate.keys() == 200, "{} keys", gate.keys());
        Ok(())
    };
    world.wait("all keys", PATIENCE, all).await?;
    let deleted = Instant::now();
    let delete = ["delete", "namespace", "of-200-keys", "--wait=false"];
    world.cluster.kubectl(&delete)?;
    world.gone("namespace/of-200-keys").await?;
    let took = deleted.elapsed();
    println!("converged after {:.3} s", took.as_secs_f64());
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(gate.keys(), 0);
    assert_eq!(world.published().await?, Vec::<String>::new());
    Ok(())
}

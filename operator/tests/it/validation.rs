//! Refusals by the API server with their whole text: field, problem, remedy. The messages are golden files, one entry
//! for each rule.

use serde_json::{Value, json};
use water_kit::golden;

use crate::Result;
use crate::steps::edit;
use crate::world::{World, api, brought, key};

/// A wrong object, and in words what is wrong with it.
type Case = (&'static str, Value);
/// Problem, and another value at a path of the spec.
type Edit = (&'static str, &'static str, Value);

/// Answers of the API server to the cases.
fn refusals(world: &World, cases: &[Case]) -> String {
    let refusal = |(problem, object): &Case| match world.apply(object) {
        Ok(()) => panic!("{problem} is accepted: {object}"),
        Err(error) => said(problem, &error),
    };
    cases.iter().map(refusal).collect()
}

/// Answers of the API server to edits of a good object.
fn refused_edits(world: &World, good: &Value, edits: Vec<Edit>) -> String {
    let object = |(problem, path, value): Edit| (problem, with(good.clone(), path, value));
    refusals(world, &edits.into_iter().map(object).collect::<Vec<_>>())
}

/// Text of an answer, without kubectl's own words. Of several errors each is a line; one says that the rules of CEL
/// were not checked.
fn said(problem: &str, error: &anyhow::Error) -> String {
    let error = error.to_string();
    let starts = [" is invalid: ", "Error from server: "];
    let message = starts.iter().find_map(|start| error.split_once(start));
    let message = message.map_or(error.as_str(), |(_, message)| message);
    let lines = message.trim_start().lines();
    let lines = lines.map(|line| line.trim_start_matches("* "));
    let lines = lines.filter(|line| !line.contains("some validation rules were not checked"));
    let lines = lines.map(|line| format!("    {line}\n"));
    format!("{problem}\n{}", lines.collect::<String>())
}

/// An object with another value at a path of its spec, or with none if that is null.
fn with(mut object: Value, path: &str, value: Value) -> Value {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parents = parent.split('/').filter(|part| !part.is_empty());
    let parent = parents.fold(&mut object["spec"], |place, part| {
        match part.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[part],
        }
    });
    match (name.parse::<usize>(), parent.as_object_mut()) {
        (Ok(index), _) => parent[index] = value,
        (_, Some(fields)) if value.is_null() => drop(fields.remove(name)),
        _ => parent[name] = value,
    }
    object
}

#[tokio::test]
#[rustfmt::skip]
async fn a_new_api_key_is_refused_with_field_problem_and_remedy() -> Result {
    let world = World::new("refuse-new-keys").await?;
    let noon = || json!("2027-01-01T12:00:00Z");
    let hash = |digit: &str| json!({ "sha256": digit.repeat(64) });
    let mut refused = refusals(&world, &[
        ("a name of 53 characters", key(&"a".repeat(53))),
    ]);
    refused += &refused_edits(&world, &key("a"), vec![
        ("no account", "accountId", Value::Null),
        ("an account with a space", "accountId", json!("no spaces")),
        ("no plan", "plan", Value::Null),
        ("a plan that begins with a digit", "plan", json!("1st")),
        ("an empty reference", "apiRef", json!({ "name": "" })),
        ("a description of 1025 characters", "description", json!("x".repeat(1025))),
        ("a time in words", "notBefore", json!("tomorrow")),
    ]);
    refused += &refused_edits(&world, &with(key("a"), "notBefore", noon()), vec![
        ("an end at the beginning", "expirationTime", noon()),
    ]);
    refused += &refused_edits(&world, &key("a"), vec![
        ("no material", "material", json!({})),
        ("two materials", "material", json!({ "generated": {}, "hash": hash("a") })),
        ("a hash in capitals", "material", json!({ "hash": hash("A") })),
        ("a Secret in capitals", "material", json!({ "generated": { "secretName": "Upper" } })),
        ("an unknown deletion policy", "material", json!({ "generated": { "deletionPolicy": "Keep" } })),
        ("an overlap of a whole period", "rotation", json!({ "periodSeconds": 3600, "overlapSeconds": 3600 })),
        ("a period of less than an hour", "rotation", json!({ "periodSeconds": 3599, "overlapSeconds": 1 })),
        ("a negative revision", "rotation", json!({ "revision": -1 })),
    ]);
    refused += &refused_edits(&world, &brought("a", 'a'), vec![
        ("a revision of a brought key", "rotation", json!({ "revision": 1 })),
    ]);
    golden::check("refused-api-keys.txt", &refused);
    Ok(())
}

#[tokio::test]
#[rustfmt::skip]
async fn a_changed_api_key_is_refused_with_field_problem_and_remedy() -> Result {
    let world = World::new("refuse-changed-keys").await?;
    let generated = |generated: Value| json!({ "generated": generated });
    let hash = |digit: &str| json!({ "hash": { "sha256": digit.repeat(64) } });
    let named = |digit: &str, id: &str| json!({ "hash": { "sha256": digit.repeat(64), "keyId": id } });
    let changes = [
        ("another account", "accountId", json!("one"), json!("two")),
        ("another API", "apiRef", json!({ "name": "one" }), json!({ "name": "two" })),
        ("another Secret", "material", generated(json!({})), generated(json!({ "secretName": "x" }))),
        ("an earlier revision", "rotation", json!({ "revision": 2 }), json!({ "revision": 1 })),
        ("another key id for the same key", "material", hash("a"), named("a", "AAAAbbbb0000")),
        ("the same key id for another key", "material", named("c", "AAAAbbbb0001"), named("d", "AAAAbbbb0001")),
        // Applying cannot take a defaulted member away: this is what an edit would send.
        ("a generated key as a brought one", "material", Value::Null, hash("a")),
    ];
    let mut refused = String::new();
    for (number, (problem, field, first, second)) in changes.into_iter().enumerate() {
        let key = key(&format!("key-{number}"));
        world.apply(&with(key.clone(), field, first))?;
        refused += &refusals(&world, &[(problem, with(key, field, second))]);
    }
    world.apply(&key("a"))?;
    let switch = json!({ "material": { "generated": null, "hash": { "sha256": "a".repeat(64) } } });
    refused += &said("a generated key switched to a brought one", &edit(&world, "a", &switch).unwrap_err());
    let issued = json!({ "status": { "api": { "name": "one", "namespace": "water" } } });
    world.patch("apikey/a", &issued, &["--subresource=status"])?;
    refused += &refused_edits(&world, &key("a"), vec![
        ("a late reference to another API than the one that issued the key", "apiRef", json!({ "name": "two" })),
    ]);
    golden::check("refused-api-key-changes.txt", &refused);
    // The default may be spelled out.
    world.apply(&with(key("a"), "material", generated(json!({ "secretName": "a-apikey" }))))?;
    world.apply(&with(key("a"), "apiRef", json!({ "name": "one" })))
}

#[tokio::test]
#[rustfmt::skip]
async fn a_water_data_api_is_refused_with_field_problem_and_remedy() -> Result {
    let world = World::new("refuse-apis").await?;
    let scaling = |least: i32| json!({ "minReplicas": least, "maxReplicas": 2, "targetCpuPercent": 50 });
    let gate = |value: Value| json!({ "gate": value });
    let route = json!({ "parentRefs": [{ "name": "gateway" }], "hostnames": ["water.example"] });
    let mut badly_named = api();
    badly_named["metadata"]["name"] = "1st.api".into();
    let mut refused = refusals(&world, &[("a name that is none of a Service", badly_named)]);
    refused += &refused_edits(&world, &api(), vec![
        ("latest", "image/tag", json!("latest")),
        ("a registry with a scheme", "image/registry", json!("https://registry")),
        ("no plan", "plans", json!([])),
        ("an open plan without a limit", "plans/0", json!({ "name": "Enterprise", "access": "Allowed" })),
        ("a closed plan with a limit", "plans/1/requestsPerDay", json!(1)),
        ("a limit of nothing", "plans/0/requestsPerMinute", json!(0)),
        ("two plans of one name", "plans/1/name", json!("Enterprise")),
        ("101 replicas", "components", gate(json!({ "replicas": 101 }))),
        ("replicas and autoscaling", "components", gate(json!({ "replicas": 1, "autoscaling": scaling(1) }))),
        ("more replicas at least than at most", "components", gate(json!({ "autoscaling": scaling(3) }))),
        ("a quantity in words", "components", gate(json!({ "resources": { "limits": { "memory": "much" } } }))),
        ("a rollout that replaces nothing", "rollout", json!({ "maxSurge": 0 })),
        ("a rollout that is never done", "rollout", json!({ "minReadySeconds": 300 })),
        ("a host in capitals", "exposure/ingress/host", json!("Water.Example")),
        ("an Ingress and an HTTPRoute", "exposure/httpRoute", route),
        ("a proxy without a prefix length", "exposure/trustedProxies", json!(["10.0.0.1"])),
        ("a selector that is missing", "apiKeys", json!({ "allowedNamespaces": { "from": "Selector" } })),
        ("an unknown mode", "networkPolicy", json!({ "mode": "Maybe" })),
        ("a Secret without a name", "postgres/secretRef/name", json!("")),
        ("a level that does not exist", "telemetry", json!({ "logFilter": "info,water_gate=debgu" })),
        ("a collector behind TLS", "telemetry", json!({ "otlpEndpoint": "https://collector:4318" })),
    ]);
    golden::check("refused-water-data-apis.txt", &refused);
    Ok(())
}

#[tokio::test]
#[rustfmt::skip]
async fn a_portal_is_refused_with_field_problem_and_remedy() -> Result {
    let world = World::new("refuse-portals").await?;
    let good = with(api(), "portal", json!({
        "url": "https://water.example",
        "oidc": {
            "issuer": "https://id.example",
            "clientId": "water-portal",
            "clientSecretRef": { "name": "portal-client", "key": "client-secret" },
        },
    }));
    world.apply(&good)?;
    let refused = refused_edits(&world, &good, vec![
        ("no https", "portal/url", json!("http://water.example")),
        ("a path", "portal/url", json!("https://water.example/portal")),
        ("a slash at the end", "portal/url", json!("https://water.example/")),
        ("an issuer without https", "portal/oidc/issuer", json!("http://id.example")),
        ("an issuer with a query", "portal/oidc/issuer", json!("https://id.example/?a=b")),
        ("no ID token", "portal/oidc/scopes", json!(["profile"])),
        ("two scopes as one", "portal/oidc/scopes", json!(["openid profile"])),
        ("a client without an id", "portal/oidc/clientId", json!("")),
        ("a session of two days", "portal/sessionHours", json!(48)),
        ("no key at all", "portal/maxKeys", json!(0)),
        ("keys for no time", "portal/maxKeyDays", json!(0)),
    ]);
    golden::check("refused-portals.txt", &refused);
    Ok(())
}

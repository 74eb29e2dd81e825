//! What the API server refuses, and the whole of what it says: field, problem, remedy. The messages
//! are golden files, one entry for each rule.

use serde_json::{Value, json};

use crate::world::{World, api, brought, key};
use crate::{Result, golden};

/// A wrong object, and in words what is wrong with it.
type Case = (&'static str, Value);

/// What the API server says to each case.
fn refusals(world: &World, cases: &[Case]) -> String {
    let refusal = |(problem, object): &Case| match world.apply(object) {
        Ok(()) => panic!("{problem} is accepted: {object}"),
        Err(error) => format!("{problem}\n{}", server_message(&error)),
    };
    cases.iter().map(refusal).collect()
}

/// Without kubectl's own words. Of several errors each is a line; one says that the rules of CEL were
/// not looked at.
fn server_message(error: &anyhow::Error) -> String {
    let error = error.to_string();
    let starts = [" is invalid: ", "Error from server: "];
    let message = starts.iter().find_map(|start| error.split_once(start));
    let message = message.map_or(error.as_str(), |(_, message)| message);
    let lines = message
        .trim_start()
        .lines()
        .map(|line| line.trim_start_matches("* "));
    let lines = lines.filter(|line| !line.contains("some validation rules were not checked"));
    lines.map(|line| format!("    {line}\n")).collect()
}

/// An object with another value at a path of its spec.
fn with(mut object: Value, path: &str, value: Value) -> Value {
    let place = path.split('/').fold(&mut object["spec"], |place, part| {
        match part.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[part],
        }
    });
    *place = value;
    object
}

#[tokio::test]
async fn a_new_api_key_is_refused_with_field_problem_and_remedy() -> Result {
    let world = World::new("refuse-new-keys").await?;
    let spec = |field: &str, value: Value| with(key("a"), field, value);
    let material = |value: Value| spec("material", value);
    let noon = json!("2027-01-01T12:00:00Z");
    let cases = [
        ("a name of 53 characters", key(&"a".repeat(53))),
        (
            "an account with a space",
            spec("accountId", json!("no spaces")),
        ),
        (
            "a plan that begins with a digit",
            spec("plan", json!("1st")),
        ),
        ("an empty reference", spec("apiRef", json!({ "name": "" }))),
        (
            "a description of 1025 characters",
            spec("description", json!("x".repeat(1025))),
        ),
        ("a time in words", spec("notBefore", json!("tomorrow"))),
        (
            "an end at the beginning",
            with(spec("notBefore", noon.clone()), "expirationTime", noon),
        ),
        ("no material", material(json!({}))),
        (
            "two materials",
            material(json!({ "generated": {}, "hash": { "sha256": "a".repeat(64) } })),
        ),
        (
            "a hash in capitals",
            material(json!({ "hash": { "sha256": "A".repeat(64) } })),
        ),
        (
            "a Secret in capitals",
            material(json!({ "generated": { "secretName": "Upper" } })),
        ),
        (
            "an unknown deletion policy",
            material(json!({ "generated": { "deletionPolicy": "Keep" } })),
        ),
        (
            "an overlap of a whole period",
            spec(
                "rotation",
                json!({ "periodSeconds": 60, "overlapSeconds": 60 }),
            ),
        ),
        (
            "a negative revision",
            spec("rotation", json!({ "revision": -1 })),
        ),
        (
            "a revision of a brought key",
            with(brought("a", 'a'), "rotation", json!({ "revision": 1 })),
        ),
    ];
    golden::check("refused-api-keys.txt", &refusals(&world, &cases));
    Ok(())
}

#[tokio::test]
async fn a_changed_api_key_is_refused_with_field_problem_and_remedy() -> Result {
    let world = World::new("refuse-changed-keys").await?;
    let changed = |name: &str, field: &str, first: Value, second: Value| {
        world
            .apply(&with(key(name), field, first))
            .expect("the first form is good");
        with(key(name), field, second)
    };
    let cases = [
        (
            "another account",
            changed("account", "accountId", json!("one"), json!("two")),
        ),
        (
            "another API",
            changed(
                "api",
                "apiRef",
                json!({ "name": "one" }),
                json!({ "name": "two" }),
            ),
        ),
        (
            "another Secret",
            changed(
                "secret",
                "material",
                json!({ "generated": {} }),
                json!({ "generated": { "secretName": "x" } }),
            ),
        ),
        (
            "an earlier revision",
            changed(
                "revision",
                "rotation",
                json!({ "revision": 2 }),
                json!({ "revision": 1 }),
            ),
        ),
        ("another key id for the same key", {
            world.apply(&brought("named", 'a'))?;
            let mut named = brought("named", 'a');
            named["spec"]["material"]["hash"]["keyId"] = "AAAAbbbb0000".into();
            named
        }),
        ("the same key id for another key", {
            let mut named = brought("renamed", 'a');
            named["spec"]["material"]["hash"]["keyId"] = "AAAAbbbb0001".into();
            world.apply(&named)?;
            named["spec"]["material"]["hash"]["sha256"] = "b".repeat(64).into();
            named
        }),
        ("a generated key as a brought one", {
            world.apply(&key("switch"))?;
            // Applying cannot take a defaulted member away: this is what an edit would send.
            brought("switch", 'a')
        }),
    ];
    golden::check("refused-api-key-changes.txt", &refusals(&world, &cases));
    Ok(())
}

#[tokio::test]
async fn a_key_cannot_switch_between_generated_and_brought() -> Result {
    let world = World::new("refuse-switch").await?;
    world.apply(&key("a"))?;
    let switch = json!({ "spec": { "material": { "generated": null, "hash": { "sha256": "a".repeat(64) } } } });
    let refused = world.patch("apikey/a", &switch, &[]).unwrap_err();
    golden::check("refused-api-key-switch.txt", &server_message(&refused));
    Ok(())
}

#[tokio::test]
async fn a_late_api_reference_must_name_the_api_that_issued_the_key() -> Result {
    let world = World::new("refuse-late-reference").await?;
    world.apply(&key("a"))?;
    let issued = json!({ "status": { "api": { "name": "one", "namespace": "water" } } });
    world.patch("apikey/a", &issued, &["--subresource=status"])?;
    let another = with(key("a"), "apiRef", json!({ "name": "two" }));
    golden::check(
        "refused-api-key-reference.txt",
        &refusals(&world, &[("another API", another)]),
    );
    world.apply(&with(key("a"), "apiRef", json!({ "name": "one" })))
}

#[tokio::test]
async fn a_water_data_api_is_refused_with_field_problem_and_remedy() -> Result {
    let world = World::new("refuse-apis").await?;
    let spec = |field: &str, value: Value| with(api(), field, value);
    let gate = |value: Value| spec("components", json!({ "gate": value }));
    let scaling =
        |least: i32| json!({ "minReplicas": least, "maxReplicas": 2, "targetCpuPercent": 50 });
    let route = json!({ "parentRefs": [{ "name": "gateway" }], "hostnames": ["water.example"] });
    let mut badly_named = api();
    badly_named["metadata"]["name"] = "1st.api".into();
    let cases = [
        ("a name that is none of a Service", badly_named),
        ("latest", spec("image/tag", json!("latest"))),
        (
            "a registry with a scheme",
            spec("image/registry", json!("https://registry")),
        ),
        ("no plan", spec("plans", json!([]))),
        (
            "an open plan without a limit",
            spec(
                "plans/0",
                json!({ "name": "Enterprise", "access": "Allowed" }),
            ),
        ),
        (
            "a closed plan with a limit",
            spec("plans/1/requestsPerDay", json!(1)),
        ),
        (
            "a limit of nothing",
            spec("plans/0/requestsPerMinute", json!(0)),
        ),
        (
            "two plans of one name",
            spec("plans/1/name", json!("Enterprise")),
        ),
        ("101 replicas", gate(json!({ "replicas": 101 }))),
        (
            "replicas and autoscaling",
            gate(json!({ "replicas": 1, "autoscaling": scaling(1) })),
        ),
        (
            "more replicas at least than at most",
            gate(json!({ "autoscaling": scaling(3) })),
        ),
        (
            "a quantity in words",
            gate(json!({ "resources": { "limits": { "memory": "much" } } })),
        ),
        (
            "a rollout that replaces nothing",
            spec("rollout", json!({ "maxSurge": 0 })),
        ),
        (
            "a rollout that is never done",
            spec("rollout", json!({ "minReadySeconds": 300 })),
        ),
        (
            "a host in capitals",
            spec("exposure/ingress/host", json!("Water.Example")),
        ),
        (
            "an Ingress and an HTTPRoute",
            spec("exposure/httpRoute", route),
        ),
        (
            "a proxy without a prefix length",
            spec("exposure/trustedProxies", json!(["10.0.0.1"])),
        ),
        (
            "a selector that is missing",
            spec(
                "apiKeys",
                json!({ "allowedNamespaces": { "from": "Selector" } }),
            ),
        ),
        (
            "an unknown mode",
            spec("networkPolicy", json!({ "mode": "Maybe" })),
        ),
        (
            "a Secret without a name",
            spec("postgres/secretRef/name", json!("")),
        ),
        (
            "a level that does not exist",
            spec("telemetry", json!({ "logFilter": "info,water_gate=debgu" })),
        ),
        (
            "a collector behind TLS",
            spec(
                "telemetry",
                json!({ "otlpEndpoint": "https://collector:4318" }),
            ),
        ),
    ];
    golden::check("refused-water-data-apis.txt", &refusals(&world, &cases));
    Ok(())
}

#[tokio::test]
async fn a_portal_is_refused_with_field_problem_and_remedy() -> Result {
    let world = World::new("refuse-portals").await?;
    let portal = json!({
        "url": "https://water.example",
        "oidc": {
            "issuer": "https://id.example",
            "clientId": "water-portal",
            "clientSecretRef": { "name": "portal-client", "key": "client-secret" },
        },
    });
    let good = with(api(), "portal", portal);
    world.apply(&good)?;
    let spec = |field: &str, value: Value| with(good.clone(), field, value);
    let cases = [
        (
            "no https",
            spec("portal/url", json!("http://water.example")),
        ),
        (
            "a path",
            spec("portal/url", json!("https://water.example/portal")),
        ),
        (
            "a slash at the end",
            spec("portal/url", json!("https://water.example/")),
        ),
        (
            "an issuer without https",
            spec("portal/oidc/issuer", json!("http://id.example")),
        ),
        (
            "an issuer with a query",
            spec("portal/oidc/issuer", json!("https://id.example/?a=b")),
        ),
        (
            "no ID token",
            spec("portal/oidc/scopes", json!(["profile"])),
        ),
        (
            "two scopes as one",
            spec("portal/oidc/scopes", json!(["openid profile"])),
        ),
        (
            "a client without an id",
            spec("portal/oidc/clientId", json!("")),
        ),
        (
            "a session of two days",
            spec("portal/sessionHours", json!(48)),
        ),
        ("no key at all", spec("portal/maxKeys", json!(0))),
        ("keys for no time", spec("portal/maxKeyDays", json!(0))),
    ];
    golden::check("refused-portals.txt", &refusals(&world, &cases));
    Ok(())
}

//! Golden files: what two typical specs are rendered to. `UPDATE_GOLDEN=1` writes them again.

use water_kit::golden;

use super::*;

fn rendered(spec: Value, with_optional_keys: bool) -> String {
    let spec: WaterDataApiSpec = serde_json::from_value(spec).unwrap();
    let facts = |keys: &[&str]| {
        keys.iter()
            .map(|key| ((*key).to_owned(), format!("of-{key}")))
            .collect()
    };
    let optional = |key| if with_optional_keys { key } else { "other" };
    let (ca, replica) = (optional("ca.crt"), optional("replica-url"));
    let secrets = SecretFacts {
        postgres: facts(&["owner-url", "reader-url", replica, ca]),
        redis: facts(&["operator-url", "gate-url", "portal-url", ca]),
        gate_store: Some("of-gate-store".into()),
        identity: IdentityFacts {
            signing: "of-identity".into(),
            accepted: "of-identity".into(),
        },
        portal: PortalFacts {
            client_secret: "of-client-secret".into(),
            ca: "of-ca".into(),
            seal_key: "of-seal-key".into(),
        },
    };
    let uid = "6c5d2a4e-0000-4000-8000-000000000001";
    let source = Source {
        name: "water-data",
        namespace: "water",
        uid,
        spec: &spec,
        secrets: &secrets,
    };
    let desired = render(source);
    desired
        .all()
        .map(|child| format!("---\n{}", serde_yaml_ng::to_string(&child.body).unwrap()))
        .collect()
}

fn minimal() -> Value {
    json!({
        "image": { "registry": "registry.example/water", "tag": "1.2.3" },
        "postgres": { "secretRef": { "name": "postgres" } },
        "redis": { "secretRef": { "name": "redis" } },
        "plans": [{ "name": "Enterprise", "access": "Allowed", "requestsPerMinute": 120, "requestsPerDay": 50000 }],
    })
}

fn full() -> Value {
    let mut spec = minimal();
    spec["image"]["pullSecrets"] = json!(["registry"]);
    spec["components"] = json!({ "gate": {
        "replicas": 3,
        "resources": { "requests": { "cpu": 1 }, "limits": { "memory": "1Gi" } },
    } });
    spec["postgres"]["connections"] = json!({ "departements": 3, "history": 16 });
    spec["exposure"] = json!({
        "ingress": {
            "className": "traefik",
            "host": "water.example",
            "tlsSecretName": "water-tls",
            "annotations": { "example.com/timeout": "75" },
        },
        "trustedProxies": ["10.0.0.0/8", "fd00::/8"],
    });
    spec["networkPolicy"] = json!({ "egress": [{ "cidr": "10.1.0.0/16", "ports": [5432, 6379] }] });
    spec["telemetry"] = json!({
        "logFilter": "info,water_gate=debug",
        "otlpEndpoint": "http://collector.observability:4318",
    });
    spec
}

#[test]
fn the_defaults_render_to_the_golden_file() {
    golden::check("minimal.yaml", &rendered(minimal(), false));
}

#[test]
fn everything_that_can_be_declared_renders_to_the_golden_file() {
    golden::check("full.yaml", &rendered(full(), true));
}

/// The full spec with a portal of which everything is declared.
fn with_portal() -> Value {
    let mut spec = full();
    spec["portal"] = json!({
        "url": "https://water.example",
        "replicas": 3,
        "resources": { "limits": { "memory": "512Mi" } },
        "oidc": {
            "issuer": "https://id.example/realms/water",
            "clientId": "water-portal",
            "clientSecretRef": { "name": "portal-client", "key": "client-secret" },
            "caRef": { "name": "id-authority" },
            "scopes": ["openid", "groups"],
            "accounts": { "claim": "/resource/roles", "pattern": "(?<account>.+)$()", "defaultPlan": "Enterprise" },
        },
        "sessionHours": 12,
        "maxKeys": 5,
        "maxKeyDays": 365,
    });
    spec
}

/// The documents that one text has and the other has not.
fn more<'a>(than: &str, text: &'a str) -> Vec<&'a str> {
    let known: Vec<&str> = than.split("---\n").collect();
    text.split("---\n")
        .filter(|document| !known.contains(document))
        .collect()
}

#[test]
fn what_a_portal_adds_and_changes_is_the_golden_file() {
    let (without, with) = (rendered(full(), true), rendered(with_portal(), true));
    golden::check("portal.yaml", &more(&without, &with).join("---\n"));
}

#[test]
fn a_portal_changes_the_way_in_and_who_may_ask_the_services_and_nothing_else() {
    let (without, with) = (rendered(full(), true), rendered(with_portal(), true));
    let changed = more(&with, &without);
    let named = |document: &&str| {
        let object: Value = serde_yaml_ng::from_str(document).unwrap();
        format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "")
    };
    let changed: Vec<String> = changed.iter().map(named).collect();
    assert_eq!(
        changed,
        [
            "NetworkPolicy water-data-departements",
            "NetworkPolicy water-data-history",
            "Ingress water-data",
        ]
    );
}

#[test]
fn a_portal_needs_no_more_than_an_address_and_a_client() {
    let mut spec = minimal();
    spec["portal"] = json!({
        "url": "https://water.example",
        "oidc": {
            "issuer": "https://id.example",
            "clientId": "water-portal",
            "clientSecretRef": { "name": "portal-client", "key": "client-secret" },
        },
    });
    let text = rendered(spec, false);
    let variable = |name: &str, value: &str| format!("- name: {name}\n          value: {value}\n");
    for (name, value) in [
        ("WATER_OIDC_SCOPES", "openid profile email"),
        ("WATER_ACCOUNTS_CLAIM", "groups"),
        ("WATER_SESSION_HOURS", "'8'"),
        ("WATER_MAX_KEYS", "'20'"),
    ] {
        assert!(text.contains(&variable(name, value)), "{name}");
    }
    for name in [
        "WATER_OIDC_CA",
        "WATER_MAX_KEY_DAYS",
        "WATER_ACCOUNTS_DEFAULT_PLAN",
    ] {
        assert!(!text.contains(name), "{name}");
    }
}

#[test]
fn what_is_disabled_is_not_rendered() {
    let mut spec = minimal();
    spec["networkPolicy"] = json!({ "mode": "Disabled" });
    spec["podDisruptionBudget"] = json!("Disabled");
    let text = rendered(spec, false);
    assert!(!text.contains("kind: NetworkPolicy") && !text.contains("kind: PodDisruptionBudget"));
}

#[test]
fn another_version_or_database_is_another_migration() {
    let name = |spec| {
        rendered(spec, false)
            .lines()
            .find(|line| line.contains("-migrate-"))
            .unwrap()
            .to_owned()
    };
    let mut other_version = minimal();
    other_version["image"]["tag"] = "1.2.4".into();
    let mut other_database = minimal();
    other_database["postgres"]["secretRef"]["name"] = "other".into();
    assert_eq!(name(minimal()), name(minimal()));
    assert_ne!(name(minimal()), name(other_version));
    assert_ne!(name(minimal()), name(other_database));
}

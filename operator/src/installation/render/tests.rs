//! Golden files: what two typical specs are rendered to. `UPDATE_GOLDEN=1` writes them anew.

use super::*;
use crate::golden;

fn rendered(spec: Value, with_optional_keys: bool) -> String {
    let spec: WaterDataApiSpec = serde_json::from_value(spec).unwrap();
    let facts = |keys: &[&str]| StoreFacts {
        fingerprints: keys
            .iter()
            .map(|key| ((*key).to_owned(), format!("of-{key}")))
            .collect(),
    };
    let optional = |key| if with_optional_keys { key } else { "other" };
    let (ca, replica) = (optional("ca.crt"), optional("replica-url"));
    let secrets = SecretFacts {
        postgres: facts(&["owner-url", "reader-url", replica, ca]),
        redis: facts(&["operator-url", "gate-url", ca]),
        identity: IdentityFacts {
            signing: "of-identity".into(),
            accepted: "of-identity".into(),
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

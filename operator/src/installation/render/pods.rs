//! The pods of every part: restricted Pod Security, one container, only its own secrets.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value, json};
use water_resources::schema::Quantities;
use water_resources::workload::Resources;

use super::super::manifest::{ChildKind, Manifest};
use super::{ADMIN_PORT, HTTP_PORT, Part, Source, StoreFacts};

/// The nobody of distroless images; no file in the images belongs to it.
const USER: u32 = 65532;
/// Unready, then serving on, so that load balancers hear of it (`WATER_STOP_DELAY_SECONDS`).
const STOP_DELAY_SECONDS: u32 = 5;
/// For requests under way (`WATER_DRAIN_SECONDS`).
const DRAIN_SECONDS: u32 = 20;
/// Both, and time to exit before the kubelet kills.
const GRACE_PERIOD_SECONDS: u32 = STOP_DELAY_SECONDS + DRAIN_SECONDS + 10;
/// How long a gate serves from memory after its last word to Redis (`WATER_GRACE_SECONDS`): the
/// longest that a revocation can wait for a gate that is cut off.
pub const GATE_GRACE: Duration = Duration::from_secs(120);
/// The annotation that tells pods of one template from those of another.
pub const CONFIG_HASH: &str = "waterdata.dev/config-hash";
const CA_FILE: &str = "ca.crt";

/// The ServiceAccount of a part's pods, without rights and without a token.
pub fn service_account(source: Source<'_>, part: Part) -> Manifest {
    let rest = json!({ "automountServiceAccountToken": false });
    source.manifest(ChildKind::ServiceAccount, source.child(part), part, rest)
}

/// The pod template of a part.
pub fn template(source: Source<'_>, part: Part) -> Value {
    let pull_secrets = source.spec.image.pull_secrets.iter();
    let mut spec = json!({
        "serviceAccountName": source.child(part),
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "containers": [container(source, part)],
    });
    if !source.spec.image.pull_secrets.is_empty() {
        spec["imagePullSecrets"] = pull_secrets.map(|name| json!({ "name": name })).collect();
    }
    if let Some(ca) = certificate_authority(source, part) {
        spec["volumes"] = json!([{
            "name": "ca",
            "secret": { "secretName": ca.secret, "items": [{ "key": CA_FILE, "path": CA_FILE }] },
        }]);
    }
    if part == Part::Migrations {
        spec["restartPolicy"] = "Never".into();
    } else {
        spec["terminationGracePeriodSeconds"] = GRACE_PERIOD_SECONDS.into();
        spec["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": source.selector(part) },
        }]);
    }
    json!({
        "metadata": {
            "labels": source.labels(part),
            "annotations": { CONFIG_HASH: config_hash(source, part) },
        },
        "spec": spec,
    })
}

fn container(source: Source<'_>, part: Part) -> Value {
    let mut container = json!({
        "name": part.component(),
        "image": source.image(part),
        "imagePullPolicy": format!("{:?}", source.spec.image.pull_policy),
        "env": environment(source, part),
        "resources": resources(source, part),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
    });
    if let Some(ca) = certificate_authority(source, part) {
        container["volumeMounts"] =
            json!([{ "name": "ca", "mountPath": ca.directory, "readOnly": true }]);
    }
    if part == Part::Migrations {
        container["args"] = json!(["migrate"]);
        return container;
    }
    let probe = |path: &str, period: u32, failures: u32| {
        json!({
            "httpGet": { "path": path, "port": "admin" },
            "periodSeconds": period,
            "timeoutSeconds": 2,
            "failureThreshold": failures,
        })
    };
    container["ports"] = json!([
        { "name": "http", "containerPort": HTTP_PORT },
        { "name": "admin", "containerPort": ADMIN_PORT },
    ]);
    container["startupProbe"] = probe("/live", 1, 30);
    container["livenessProbe"] = probe("/live", 10, 3);
    container["readinessProbe"] = probe("/ready", 2, 2);
    container
}

fn environment(source: Source<'_>, part: Part) -> Vec<Value> {
    let spec = source.spec;
    let plain = |name: &str, value: String| json!({ "name": name, "value": value });
    let secret = |name: &str, secret: &str, key: &str| {
        let reference = json!({ "name": secret, "key": key });
        json!({ "name": name, "valueFrom": { "secretKeyRef": reference } })
    };
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let postgres = |key: &str| secret("WATER_POSTGRES_URL", &spec.postgres.secret_ref.name, key);
    let identity = format!("{}-identity", source.name);
    let mut variables = match part {
        Part::Migrations => vec![postgres("owner-url")],
        Part::Departements | Part::History => vec![
            postgres(reader_url(source, part)),
            plain(
                "WATER_POSTGRES_CONNECTIONS",
                connections(source, part).to_string(),
            ),
            secret("WATER_IDENTITY_CURRENT", &identity, "current"),
            secret("WATER_IDENTITY_NEXT", &identity, "next"),
        ],
        Part::Gate => vec![
            secret("WATER_REDIS_URL", &spec.redis.secret_ref.name, "gate-url"),
            secret("WATER_IDENTITY_CURRENT", &identity, "current"),
            plain(
                "WATER_INSTANCE",
                format!("{}.{}", source.namespace, source.name),
            ),
            field("WATER_POD_NAME", "metadata.name"),
            field("WATER_POD_UID", "metadata.uid"),
            plain("WATER_GRACE_SECONDS", GATE_GRACE.as_secs().to_string()),
            plain(
                "WATER_DEPARTEMENTS_ADDRESS",
                format!("{}:80", source.child(Part::Departements)),
            ),
            plain(
                "WATER_HISTORY_ADDRESS",
                format!("{}:80", source.child(Part::History)),
            ),
            plain(
                "WATER_TRUSTED_PROXIES",
                spec.exposure.trusted_proxies.join(","),
            ),
        ],
    };
    if let Some(ca) = certificate_authority(source, part) {
        variables.push(plain(ca.variable, format!("{}/{CA_FILE}", ca.directory)));
    }
    if part != Part::Migrations {
        variables.push(plain(
            "WATER_STOP_DELAY_SECONDS",
            STOP_DELAY_SECONDS.to_string(),
        ));
        variables.push(plain("WATER_DRAIN_SECONDS", DRAIN_SECONDS.to_string()));
        let telemetry = &spec.telemetry;
        let set = [
            ("WATER_LOG", &telemetry.log_filter),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &telemetry.otlp_endpoint),
        ];
        let set = set
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)));
        variables.extend(set.map(|(name, value)| plain(name, value)));
    }
    variables
}

/// The key with the URL that a service reads from. Histories come from a replica if there is one.
fn reader_url(source: Source<'_>, part: Part) -> &'static str {
    const REPLICA_URL: &str = "replica-url";
    if part == Part::History && source.secrets.postgres.has(REPLICA_URL) {
        REPLICA_URL
    } else {
        "reader-url"
    }
}

fn connections(source: Source<'_>, part: Part) -> i32 {
    let connections = &source.spec.postgres.connections;
    if part == Part::History {
        connections.history
    } else {
        connections.departements
    }
}

/// Where a part finds the certificate of its store's authority, if the store's Secret has one.
struct CertificateAuthority<'a> {
    secret: &'a str,
    directory: &'static str,
    variable: &'static str,
}

fn certificate_authority(source: Source<'_>, part: Part) -> Option<CertificateAuthority<'_>> {
    let (facts, ca) = match part {
        Part::Gate => (
            &source.secrets.redis,
            CertificateAuthority {
                secret: &source.spec.redis.secret_ref.name,
                directory: "/etc/water/redis",
                variable: "WATER_REDIS_CA_FILE",
            },
        ),
        Part::Departements | Part::History | Part::Migrations => (
            &source.secrets.postgres,
            CertificateAuthority {
                secret: &source.spec.postgres.secret_ref.name,
                directory: "/etc/water/postgres",
                variable: "WATER_POSTGRES_CA_FILE",
            },
        ),
    };
    facts.has(CA_FILE).then_some(ca)
}

/// Changes whenever a secret that the part uses does, which rolls its pods.
fn config_hash(source: Source<'_>, part: Part) -> String {
    let store = |facts: &StoreFacts, key| format!("{}{}", facts.of(key), facts.of(CA_FILE));
    let secrets = source.secrets;
    match part {
        Part::Gate => {
            let signing = &secrets.identity.signing;
            super::job::short_hash(&[&store(&secrets.redis, "gate-url"), signing])
        }
        Part::Departements | Part::History => {
            let accepted = &secrets.identity.accepted;
            let url = reader_url(source, part);
            super::job::short_hash(&[&store(&secrets.postgres, url), accepted])
        }
        Part::Migrations => super::job::short_hash(&[&store(&secrets.postgres, "owner-url")]),
    }
}

/// What is declared, over defaults that the load tests were met with.
fn resources(source: Source<'_>, part: Part) -> Value {
    let components = &source.spec.components;
    let none = Resources::default();
    let (declared, cpu, memory, memory_limit) = match part {
        Part::Gate => (&components.gate.resources, "100m", "64Mi", "512Mi"),
        Part::Departements => (&components.departements.resources, "50m", "32Mi", "128Mi"),
        Part::History => (&components.history.resources, "50m", "32Mi", "256Mi"),
        Part::Migrations => (&none, "50m", "32Mi", "128Mi"),
    };
    let over = |defaults: &[(&str, &str)], declared: &Quantities| {
        let mut quantities: Map<String, Value> = defaults
            .iter()
            .map(|(name, quantity)| ((*name).to_owned(), (*quantity).into()))
            .collect();
        // As text, which is how the API server keeps it.
        let declared = declared.iter().map(|(name, quantity)| match quantity {
            IntOrString::Int(number) => (name.clone(), number.to_string().into()),
            IntOrString::String(text) => (name.clone(), text.as_str().into()),
        });
        quantities.extend(declared);
        quantities
    };
    json!({
        "requests": over(&[("cpu", cpu), ("memory", memory)], &declared.requests),
        "limits": over(&[("memory", memory_limit)], &declared.limits),
    })
}

//! The pods of every part: restricted Pod Security, one container, only its own secrets.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value, json};
use water_resources::schema::Quantities;
use water_resources::workload::Resources;

use super::super::manifest::{ChildKind, Manifest};
use super::environment::{self, CA_FILE};
use super::{ADMIN_PORT, HTTP_PORT, Part, Source};

/// User of the pods: the nobody of distroless images; no file in the images belongs to it.
const USER: u32 = 65532;
/// Time for unreadiness and requests under way, and time to exit before the kubelet kills.
const GRACE_PERIOD_SECONDS: u32 = environment::STOP_DELAY_SECONDS + environment::DRAIN_SECONDS + 10;
/// The annotation that distinguishes pods of one template from those of another.
pub const CONFIG_HASH: &str = "waterdata.dev/config-hash";

/// Annotation of gates' pods that distinguishes the Redis whose key directory they read from another one. Unlike
/// [`CONFIG_HASH`] it stays the same when a password changes.
pub const GATE_STORE: &str = "waterdata.dev/gate-store";

/// The ServiceAccount of a part's pods, without rights and without a token.
pub fn service_account(source: Source<'_>, part: Part) -> Manifest {
    let rest = json!({ "automountServiceAccountToken": false });
    source.named(ChildKind::ServiceAccount, source.child(part), part, rest)
}

pub fn template(source: Source<'_>, part: Part) -> Value {
    let pull_secrets = source.spec.image.pull_secrets.iter();
    let mut spec = json!({
        "serviceAccountName": source.child(part),
        // The portal alone asks the API server.
        "automountServiceAccountToken": part == Part::Portal,
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
    if let Some(ca) = environment::certificate_authority(source, part) {
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
    let mut annotations = json!({ CONFIG_HASH: environment::hash(source, part) });
    if let (Part::Gate, Some(store)) = (part, &source.secrets.gate_store) {
        annotations[GATE_STORE] = store.as_str().into();
    }
    json!({
        "metadata": { "labels": source.labels(part), "annotations": annotations },
        "spec": spec,
    })
}

fn container(source: Source<'_>, part: Part) -> Value {
    let mut container = json!({
        "name": part.component(),
        "image": source.image(part),
        "imagePullPolicy": format!("{:?}", source.spec.image.pull_policy),
        "env": environment::variables(source, part),
        "resources": resources(source, part),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
    });
    if let Some(ca) = environment::certificate_authority(source, part) {
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

/// Declared resources, over defaults that the load tests were met with.
fn resources(source: Source<'_>, part: Part) -> Value {
    let components = &source.spec.components;
    let none = Resources::default();
    let portal = source.spec.portal.as_ref().map(|portal| &portal.resources);
    let (declared, cpu, memory, memory_limit) = match part {
        Part::Gate => (&components.gate.resources, "100m", "64Mi", "512Mi"),
        Part::Departements => (&components.departements.resources, "50m", "32Mi", "128Mi"),
        Part::History => (&components.history.resources, "50m", "32Mi", "256Mi"),
        Part::Migrations => (&none, "50m", "32Mi", "128Mi"),
        Part::Portal => (portal.unwrap_or(&none), "50m", "64Mi", "256Mi"),
    };
    let over = |defaults: &[(&str, &str)], declared: &Quantities| {
        let mut quantities: Map<String, Value> = defaults
            .iter()
            .map(|(name, quantity)| ((*name).to_owned(), (*quantity).into()))
            .collect();
        // The API server keeps text, which it may write otherwise: `1024Mi` as `1Gi`.
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

//! Services, NetworkPolicies and the Ingress.

use serde_json::{Value, json};
use water_resources::exposure::IngressSpec;

use super::super::manifest::{ChildKind, Manifest};
use super::{ADMIN_PORT, HTTP_PORT, Part, Source};

/// The stable address of a serving part.
pub fn service(source: Source<'_>, part: Part) -> Manifest {
    let mut ports = vec![json!({ "name": "http", "port": 80, "targetPort": "http" })];
    if part == Part::Departements {
        // The operator asks here what data is loaded.
        ports.push(json!({ "name": "admin", "port": ADMIN_PORT, "targetPort": "admin" }));
    }
    let spec = json!({ "selector": source.selector(part), "ports": ports });
    source.manifest(
        ChildKind::Service,
        source.child(part),
        part,
        json!({ "spec": spec }),
    )
}

/// The connections that a part's pods accept: anybody to the gate, the gate alone to the services, nobody to
/// the migration. The admin port, which tells health and numbers only, is open to all.
pub fn policy(source: Source<'_>, part: Part) -> Manifest {
    let tcp = |port: u16| json!({ "protocol": "TCP", "port": port });
    let from_gate = json!([{ "podSelector": { "matchLabels": source.selector(Part::Gate) } }]);
    let ingress = match part {
        Part::Gate => json!([{ "ports": [tcp(HTTP_PORT), tcp(ADMIN_PORT)] }]),
        Part::Departements | Part::History => json!([
            { "from": from_gate, "ports": [tcp(HTTP_PORT)] },
            { "ports": [tcp(ADMIN_PORT)] },
        ]),
        Part::Migrations => json!([]),
    };
    let mut spec = json!({
        "podSelector": { "matchLabels": source.selector(part) },
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    });
    if !source.spec.network_policy.egress.is_empty() {
        spec["policyTypes"] = json!(["Ingress", "Egress"]);
        spec["egress"] = egress(source, part).into();
    }
    source.manifest(
        ChildKind::NetworkPolicy,
        source.child(part),
        part,
        json!({ "spec": spec }),
    )
}

/// DNS, the services for the gate, a collector of spans in the cluster, and the networks that are
/// listed.
fn egress(source: Source<'_>, part: Part) -> Vec<Value> {
    let dns =
        json!({ "ports": [{ "protocol": "UDP", "port": 53 }, { "protocol": "TCP", "port": 53 }] });
    let services = [Part::Departements, Part::History].map(|service| {
        json!({
            "to": [{ "podSelector": { "matchLabels": source.selector(service) } }],
            "ports": [{ "protocol": "TCP", "port": HTTP_PORT }],
        })
    });
    let listed = source.spec.network_policy.egress.iter().map(|egress| {
        let mut rule = json!({ "to": [{ "ipBlock": { "cidr": egress.cidr } }] });
        if !egress.ports.is_empty() {
            rule["ports"] = egress
                .ports
                .iter()
                .map(|port| json!({ "protocol": "TCP", "port": port }))
                .collect();
        }
        rule
    });
    let to_services = services.into_iter().filter(|_| part == Part::Gate);
    let collector = source.spec.telemetry.otlp_port().map(|port| {
        json!({
            "to": [{ "namespaceSelector": {} }],
            "ports": [{ "protocol": "TCP", "port": port }],
        })
    });
    let to_collector = collector.filter(|_| part != Part::Migrations);
    [dns]
        .into_iter()
        .chain(to_services)
        .chain(to_collector)
        .chain(listed)
        .collect()
}

/// The way in, to the gate only.
pub fn ingress(source: Source<'_>, ingress: &IngressSpec) -> Manifest {
    let backend =
        json!({ "service": { "name": source.child(Part::Gate), "port": { "name": "http" } } });
    let mut spec = json!({
        "rules": [{
            "host": ingress.host,
            "http": { "paths": [{ "path": "/api/v1", "pathType": "Prefix", "backend": backend }] },
        }],
    });
    if let Some(class) = &ingress.class_name {
        spec["ingressClassName"] = class.as_str().into();
    }
    if let Some(secret) = &ingress.tls_secret_name {
        spec["tls"] = json!([{ "hosts": [ingress.host], "secretName": secret }]);
    }
    let mut manifest = source.manifest(
        ChildKind::Ingress,
        source.name.to_owned(),
        Part::Gate,
        json!({ "spec": spec }),
    );
    if !ingress.annotations.is_empty() {
        manifest.body["metadata"]["annotations"] = json!(ingress.annotations);
    }
    manifest
}

//! Services, NetworkPolicies and the Ingress.

use serde_json::{Value, json};
use water_resources::exposure::IngressSpec;

use super::super::manifest::{ChildKind, Manifest};
use super::{ADMIN_PORT, HTTP_PORT, Part, Source};

pub fn service(source: Source<'_>, part: Part) -> Manifest {
    let mut ports = vec![json!({ "name": "http", "port": 80, "targetPort": "http" })];
    if matches!(part, Part::Departements | Part::Portal) {
        // The operator asks here what data is loaded, and whether people can sign in.
        ports.push(json!({ "name": "admin", "port": ADMIN_PORT, "targetPort": "admin" }));
    }
    let spec = json!({ "selector": source.selector(part), "ports": ports });
    source.manifest(ChildKind::Service, part, spec)
}

/// The connections that a part's pods accept: anybody to gate and portal, these two alone to the services, nobody to
/// the migration. The admin port, which shows health and numbers only, is open to all.
pub fn policy(source: Source<'_>, part: Part) -> Manifest {
    let tcp = |port: u16| json!({ "protocol": "TCP", "port": port });
    let portal = source.spec.portal.as_ref().map(|_| Part::Portal);
    let fronts: Vec<Value> = [Part::Gate]
        .into_iter()
        .chain(portal)
        .map(|front| json!({ "podSelector": { "matchLabels": source.selector(front) } }))
        .collect();
    let ingress = match part {
        Part::Gate | Part::Portal => json!([{ "ports": [tcp(HTTP_PORT), tcp(ADMIN_PORT)] }]),
        Part::Departements | Part::History => json!([
            { "from": fronts, "ports": [tcp(HTTP_PORT)] },
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
    source.manifest(ChildKind::NetworkPolicy, part, spec)
}

/// Connections that a part's pods make: DNS, the services for gate and portal, a collector of spans in the cluster, and
/// the networks that are listed.
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
    let is_front = matches!(part, Part::Gate | Part::Portal);
    let to_services = services.into_iter().filter(|_| is_front);
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

/// The way in. Without a portal: to the gate's API. With one the gate answers all of `/api`, also what it
/// knows nothing of, and the portal everything else.
pub fn ingress(source: Source<'_>, ingress: &IngressSpec) -> Manifest {
    let path = |path: &str, part: Part| {
        let backend = json!({ "name": source.child(part), "port": { "name": "http" } });
        json!({ "path": path, "pathType": "Prefix", "backend": { "service": backend } })
    };
    let paths = match source.spec.portal {
        None => json!([path("/api/v1", Part::Gate)]),
        Some(_) => json!([path("/api", Part::Gate), path("/", Part::Portal)]),
    };
    let mut spec = json!({ "rules": [{ "host": ingress.host, "http": { "paths": paths } }] });
    if let Some(class) = &ingress.class_name {
        spec["ingressClassName"] = class.as_str().into();
    }
    if let Some(secret) = &ingress.tls_secret_name {
        spec["tls"] = json!([{ "hosts": [ingress.host], "secretName": secret }]);
    }
    let spec = json!({ "spec": spec });
    let mut manifest = source.named(ChildKind::Ingress, source.name.into(), Part::Gate, spec);
    if !ingress.annotations.is_empty() {
        manifest.body["metadata"]["annotations"] = json!(ingress.annotations);
    }
    manifest
}

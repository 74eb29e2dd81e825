//! The parts of a WaterDataApi that say who can reach whom.

use kube::{KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::{WaterDataApi, schema};

/// Switch of a feature.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Switch {
    /// On.
    #[default]
    Enabled,
    /// Off.
    Disabled,
}

/// Access of clients to the gate: by at most one of the two, or by its Service alone.
#[derive(KubeSchema, Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.ingress) || !has(self.httpRoute)").message(
        "spec.exposure has both ingress and httpRoute, which would answer for the same host: remove one of them"
    ),
    validation = Rule::new(
        "!has(self.url) || self.url.matches('^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?$')"
    ).field_path(".url").message(
        "spec.exposure.url is not http:// or https://, a lower-case host and perhaps a port: give the address that \
         clients use, without a path or a slash at its end, such as https://water.example"
    )
)]
pub struct Exposure {
    /// The address that clients use, such as `https://water.example`: the `base-url` in the Secrets of keys.
    /// Left out: the portal's address if its host is that of the Ingress or HTTPRoute, else that host, with
    /// https where `tlsSecretName` names a certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub url: Option<String>,
    /// Access by an Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressSpec>,
    /// Access by an HTTPRoute of the Gateway API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_route: Option<HttpRouteSpec>,
    /// Networks of proxies whose `X-Forwarded-For` is believed. All clients behind a proxy that is missing
    /// here are one client, with one allowance of wrong keys and 256 connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(max = 43), regex(pattern = r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$"))
    )]
    pub trusted_proxies: Vec<String>,
}

impl Exposure {
    /// Returns the host name by which an Ingress or HTTPRoute answers, the first of several.
    pub fn host(&self) -> Option<&str> {
        let by_ingress = self.ingress.as_ref().map(|ingress| &ingress.host);
        let by_route = || self.http_route.as_ref()?.hostnames.first();
        by_ingress.or_else(by_route).map(String::as_str)
    }

    /// Whether the Ingress ends TLS with its own certificate.
    fn has_certificate(&self) -> bool {
        let ingress = self.ingress.as_ref();
        ingress.is_some_and(|ingress| ingress.tls_secret_name.is_some())
    }
}

impl WaterDataApi {
    /// Returns the address at which clients reach the API, without a slash at its end. TLS may end where nothing here
    /// shows it, such as at a load balancer: then `spec.exposure.url` or the portal's address says so.
    pub fn url(&self) -> String {
        let exposure = &self.spec.exposure;
        if let Some(url) = &exposure.url {
            return url.clone();
        }
        let Some(host) = exposure.host() else {
            let namespace = self.namespace().unwrap_or_default();
            return format!("http://{}-gate.{namespace}.svc", self.name_any());
        };
        let portal = self
            .spec
            .portal
            .as_ref()
            .filter(|portal| portal.host() == host);
        match portal {
            Some(portal) => portal.url.clone(),
            None if exposure.has_certificate() => format!("https://{host}"),
            None => format!("http://{host}"),
        }
    }
}

/// An Ingress before the gate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressSpec {
    /// The class. Left out: the cluster's default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub class_name: Option<String>,
    /// The host name of the API.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")
    )]
    pub host: String,
    /// The Secret with the host's certificate. Left out: plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tls_secret_name: Option<String>,
    /// Annotations for the controller of the class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::annotations")]
    pub annotations: BTreeMap<String, String>,
}

/// An HTTPRoute before the gate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteSpec {
    /// The Gateways that carry it.
    #[schemars(length(min = 1, max = 8))]
    pub parent_refs: Vec<ParentRef>,
    /// The host names of the API.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 253)))]
    pub hostnames: Vec<String>,
}

/// A Gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParentRef {
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace. Left out: the WaterDataApi's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// The listener. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
}

/// The NetworkPolicies of the pods.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NetworkPolicySpec {
    /// Enabled makes the policies, Disabled none.
    #[serde(default)]
    pub mode: Switch,
    /// Networks that the pods may connect to, the stores' among them. Empty: any, since a policy cannot
    /// name a host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub egress: Vec<Egress>,
}

/// A network that the pods may connect to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Egress {
    /// The network.
    #[schemars(length(max = 43), regex(pattern = r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$"))]
    pub cidr: String,
    /// TCP ports. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(range(min = 1, max = 65_535)))]
    pub ports: Vec<i32>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn url(exposure: Value, portal: Option<&str>) -> String {
        let mut spec = json!({
            "image": { "registry": "registry.example", "tag": "1" },
            "postgres": { "secretRef": { "name": "postgres" } },
            "redis": { "secretRef": { "name": "redis" } },
            "plans": [{ "name": "Enterprise", "access": "Allowed" }],
            "exposure": exposure,
        });
        if let Some(url) = portal {
            let oidc = json!({
                "issuer": "https://id.example",
                "clientId": "water",
                "clientSecretRef": { "name": "portal", "key": "secret" },
                "accounts": { "claim": "groups", "pattern": "^(.+)$" },
            });
            spec["portal"] = json!({ "url": url, "oidc": oidc });
        }
        let mut api = WaterDataApi::new("water-data", serde_json::from_value(spec).unwrap());
        api.metadata.namespace = Some("water".into());
        api.url()
    }

    #[test]
    fn clients_are_sent_to_https_wherever_tls_ends() {
        let plain = || json!({ "ingress": { "host": "water.example" } });
        let mut with_certificate = plain();
        with_certificate["ingress"]["tlsSecretName"] = "certificate".into();
        let mut declared = plain();
        declared["url"] = "https://water.example:8443".into();
        let route = json!({ "httpRoute": {
            "parentRefs": [{ "name": "gateway" }], "hostnames": ["water.example", "other.example"],
        } });
        let portal = Some("https://water.example:444");
        let elsewhere = Some("https://portal.example");
        for (exposure, portal, expected) in [
            (json!({}), portal, "http://water-data-gate.water.svc"),
            (plain(), None, "http://water.example"),
            (plain(), elsewhere, "http://water.example"),
            (plain(), portal, "https://water.example:444"),
            (with_certificate, elsewhere, "https://water.example"),
            (route, portal, "https://water.example:444"),
            (declared, portal, "https://water.example:8443"),
        ] {
            let shown = format!("{exposure} {portal:?}");
            assert_eq!(url(exposure, portal), expected, "{shown}");
        }
    }
}

//! The parts of a WaterDataApi that say who can reach whom.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::schema;

/// On or off.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Switch {
    /// On.
    #[default]
    Enabled,
    /// Off.
    Disabled,
}

/// How clients reach the gate: by at most one of the two, or by its Service alone.
#[derive(KubeSchema, Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.ingress) || !has(self.httpRoute)").message(
    "spec.exposure has both ingress and httpRoute, which would answer for the same host: remove one of them"
))]
pub struct Exposure {
    /// By an Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressSpec>,
    /// By an HTTPRoute of the Gateway API.
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
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace. Left out: the WaterDataApi's own.
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
    /// Whether policies are made at all.
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
    /// Its TCP ports. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(range(min = 1, max = 65_535)))]
    pub ports: Vec<i32>,
}

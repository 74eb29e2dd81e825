//! The part of a WaterDataApi about the portal of the account holders: whether there is one, its address, and the
//! identity provider.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use water_domain::PlanName;

use crate::workload::Resources;

/// The account holders' portal: pages in which they sign in, read their data and manage their keys.
#[derive(KubeSchema, Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "self.url.matches('^https://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?$')"
).field_path(".url").message(
    "spec.portal.url is not https://, a lower-case host and perhaps a port: give the address that browsers use, \
     without a path or a slash at its end, such as https://water.example; without https browsers keep no session"
))]
pub struct Portal {
    /// The portal's own address, such as `https://water.example`. The addresses that the identity
    /// provider sends browsers back to begin with it.
    #[schemars(length(min = 1, max = 255))]
    pub url: String,
    /// Number of pods; 2 when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: Option<i32>,
    /// Resources of each pod; a missing one has a default.
    #[serde(default)]
    pub resources: Resources,
    /// Identity provider that signs account holders in, by OpenID Connect.
    pub oidc: Oidc,
    /// Hours after which a session ends at the latest; 30 minutes without a request end it too.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 24))]
    pub session_hours: i32,
    /// The most keys that an account may have.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_keys: i32,
    /// The most days that a key of the portal may be valid. Left out: a key may be valid for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3650))]
    pub max_key_days: Option<i32>,
}

impl Portal {
    /// Returns the host of its address.
    pub fn host(&self) -> &str {
        let host = self.url.trim_start_matches("https://");
        host.split_once(':').map_or(host, |(host, _)| host)
    }

    /// Returns the number of pods: two, so that one can go.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(2)
    }
}

fn eight() -> i32 {
    8
}

fn twenty() -> i32 {
    20
}

/// The identity provider, and the meaning of its claims.
#[derive(KubeSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "self.issuer.matches('^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?(/[A-Za-z0-9._~%/-]*)?$')"
    ).field_path(".issuer").message(
        "spec.portal.oidc.issuer is not an https address without a query: give the issuer as the provider's \
         /.well-known/openid-configuration names it, such as https://id.example/realms/water"
    ),
    validation = Rule::new("'openid' in self.scopes").field_path(".scopes").message(
        "spec.portal.oidc.scopes lacks openid, without which the provider gives no ID token: add it"
    )
)]
pub struct Oidc {
    /// The provider's issuer, exactly as its discovery document and its tokens spell it.
    #[schemars(length(min = 1, max = 512))]
    pub issuer: String,
    /// The portal's client id at the provider.
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[\x21-\x7e]+$"))]
    pub client_id: String,
    /// The client's secret.
    pub client_secret_ref: KeyOfSecret,
    /// The authority that signed the provider's certificate. Left out: the public authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<KeyOfConfigMap>,
    /// Scopes of a sign-in. One that the provider does not know fails it.
    #[serde(default = "scopes")]
    #[schemars(
        length(min = 1, max = 16),
        inner(
            length(min = 1, max = 128),
            regex(pattern = r"^[\x21\x23-\x5b\x5d-\x7e]+$")
        )
    )]
    pub scopes: Vec<String>,
    /// Accounts that somebody acts for, and their plans.
    #[serde(default)]
    pub accounts: Accounts,
}

fn scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).into()
}

/// A value of a Secret of the same namespace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeyOfSecret {
    /// The Secret's name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub name: String,
    /// The key of its data.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    pub key: String,
}

/// A value of a ConfigMap of the same namespace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeyOfConfigMap {
    /// The ConfigMap's name.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub name: String,
    /// The key of its data, which holds PEM.
    #[serde(default = "ca_crt")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    pub key: String,
}

fn ca_crt() -> String {
    "ca.crt".into()
}

/// Accounts that somebody acts for: values of a claim of the ID token, taken apart by a pattern.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accounts {
    /// The claim, a text or a list of texts. With a slash in front: a JSON pointer (RFC 6901).
    #[serde(default = "groups")]
    #[schemars(length(min = 1, max = 255))]
    pub claim: String,
    /// A regular expression that a whole value must match, with the groups `account`, perhaps `plan` and
    /// perhaps `role` (nothing, or `viewer`). Values that do not match are not ours.
    #[serde(default = "pattern")]
    #[schemars(length(min = 1, max = 512))]
    pub pattern: String,
    /// Plan for values that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_plan: Option<PlanName>,
}

fn groups() -> String {
    "groups".into()
}

fn pattern() -> String {
    "water:(?<account>[^:]+):(?<plan>[^:]+)(:(?<role>viewer))?".into()
}

impl Default for Accounts {
    fn default() -> Self {
        Self {
            claim: groups(),
            pattern: pattern(),
            default_plan: None,
        }
    }
}

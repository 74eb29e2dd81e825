//! Settings of the programs in the pods: variables, Secrets, certificates of authorities.

use std::time::Duration;

use serde_json::{Value, json};
use water_resources::portal::Portal;

use super::super::fingerprint::short_hash;
use super::{Fingerprints, Part, Source};

/// Time for which an unready pod serves on, so that load balancers notice (`WATER_STOP_DELAY_SECONDS`).
pub const STOP_DELAY_SECONDS: u32 = 5;
/// Time for requests under way (`WATER_DRAIN_SECONDS`).
pub const DRAIN_SECONDS: u32 = 20;
/// Time for which a gate serves from memory after its last word to Redis (`WATER_GRACE_SECONDS`): the longest that a
/// revocation can wait for a gate that is cut off.
pub const GATE_GRACE: Duration = Duration::from_secs(120);
/// The key of a store's Secret that holds its authority's certificate.
pub const CA_FILE: &str = "ca.crt";

pub fn variables(source: Source<'_>, part: Part) -> Vec<Value> {
    let spec = source.spec;
    let postgres = |key: &str| secret("WATER_POSTGRES_URL", &spec.postgres.secret_ref.name, key);
    let mut variables = match part {
        Part::Migrations => vec![postgres("owner-url")],
        Part::Departements | Part::History => vec![
            postgres(reader_url(source, part)),
            plain(
                "WATER_POSTGRES_CONNECTIONS",
                connections(source, part).to_string(),
            ),
            identity(source, "WATER_IDENTITY_CURRENT", "current"),
            identity(source, "WATER_IDENTITY_NEXT", "next"),
        ],
        Part::Gate => {
            let pod = [
                field("WATER_POD_NAME", "metadata.name"),
                field("WATER_POD_UID", "metadata.uid"),
                plain("WATER_GRACE_SECONDS", GATE_GRACE.as_secs().to_string()),
            ];
            front(source, "gate-url", pod.into())
        }
        Part::Portal => {
            let portal = spec.portal.iter().flat_map(|portal| own(source, portal));
            front(source, PORTAL_URL, portal.collect())
        }
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

/// The key of Redis' Secret with the portal's URL.
const PORTAL_URL: &str = "portal-url";

/// Variables of the parts that clients reach: gate and portal.
fn front(source: Source<'_>, redis_url: &str, own: Vec<Value>) -> Vec<Value> {
    let address = |part| format!("{}:80", source.child(part));
    let before = [
        secret(
            "WATER_REDIS_URL",
            &source.spec.redis.secret_ref.name,
            redis_url,
        ),
        identity(source, "WATER_IDENTITY_CURRENT", "current"),
        plain(
            "WATER_INSTANCE",
            format!("{}.{}", source.namespace, source.name),
        ),
    ];
    let after = [
        plain("WATER_DEPARTEMENTS_ADDRESS", address(Part::Departements)),
        plain("WATER_HISTORY_ADDRESS", address(Part::History)),
        plain(
            "WATER_TRUSTED_PROXIES",
            source.spec.exposure.trusted_proxies.join(","),
        ),
    ];
    before.into_iter().chain(own).chain(after).collect()
}

/// Variables of the portal alone.
fn own(source: Source<'_>, portal: &Portal) -> Vec<Value> {
    let oidc = &portal.oidc;
    let client = &oidc.client_secret_ref;
    let mut variables = vec![
        plain("WATER_PORTAL_URL", portal.url.clone()),
        plain("WATER_OIDC_ISSUER", oidc.issuer.clone()),
        text("WATER_OIDC_CLIENT_ID", &oidc.client_id),
        secret("WATER_OIDC_CLIENT_SECRET", &client.name, &client.key),
        text("WATER_OIDC_SCOPES", &oidc.scopes.join(" ")),
        text("WATER_ACCOUNTS_CLAIM", &oidc.accounts.claim),
        text("WATER_ACCOUNTS_PATTERN", &oidc.accounts.pattern),
        secret(
            "WATER_PORTAL_SEAL_KEY",
            &source.child(Part::Portal),
            "seal-key",
        ),
        plain("WATER_SESSION_HOURS", portal.session_hours.to_string()),
        plain("WATER_MAX_KEYS", portal.max_keys.to_string()),
    ];
    if let Some(ca) = &oidc.ca_ref {
        let reference = json!({ "name": ca.name, "key": ca.key });
        let ca = json!({ "configMapKeyRef": reference });
        variables.push(json!({ "name": "WATER_OIDC_CA", "valueFrom": ca }));
    }
    if let Some(plan) = &oidc.accounts.default_plan {
        variables.push(plain("WATER_ACCOUNTS_DEFAULT_PLAN", plan.to_string()));
    }
    if let Some(days) = portal.max_key_days {
        variables.push(plain("WATER_MAX_KEY_DAYS", days.to_string()));
    }
    variables
}

fn identity(source: Source<'_>, name: &str, key: &str) -> Value {
    secret(name, &format!("{}-identity", source.name), key)
}

fn plain(name: &str, value: String) -> Value {
    json!({ "name": name, "value": value })
}

/// A value in which the kubelet shall not look for `$(VARIABLE)`.
fn text(name: &str, value: &str) -> Value {
    plain(name, value.replace('$', "$$"))
}

fn secret(name: &str, secret: &str, key: &str) -> Value {
    let reference = json!({ "name": secret, "key": key });
    json!({ "name": name, "valueFrom": { "secretKeyRef": reference } })
}

fn field(name: &str, path: &str) -> Value {
    json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } })
}

/// The key with the URL that a service reads from. Histories come from a replica if there is one.
fn reader_url(source: Source<'_>, part: Part) -> &'static str {
    const REPLICA_URL: &str = "replica-url";
    if part == Part::History && source.secrets.postgres.contains_key(REPLICA_URL) {
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

/// Location of the certificate of a part's store's authority, if the store's Secret has one.
pub struct CertificateAuthority<'a> {
    pub secret: &'a str,
    pub directory: &'static str,
    variable: &'static str,
}

pub fn certificate_authority(source: Source<'_>, part: Part) -> Option<CertificateAuthority<'_>> {
    let (facts, ca) = match part {
        Part::Gate | Part::Portal => (
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
    facts.contains_key(CA_FILE).then_some(ca)
}

/// Hash that changes whenever a secret that the part uses does, which rolls its pods.
pub fn hash(source: Source<'_>, part: Part) -> String {
    let store = |facts: &Fingerprints, key| {
        let of = |key| facts.get(key).map_or("", String::as_str);
        format!("{}{}", of(key), of(CA_FILE))
    };
    let secrets = source.secrets;
    match part {
        Part::Gate => {
            let signing = &secrets.identity.signing;
            short_hash(&[&store(&secrets.redis, "gate-url"), signing])
        }
        Part::Departements | Part::History => {
            let accepted = &secrets.identity.accepted;
            let url = reader_url(source, part);
            short_hash(&[&store(&secrets.postgres, url), accepted])
        }
        Part::Migrations => short_hash(&[&store(&secrets.postgres, "owner-url")]),
        Part::Portal => short_hash(&[
            &store(&secrets.redis, PORTAL_URL),
            &secrets.identity.signing,
            &secrets.portal.client_secret,
            &secrets.portal.ca,
            &secrets.portal.seal_key,
        ]),
    }
}

//! Prerequisites of the portal that the other parts do not need: its ServiceAccount, its client's secret, the
//! certificate of the provider's authority, `portal-url`, and its key in the Secret `<name>-portal`.
//!
//! A problem with them holds up the portal alone: gate and services are rolled out all the same.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::ResourceExt;
use regex::Regex;
use water_resources::portal::{Accounts, KeyOfConfigMap, Portal};
use water_resources::{WaterDataApi, WaterDataApiSpec};

use super::fingerprint::fingerprint;
use super::own_secret::{self, is_random};
use super::render::{PortalFacts, SecretFacts};
use super::secret_error::SecretError;
use crate::context::Context;

/// Key that seals what a browser keeps while its user signs in.
const SEAL_KEY: &str = "seal-key";

/// Fingerprints of what the portal uses, or the problems that block it, in words.
pub type PortalOutcome = Result<PortalFacts, String>;

/// A value that the portal uses, or the problem with it.
type PortalValue = Result<Vec<u8>, String>;

/// Reads all that `spec.portal` names, and makes the Secret `<name>-portal` when it does not exist. Without
/// `spec.portal` nothing is asked for.
pub async fn settle(
    api: &WaterDataApi,
    stores: &SecretFacts,
    salt: &[u8],
    context: &Context,
) -> Result<PortalOutcome, SecretError> {
    let Some(portal) = &api.spec.portal else {
        return Ok(Ok(PortalFacts::default()));
    };
    let mut problems = contradictions(portal, &api.spec);
    if !stores.redis.contains_key("portal-url") {
        let secret = &api.spec.redis.secret_ref.name;
        problems.push(format!(
            "the Secret {secret}, which spec.redis.secretRef.name names, lacks the key portal-url: add the URL of \
             the Redis user whose ACL line water-operator redis-acl prints for the portal"
        ));
    }
    let mut known = |found: PortalValue| match found {
        Ok(value) => fingerprint(salt, &value),
        Err(problem) => {
            problems.push(problem);
            String::new()
        }
    };
    let facts = PortalFacts {
        client_secret: known(client_secret(api, portal, context).await?),
        ca: match &portal.oidc.ca_ref {
            None => String::new(),
            Some(reference) => known(authority(api, reference, context).await?),
        },
        seal_key: known(seal_key(api, context).await?),
    };
    problems.extend(missing_account(api, context).await?);
    Ok(if problems.is_empty() {
        Ok(facts)
    } else {
        Err(problems.join("; "))
    })
}

/// Contradictions in the spec that no schema can refuse.
fn contradictions(portal: &Portal, spec: &WaterDataApiSpec) -> Vec<String> {
    let plans = &spec.plans;
    let Accounts {
        pattern,
        default_plan,
        ..
    } = &portal.oidc.accounts;
    let mut problems = Vec::new();
    let host = portal.host();
    if let Some(ingress) = &spec.exposure.ingress
        && ingress.host != host
    {
        problems.push(format!(
            "spec.portal.url is at {host}, but the Ingress answers for {}: make both hosts the same",
            ingress.host
        ));
    }
    match Regex::new(&format!("^(?:{pattern})$")) {
        Err(error) => {
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default();
            problems.push(format!(
                "spec.portal.oidc.accounts.pattern is no regular expression ({reason}): write it as the crate regex \
                 has it, such as water:(?<account>[^:]+):(?<plan>[^:]+)"
            ));
        }
        Ok(compiled) => {
            let has = |group: &str| compiled.capture_names().flatten().any(|name| name == group);
            if !has("account") {
                problems.push(
                    "spec.portal.oidc.accounts.pattern has no group account, so that nobody would belong to any: \
                     add (?<account>[^:]+) where the account stands in the claim's values"
                        .into(),
                );
            }
            if !has("plan") && default_plan.is_none() {
                problems.push(
                    "spec.portal.oidc.accounts has neither a group plan in pattern nor a defaultPlan, so that no \
                     account would have a plan: add one of them"
                        .into(),
                );
            }
        }
    }
    if let Some(plan) = default_plan
        && plans.iter().all(|declared| declared.name != *plan)
    {
        let names: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
        problems.push(format!(
            "spec.portal.oidc.accounts.defaultPlan is {plan}, which spec.plans does not have: name one of {}, or add \
             the plan",
            names.join(", ")
        ));
    }
    problems
}

async fn client_secret(
    api: &WaterDataApi,
    portal: &Portal,
    context: &Context,
) -> Result<PortalValue, SecretError> {
    let reference = &portal.oidc.client_secret_ref;
    let (name, key) = (&reference.name, &reference.key);
    let secrets = context.api::<Secret>(&api.namespace().unwrap_or_default());
    let field = "spec.portal.oidc.clientSecretRef";
    Ok(match secrets.get_opt(name).await? {
        None => Err(format!(
            "{field} names the Secret {name}, which does not exist: create it with the key {key}, the secret of the \
             client {} at the identity provider",
            portal.oidc.client_id
        )),
        Some(secret) => match own_secret::value(&secret, key) {
            [] => Err(format!(
                "the Secret {name}, which {field} names, lacks the key {key}: add it"
            )),
            value => Ok(value.to_vec()),
        },
    })
}

async fn authority(
    api: &WaterDataApi,
    KeyOfConfigMap { name, key }: &KeyOfConfigMap,
    context: &Context,
) -> Result<PortalValue, SecretError> {
    let maps = context.api::<ConfigMap>(&api.namespace().unwrap_or_default());
    let field = "spec.portal.oidc.caRef";
    Ok(match maps.get_opt(name).await {
        Err(kube::Error::Api(status)) if status.is_forbidden() => Err(format!(
            "the operator may not read the ConfigMap {name}, which {field} names: set portal.oidc.caConfigMap of the \
             chart to it, which gives that right"
        )),
        found => match found? {
            None => Err(format!(
                "{field} names the ConfigMap {name}, which does not exist: create it with the key {key}, the \
                 certificate of the identity provider's authority as PEM"
            )),
            Some(map) => match map.data.unwrap_or_default().remove(key) {
                Some(pem) if pem.contains("-----BEGIN CERTIFICATE-----") => Ok(pem.into_bytes()),
                _ => Err(format!(
                    "the ConfigMap {name}, which {field} names, has no certificate as PEM at the key {key}: add it"
                )),
            },
        },
    })
}

async fn seal_key(api: &WaterDataApi, context: &Context) -> Result<PortalValue, SecretError> {
    let name = format!("{}-portal", api.name_any());
    let secret = own_secret::read_or_make(api, &name, [SEAL_KEY], context).await?;
    let key = own_secret::value(&secret, SEAL_KEY);
    Ok(if is_random(key) {
        Ok(key.to_vec())
    } else {
        Err(format!(
            "the Secret {name} does not hold the portal's seal-key of 64 hexadecimal digits: delete it, and it is \
             made again"
        ))
    })
}

async fn missing_account(
    api: &WaterDataApi,
    context: &Context,
) -> Result<Option<String>, SecretError> {
    let name = format!("{}-portal", api.name_any());
    let accounts = context.api::<ServiceAccount>(&api.namespace().unwrap_or_default());
    Ok(match accounts.get_opt(&name).await? {
        Some(_) => None,
        None => Some(format!(
            "the ServiceAccount {name} does not exist, with which the portal asks for ApiKeys: set portal.enabled of \
             the chart, which makes it with its rights and their bounds"
        )),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sample;

    /// Contradictions of `accounts` with the plans Enterprise and Free.
    fn problems(accounts: Value) -> Vec<String> {
        let portal = json!({
            "url": "https://water.example",
            "oidc": {
                "issuer": "https://id.example",
                "clientId": "water-portal",
                "clientSecretRef": { "name": "portal-client", "key": "secret" },
                "accounts": accounts,
            },
        });
        let portal = serde_json::from_value(portal).unwrap();
        contradictions(&portal, &sample::api("water-data", "water").spec)
    }

    #[test]
    fn the_defaults_contradict_nothing() {
        assert_eq!(problems(json!({})), Vec::<String>::new());
    }

    #[test]
    fn a_pattern_without_plans_is_one_with_a_default_plan() {
        let pattern = "team-(?<account>.+)";
        let accounts = json!({ "pattern": pattern, "defaultPlan": "Free" });
        assert_eq!(problems(accounts), Vec::<String>::new());
        let [problem] = &problems(json!({ "pattern": pattern }))[..] else {
            panic!("one problem");
        };
        assert!(problem.ends_with("no account would have a plan: add one of them"));
    }

    #[test]
    fn a_pattern_that_does_not_compile_or_names_no_account_is_told_of() {
        let told = problems(json!({ "pattern": "water:(?<account>" })).join("; ");
        assert!(
            told.contains("is no regular expression (error: unclosed group)"),
            "{told}"
        );
        let told = problems(json!({ "pattern": "(?<plan>.+)" })).join("; ");
        assert!(told.contains("has no group account"), "{told}");
    }

    #[test]
    fn a_default_plan_is_one_of_the_plans() {
        let told = problems(json!({ "defaultPlan": "Gold" })).join("; ");
        assert!(
            told.contains("is Gold, which spec.plans does not have: name one of Enterprise, Free"),
            "{told}"
        );
    }
}

//! The portal's values: what is wrong is refused, and without them nothing of it is rendered.

use std::process::Command;

use anyhow::{Context, Result};
use water_e2e::{refusal, text_of};
use water_harness::programs::Program;

use super::{REQUIRED, chart, render};

const PORTAL: [&str; 3] = [
    "portal.enabled=true",
    r#"portal.oidc.issuer="https://id.example""#,
    r#"portal.oidc.existingSecret="portal-client""#,
];

/// The chart with a portal; `more` come last and win.
fn with_portal(more: &[&str]) -> Result<String> {
    let values = PORTAL.iter().chain(more);
    let arguments: Vec<&str> = values.flat_map(|value| ["--set-json", *value]).collect();
    render(&arguments)
}

fn assert_portal_refused(value: &str, expected: &str) -> Result<()> {
    let refused = refusal(with_portal(&[value]))?;
    let place = "Error: execution error at (water-data/templates/operator.yaml:1:4): ";
    assert_eq!(
        refused,
        format!("{place}{expected}\n\nUse --debug flag to render out invalid YAML")
    );
    Ok(())
}

#[test]
fn without_the_switch_nothing_of_a_portal_is_rendered() -> Result<()> {
    assert!(!render(&[])?.to_lowercase().contains("portal"));
    Ok(())
}

#[test]
fn a_portal_brings_its_rights_their_bounds_and_its_place_in_the_api() -> Result<()> {
    let rendered = with_portal(&[r#"portal.oidc.caConfigMap="authority""#])?;
    for part in [
        "kind: ServiceAccount\nmetadata:\n  name: water-data-portal\n",
        "kind: ValidatingAdmissionPolicy\nmetadata:\n  name: default-water-data\n",
        "kind: ValidatingAdmissionPolicyBinding\nmetadata:\n  name: default-water-data\n",
        "    url: https://water.example\n",
        "resources: [configmaps]\n    resourceNames: [authority]\n    verbs: [get]\n",
    ] {
        assert!(rendered.contains(part), "{part}\n{rendered}");
    }
    Ok(())
}

#[test]
fn the_notes_name_the_three_addresses_to_register() -> Result<()> {
    let mut helm = Command::new(Program::Helm.path()?);
    // The client's dry run asks no cluster.
    helm.args(["install", "water-data", "--dry-run=client"])
        .arg(chart());
    let values = REQUIRED.iter().chain(&PORTAL);
    helm.args(values.flat_map(|value| ["--set-json", value]));
    let shown = text_of(&helm.output()?)?;
    let (_, notes) = shown.split_once("NOTES:").context("no notes")?;
    for address in ["/auth/callback", "/", "/auth/back-channel"] {
        let line = format!(" https://water.example{address}\n");
        assert!(notes.contains(&line), "{address}\n{notes}");
    }
    Ok(())
}

#[test]
fn a_portal_needs_an_issuer_and_its_secret() -> Result<()> {
    let expected = "portal.oidc.issuer: \"http://id.example\" is not valid: give the https address that the identity \
         provider's tokens name as their issuer, such as https://id.example/realms/water";
    assert_portal_refused(r#"portal.oidc.issuer="http://id.example""#, expected)?;
    let expected = "portal.oidc.existingSecret: is empty: give the name of a Secret in this namespace whose key \
         client-secret is the secret of the client water-portal at the identity provider";
    assert_portal_refused(r#"portal.oidc.existingSecret="""#, expected)
}

#[test]
fn a_portal_is_at_the_host_of_the_ingress_and_https() -> Result<()> {
    let expected = "portal.url: \"http://water.example\" is not valid: give https://, a lower-case host and perhaps a \
         port, without a path, such as https://water.example";
    assert_portal_refused(r#"portal.url="http://water.example""#, expected)?;
    let expected = "portal.url: its host is other.example, but the Ingress answers for water.example: make them the \
         same, or remove portal.url";
    assert_portal_refused(r#"portal.url="https://other.example""#, expected)?;
    let expected = "portal.url: is empty, and there is no Ingress whose host it could be: give the address that \
         browsers use, such as https://water.example";
    assert_portal_refused("api.exposure.ingress.enabled=false", expected)?;
    with_portal(&[r#"portal.url="https://water.example:8443""#]).map(drop)
}

#[test]
fn a_portals_accounts_have_a_pattern_and_a_plan_that_exists() -> Result<()> {
    let expected = "portal.oidc.accounts.pattern: \"team-(.+)\" has no group account: add (?<account>[^:]+) where the \
         account stands in the claim's values";
    assert_portal_refused(r#"portal.oidc.accounts.pattern="team-(.+)""#, expected)?;
    let expected = "portal.oidc.accounts.defaultPlan: \"Gold\" is none of api.plans: name one of them, or add it there";
    assert_portal_refused(r#"portal.oidc.accounts.defaultPlan="Gold""#, expected)?;
    let expected = "portal.oidc.scopes: lacks openid, without which the identity provider gives no ID token: add it";
    assert_portal_refused(r#"portal.oidc.scopes=["profile"]"#, expected)
}

#[test]
fn redis_secret_has_the_portals_url_too() -> Result<()> {
    let expected = "redis.existingSecret: is empty: give the name of a Secret in this namespace with the keys \
         operator-url, gate-url and portal-url";
    assert_portal_refused(r#"redis.existingSecret="""#, expected)
}

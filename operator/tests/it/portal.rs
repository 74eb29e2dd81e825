//! Tests of a portal: it is rolled out after the gate, repaired and removed; a problem with it is reported, and holds
//! up nothing else.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::Result;
use crate::installation::{exists, migrate, roll};
use crate::rights;
use crate::steps::{OBJECT, message, says, until};
use crate::world::{World, api};

/// The chart's values for a portal.
const VALUES: [&str; 3] = [
    "portal.enabled=true",
    "portal.oidc.issuer=https://id.example",
    "portal.oidc.existingSecret=portal-client",
];

/// Applies the chart's template for a portal, and the Secrets that its installer makes.
fn prepare(world: &World) -> anyhow::Result<()> {
    let template = Some("templates/portal.yaml");
    world
        .cluster
        .apply(&rights::rendered(&world.namespace, template, &VALUES)?)?;
    world.apply(&secret("portal-client", "client-secret"))?;
    let portal_url = json!({ "stringData": { "portal-url": "redis://water-portal@redis" } });
    world.patch("secret/redis", &portal_url, &[])
}

fn secret(name: &str, key: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": { key: "a value" },
    })
}

/// The usual WaterDataApi with a portal.
fn with_portal() -> Value {
    let mut api = api();
    api["spec"]["portal"] = json!({
        "url": "https://water.example",
        "oidc": {
            "issuer": "https://id.example",
            "clientId": "water-portal",
            "clientSecretRef": { "name": "portal-client", "key": "client-secret" },
        },
    });
    api
}

fn paths(world: &World) -> anyhow::Result<Vec<String>> {
    let ingress = world.get("ingress/water-data")?;
    let paths = ingress["spec"]["rules"][0]["http"]["paths"].as_array();
    let shown = |path: &Value| {
        format!("{} {}", path["path"], path["backend"]["service"]["name"]).replace('"', "")
    };
    Ok(paths.context("paths")?.iter().map(shown).collect())
}

#[tokio::test]
async fn a_portal_is_rolled_out_after_the_gate_repaired_and_removed() -> Result {
    let world = World::new("portal").await?;
    prepare(&world)?;
    world.apply(&with_portal())?;
    let _operator = world.operator("operator-0")?;
    migrate(&world, "1.2.3").await?;
    for part in ["departements", "history", "gate"] {
        assert!(!exists(&world, "deployment/water-data-portal"), "{part}");
        roll(&world, part, "1.2.3").await?;
    }
    roll(&world, "portal", "1.2.3").await?;
    let done = world.condition(OBJECT, "Ready", "True/Complete").await?;
    assert_eq!(done["status"]["components"][3]["name"], "portal");
    let both = ["/api water-data-gate", "/ water-data-portal"];
    assert_eq!(paths(&world)?, both);
    let pod = world.get("deployment/water-data-portal")?["spec"]["template"]["spec"].clone();
    assert_eq!(pod["serviceAccountName"], "water-data-portal");
    assert_eq!(pod["automountServiceAccountToken"], true);
    let seal = world.get("secret/water-data-portal")?["data"]["seal-key"].clone();

    world.kubectl(&["delete", "service,networkpolicy", "water-data-portal"])?;
    until(&world, "the repair", async || {
        world.get("service/water-data-portal")?;
        world.get("networkpolicy/water-data-portal").map(drop)
    })
    .await?;

    world.patch(OBJECT, &json!({ "spec": { "portal": null } }), &[])?;
    until(&world, "the end of the portal", async || {
        for kind in ["deployment", "service", "networkpolicy", "pdb"] {
            let object = format!("{kind}/water-data-portal");
            ensure!(!exists(&world, &object), "{kind}");
        }
        let left = paths(&world)?;
        ensure!(left == ["/api/v1 water-data-gate"], "{left:?}");
        Ok(())
    })
    .await?;
    // What the chart made is the chart's to remove, and a portal that comes back finds its key.
    assert!(exists(&world, "serviceaccount/water-data-portal"));
    let secret = world.get("secret/water-data-portal")?;
    assert_eq!(secret["data"]["seal-key"], seal);
    Ok(())
}

#[tokio::test]
async fn what_a_portal_lacks_is_named_with_the_remedy_and_holds_up_nothing_else() -> Result {
    let world = World::new("portal-lacks").await?;
    let mut wrong = with_portal();
    let oidc = &mut wrong["spec"]["portal"]["oidc"];
    oidc["caRef"] = json!({ "name": "authority" });
    oidc["accounts"] = json!({ "pattern": "(?<konto>.+)", "defaultPlan": "Gold" });
    wrong["spec"]["portal"]["url"] = "https://portal.example".into();
    world.apply(&wrong)?;
    let _operator = world.operator("operator-0")?;
    migrate(&world, "1.2.3").await?;
    for part in ["departements", "history", "gate"] {
        roll(&world, part, "1.2.3").await?;
    }
    let invalid = "True/PortalInvalid";
    let found = world.condition(OBJECT, "Stalled", invalid).await?;
    let message = message(&found, "Stalled");
    for words in [
        "the Ingress answers for water.example: make both hosts the same",
        "has no group account",
        "defaultPlan is Gold, which spec.plans does not have: name one of Enterprise, Free",
        "the Secret redis, which spec.redis.secretRef.name names, lacks the key portal-url",
        "clientSecretRef names the Secret portal-client, which does not exist: create it with the key client-secret",
        "the operator may not read the ConfigMap authority",
        "the ServiceAccount water-data-portal does not exist",
    ] {
        assert!(message.contains(words), "{words}\n{message}");
    }
    assert!(exists(&world, "ingress/water-data"), "the API is exposed");
    assert!(!exists(&world, "deployment/water-data-portal"));
    prepare(&world)?;
    world.apply(&with_portal())?;
    roll(&world, "portal", "1.2.3").await?;
    world
        .condition(OBJECT, "Ready", "True/Complete")
        .await
        .map(drop)
}

#[tokio::test]
async fn the_certificate_of_the_providers_authority_is_read_at_the_key_that_is_named() -> Result {
    let world = World::new("portal-authority").await?;
    let values = [&VALUES[..], &["portal.oidc.caConfigMap=authority"]].concat();
    rights::grant(world.cluster, &world.namespace, &values)?;
    prepare(&world)?;
    let certificate = json!({ "other.pem": "-----BEGIN CERTIFICATE-----" });
    world.apply(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "authority" }, "data": certificate,
    }))?;
    let mut api = with_portal();
    api["spec"]["portal"]["oidc"]["caRef"] = json!({ "name": "authority" });
    world.apply(&api)?;
    let _operator = world.operator("operator-0")?;
    migrate(&world, "1.2.3").await?;
    for part in ["departements", "history", "gate"] {
        roll(&world, part, "1.2.3").await?;
    }
    let lacks = "has no certificate as PEM at the key ca.crt: add it";
    says(&world, OBJECT, "Stalled=True/PortalInvalid", lacks).await?;
    let other = json!({ "name": "authority", "key": "other.pem" });
    api["spec"]["portal"]["oidc"]["caRef"] = other.clone();
    world.apply(&api)?;
    roll(&world, "portal", "1.2.3").await?;
    let pod = world.get("deployment/water-data-portal")?["spec"]["template"]["spec"].clone();
    let variables = pod["containers"][0]["env"].as_array();
    let mut variables = variables.context("variables")?.iter();
    let authority = variables.find(|variable| variable["name"] == "WATER_OIDC_CA");
    let authority = &authority.context("no authority")?["valueFrom"]["configMapKeyRef"];
    assert_eq!(*authority, other);
    Ok(())
}

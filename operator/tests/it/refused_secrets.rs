//! Secrets that the API server does not take: by an admission policy, or since the namespace is being
//! deleted. No other key is made for each try.

use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_harness::Process;

use crate::Result;
use crate::turnover::{SECRET, current, holds, look_again, text_hash};
use crate::world::{PATIENCE, World, key, shown};

/// Refuses the Secrets of keys in the world's namespace.
fn policy(world: &World) -> [Value; 2] {
    let name = world.namespace.as_str();
    let within = json!({ "matchLabels": { "kubernetes.io/metadata.name": name } });
    let secrets = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["secrets"],
    });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "namespaceSelector": within, "resourceRules": [secrets] },
            "validations": [{ "expression": "false", "message": "no Secrets today" }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    [policy, binding]
}

/// A world whose operator creates no Secret but those of keys any more.
async fn running(namespace: &str) -> anyhow::Result<(World, Arc<Process>)> {
    let (world, operator) = World::running(namespace).await?;
    world.synced().await?;
    let own = async || world.get("secret/water-data-identity");
    world.wait("the gates' identity", PATIENCE, own).await?;
    Ok((world, operator))
}

/// Where the key directory stands, and what the status announces.
async fn standing(world: &World) -> anyhow::Result<(u64, String)> {
    let seen = world.observe().await?;
    let meta = seen.verified().context("a whole directory")?;
    Ok((meta.seq, current(&world.get("apikey/acme")?)?))
}

#[tokio::test]
async fn one_key_waits_while_a_policy_refuses_its_secret() -> Result {
    let (world, operator) = running("refused-secret").await?;
    for object in policy(&world) {
        world.cluster.apply(&object.to_string())?;
    }
    let probe = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "probe" } });
    let refused = async || {
        world.kubectl(&["delete", "secret", "probe", "--ignore-not-found"])?;
        let refused = world.apply(&probe).is_err();
        ensure!(refused, "the policy is not in force");
        Ok(())
    };
    world.wait("the policy", PATIENCE, refused).await?;
    world.apply(&key("acme"))?;
    let stalled = world
        .condition("apikey/acme", "Stalled", "True/Rejected")
        .await?;
    ensure!(
        stalled["status"].to_string().contains("no Secrets today"),
        "{stalled}"
    );
    let before = standing(&world).await?;
    for look in 0..3 {
        let tries = tries(&world)?;
        look_again(&world, &look.to_string())?;
        let tried = async || {
            ensure!(self::tries(&world)? > tries, "{tries} tries");
            Ok(())
        };
        world.wait("another try", PATIENCE, tried).await?;
    }
    assert_eq!(standing(&world).await?, before, "{}", operator.log_end());
    let name = world.namespace.as_str();
    let binding = ["delete", "validatingadmissionpolicybinding", name];
    world.cluster.kubectl(&binding)?;
    let issued = async || {
        look_again(&world, "now")?;
        let found = world.get("apikey/acme")?;
        ensure!(shown(&found, "Ready") == "True/Active", "{found}");
        Ok(())
    };
    world.wait("the key", PATIENCE, issued).await?;
    assert_eq!(text_hash(&world)?, before.1, "the key that waited");
    world
        .cluster
        .kubectl(&["delete", "validatingadmissionpolicy", name])
        .map(drop)
}

/// How often the operator has tried to create a Secret.
fn tries(world: &World) -> anyhow::Result<usize> {
    let writes = world.writes()?;
    let tries = writes
        .iter()
        .filter(|write| write.starts_with("create secrets/"));
    Ok(tries.count())
}

/// Starts an operator again in a namespace that is being deleted meanwhile, and waits until the key waits.
async fn waits_for_the_namespace(world: &World, operator: &Process) -> Result {
    // The controller that would delete its contents does not run.
    let delete = ["delete", "namespace", &world.namespace, "--wait=false"];
    world.cluster.kubectl(&delete)?;
    operator.start_again()?;
    let waits = world
        .condition("apikey/acme", "SecretReady", "False/Waiting")
        .await?;
    let words = waits["status"].to_string();
    ensure!(words.contains("the namespace is being deleted"), "{words}");
    Ok(())
}

#[tokio::test]
async fn no_key_is_issued_in_a_namespace_that_is_being_deleted() -> Result {
    let (world, operator) = running("issues-none").await?;
    operator.stop(PATIENCE).await?;
    let before = tries(&world)?;
    world.apply(&key("acme"))?;
    waits_for_the_namespace(&world, &operator).await?;
    assert_eq!(world.published().await?, Vec::<String>::new());
    assert_eq!(tries(&world)?, before);
    Ok(())
}

#[tokio::test]
async fn an_edited_secret_is_not_replaced_in_a_namespace_that_is_being_deleted() -> Result {
    let (world, operator) = World::running("reissues-none").await?;
    world.in_force(&key("acme")).await?;
    let before = holds(&world, 1).await?;
    operator.stop(PATIENCE).await?;
    let theirs = json!({ "stringData": { "api-key": "theirs" } });
    world.patch(SECRET, &theirs, &[])?;
    waits_for_the_namespace(&world, &operator).await?;
    assert_eq!(world.get(SECRET)?["data"]["api-key"], "dGhlaXJz");
    assert_eq!(holds(&world, 1).await?, before);
    Ok(())
}

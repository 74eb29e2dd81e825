//! Secrets that the API server does not take: by an admission policy, or since the namespace is being
//! deleted. No other key is made for each try.

use anyhow::{Context, ensure};
use serde_json::json;

use crate::Result;
use crate::audit::writes;
use crate::policies::{refuse, writes_of};
use crate::steps::{
    SECRET, count, current, look_again, measured, message, one_leadership, says, stalled,
    text_hash, until,
};
use crate::world::{PATIENCE, World, key, shown};

/// Waits until the operator creates no Secret but those of keys any more.
async fn settled(world: &World) -> Result {
    world.synced().await?;
    let own = async || world.get("secret/water-data-identity");
    until(world, "the gates' identity", own).await.map(drop)
}

/// Number of the operator's tries to create a Secret.
fn tries(world: &World) -> anyhow::Result<usize> {
    let writes = writes(world)?;
    let is_try = |write: &&String| write.starts_with("create secrets/");
    Ok(writes.iter().filter(is_try).count())
}

/// Last change of the key directory, and the key that the status announces.
async fn announced(world: &World) -> anyhow::Result<(u64, String)> {
    let seen = world.observe().await?;
    let meta = seen.verified().context("a whole directory")?;
    Ok((meta.seq, current(&world.get("apikey/acme")?)?))
}

#[tokio::test]
async fn one_key_waits_while_a_policy_refuses_its_secret() -> Result {
    // The next leader claims the directory, which changes it.
    one_leadership("refused-secret", World::running, async |world, operator| {
        settled(world).await?;
        let secrets = writes_of("", &["secrets"]);
        let policy = refuse(world, &secrets, "true", "false", "no Secrets today")?;
        let metadata = json!({ "name": "probe" });
        let probe = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
        until(world, "the policy", async || {
            world.kubectl(&["delete", "secret", "probe", "--ignore-not-found"])?;
            ensure!(world.apply(&probe).is_err(), "it is not in force");
            Ok(())
        })
        .await?;
        world.apply(&key("acme"))?;
        let refused = stalled(world, "acme", "Rejected").await?;
        let said = message(&refused, "Stalled");
        for words in ["no Secrets today", "change the quota or policy"] {
            ensure!(said.contains(words), "{refused}");
        }
        let counted = "water_operator_api_server_failures_total{reason=\"refused\"}";
        measured(world, operator, counted).await?;
        let before = announced(world).await?;
        for look in 0..3 {
            let tried = tries(world)?;
            look_again(world, "apikey/acme", &look.to_string())?;
            until(world, "another try", async || {
                ensure!(tries(world)? > tried, "{tried} tries");
                Ok(())
            })
            .await?;
        }
        let after = announced(world).await?;
        let log = operator.log_end();
        ensure!(after == before, "{before:?}, then {after:?}: {log}");
        policy.lift()?;
        until(world, "the key", async || {
            look_again(world, "apikey/acme", "now")?;
            let found = world.get("apikey/acme")?;
            ensure!(shown(&found, "Ready") == "True/Active", "{found}");
            Ok(())
        })
        .await?;
        let text = text_hash(world)?;
        ensure!(text == before.1, "not the key that waited");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn no_key_is_issued_again_or_at_all_in_a_namespace_that_is_being_deleted() -> Result {
    let (world, operator) = World::running("issues-none").await?;
    settled(&world).await?;
    world.in_force(&key("acme")).await?;
    let published = count(&world, 1).await?;
    operator.stop(PATIENCE).await?;
    let theirs = json!({ "stringData": { "api-key": "theirs" } });
    world.patch(SECRET, &theirs, &[])?;
    world.apply(&key("late"))?;
    let before = tries(&world)?;
    // The controller that would delete its contents does not run.
    let delete = ["delete", "namespace", &world.namespace, "--wait=false"];
    world.cluster.kubectl(&delete)?;
    operator.start_again()?;
    for object in ["apikey/acme", "apikey/late"] {
        let words = "the namespace is being deleted";
        says(&world, object, "SecretReady=False/Waiting", words).await?;
    }
    assert_eq!(world.get(SECRET)?["data"]["api-key"], "dGhlaXJz");
    assert_eq!(world.published().await?, published);
    assert_eq!(tries(&world)?, before);
    Ok(())
}

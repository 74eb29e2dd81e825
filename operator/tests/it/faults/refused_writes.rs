//! The API server refuses what the operator writes of one ApiKey. What restricts the key is in force all the same, and
//! a condition names the cause.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use tokio::time::Instant;
use water_domain::KeyHash;
use water_keystore::KeyState;
use water_kit::is_all_asked_for;
use water_kit::operator::world::{PATIENCE, World, brought, key, shown};

use crate::Result;
use crate::audit::writes;
use crate::policies::{BY_OPERATOR, refuse, refused, writes_of};
use crate::steps::{current, delete, edit, logs, look_again, measured, ready, revoke, says, until};

/// Longest time until a restriction is in force, where nothing else runs.
const IN_FORCE: Duration = Duration::from_secs(1);
const GROUP: &str = "waterdata.dev";
const LABEL: &str = "waterdata.dev/account";
/// Condition in CEL: no account's label is there.
const UNLABELLED: &str =
    "!has(object.metadata.labels) || !('waterdata.dev/account' in object.metadata.labels)";

/// Suspends a key, which is in force in time.
pub async fn suspend_in_time(world: &World, name: &str) -> Result {
    let hash = current(&world.get(&format!("apikey/{name}"))?)?.parse()?;
    let edited = || edit(world, name, &json!({ "suspend": true }));
    restricted(world, hash, Some(KeyState::Suspended), edited).await
}

/// Deletes an ApiKey, whose key is revoked in time.
async fn revoke_in_time(world: &World, name: &str) -> Result {
    let hash = current(&world.get(&format!("apikey/{name}"))?)?.parse()?;
    restricted(world, hash, None, || delete(world, name)).await
}

/// Makes a change after which a key is in that state in time.
async fn restricted(
    world: &World,
    hash: KeyHash,
    wanted: Option<KeyState>,
    change: impl FnOnce() -> Result,
) -> Result {
    let directory = world.directory()?;
    let state = async || {
        let mut stored = directory.stored().await?;
        let record = stored.remove(&hash).and_then(|stored| stored.record);
        anyhow::Ok(record.map(|record| record.state))
    };
    // From here on it has a connection.
    state().await?;
    change()?;
    let asked = Instant::now();
    let changed = async || {
        let state = state().await?;
        ensure!(state == wanted, "{state:?}");
        Ok(())
    };
    world.wait("the restriction", PATIENCE, changed).await?;
    let took = asked.elapsed();
    println!("in force after {took:?}");
    ensure!(took <= IN_FORCE || !is_all_asked_for(), "{took:?}");
    Ok(())
}

#[tokio::test]
async fn fault_51_a_label_that_is_refused_delays_no_restriction_and_no_status() -> Result {
    let (world, operator) = World::running("refused-label").await?;
    world.in_force(&brought("acme", 'a')).await?;
    let keys = writes_of(GROUP, &["apikeys"]);
    let policy = refuse(&world, &keys, BY_OPERATOR, UNLABELLED, "no labels today")?;
    // Keys that were made before there was such a label lack it, …
    let unlabelled = json!({ "metadata": { "labels": null } });
    let probe = format!("{LABEL}=probe");
    refused(&world, "apikey/acme", &probe, true).await?;
    world.patch("apikey/acme", &unlabelled, &[])?;
    suspend_in_time(&world, "acme").await?;
    let degraded = "Degraded=True/ApiServerError";
    says(&world, "apikey/acme", degraded, "no labels today").await?;
    ready(&world, "acme", "True/Suspended").await?;
    // … and so does a new one.
    world.in_force(&key("later")).await?;
    says(&world, "apikey/later", degraded, LABEL).await?;
    world
        .told("later", &["KeyIssued", "ApiServerError"])
        .await?;
    let counted = "water_operator_api_server_failures_total{reason=\"refused\"}";
    measured(&world, &operator, counted).await?;
    revoke(&world, "later").await?;

    policy.lift()?;
    refused(&world, "apikey/acme", &probe, false).await?;
    // The next leader tries at once.
    operator.stop(PATIENCE).await?;
    let _next = world.operator("operator-1")?;
    until(&world, "the label", async || {
        look_again(&world, "apikey/acme", "lifted")?;
        let found = world.get("apikey/acme")?;
        let is_there = found["metadata"]["labels"][LABEL] == "acme";
        ensure!(is_there && shown(&found, "Degraded").is_empty(), "{found}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn fault_51_an_api_key_that_cannot_be_written_says_so_takes_restrictions_and_blocks_no_other()
-> Result {
    let (world, operator) = World::running("refused-writes").await?;
    world.in_force(&brought("acme", 'a')).await?;
    let keys = writes_of(GROUP, &["apikeys"]);
    let is_meant = format!("{BY_OPERATOR} && object.metadata.name in ['acme', 'new']");
    let policy = refuse(&world, &keys, &is_meant, "false", "hands off")?;
    refused(&world, "apikey/acme", "probe=1", true).await?;

    // What is in force stays Ready, in addition to the cause.
    let unfinalized = json!({ "metadata": { "finalizers": null } });
    world.patch("apikey/acme", &unfinalized, &[])?;
    let refusal = "Synced=Unknown/ApiServerError";
    let told = says(&world, "apikey/acme", refusal, "hands off").await?;
    ensure!(shown(&told, "Ready") == "True/Active", "{told}");
    suspend_in_time(&world, "acme").await?;
    // What is not known to be carried out is not.
    let change = "Ready=False/ApiServerError";
    says(&world, "apikey/acme", change, "finalizer").await?;

    world.apply(&brought("new", 'c'))?;
    let new = says(&world, "apikey/new", change, "hands off").await?;
    ensure!(new["status"]["observedGeneration"] == 1, "{new}");
    world.in_force(&brought("other", 'b')).await?;
    logs(&world, &operator, "hands off").await?;
    // A condition that says so already is not written again.
    let tries = async || {
        let writes = writes(&world)?;
        let of_new = |part: &str| {
            let written = writes.iter().filter(|write| write.ends_with(part));
            written.count()
        };
        let (patches, statuses) = (
            of_new("patch apikeys/new null"),
            of_new("apikeys/new status"),
        );
        ensure!(patches >= 4, "{patches} tries");
        Ok(statuses)
    };
    let statuses = until(&world, "more tries", tries).await?;
    ensure!(statuses == 1, "{statuses} writes of the status");

    policy.lift()?;
    for (name, wanted) in [("new", "True/Active"), ("acme", "True/Suspended")] {
        ready(&world, name, wanted).await?;
    }
    Ok(())
}

#[tokio::test]
async fn fault_51_an_api_key_that_takes_no_write_at_all_is_revoked_and_goes_when_it_can() -> Result
{
    let (world, operator) = World::running("refused-all").await?;
    world.in_force(&brought("acme", 'a')).await?;
    world.in_force(&brought("other", 'b')).await?;
    let keys = writes_of(GROUP, &["apikeys", "apikeys/status"]);
    let is_meant = format!("{BY_OPERATOR} && object.metadata.name == 'acme'");
    let policy = refuse(&world, &keys, &is_meant, "false", "hands off")?;
    refused(&world, "apikey/acme", "probe=1", true).await?;
    suspend_in_time(&world, "acme").await?;
    logs(&world, &operator, "cannot say why a pass was given up").await?;
    revoke_in_time(&world, "acme").await?;
    edit(&world, "other", &json!({ "suspend": true }))?;
    ready(&world, "other", "True/Suspended").await?;
    policy.lift()?;
    world.gone("apikey/acme").await
}

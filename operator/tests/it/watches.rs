//! Tests of watches that fail, and of the work that goes on meanwhile.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::Result;
use crate::audit::passes;
use crate::steps::{OBJECT, look_again, revoke, until};
use crate::world::{PATIENCE, World, brought, key};

#[tokio::test]
async fn fault_14_a_kind_that_may_not_be_watched_is_told_of_and_keys_are_issued_and_revoked()
-> Result {
    let (world, operator) = World::running("one-forbidden").await?;
    world.in_force(&brought("before", '6')).await?;
    let role = "role/water-operator";
    let rules = world.get(role)?["rules"].clone();
    let rules = rules.as_array().context("rules")?.iter();
    let without: Vec<&Value> = rules
        .filter(|rule| rule["resources"][0] != "ingresses")
        .collect();
    world.patch(role, &json!({ "rules": without }), &[])?;
    operator.stop(PATIENCE).await?;
    let operator = world.operator("operator-1")?;
    until(&world, "the failing watch in the log", async || {
        let log = operator.log();
        let mut lines = log.lines();
        let failing = lines.any(|line| {
            let names = |kind: &str| line.contains(&format!("\"kind\":\"{kind}\""));
            line.contains("a watch fails") && (names("ingresses") || names("networkpolicies"))
        });
        ensure!(failing, "{log}");
        Ok(())
    })
    .await?;
    world.in_force(&key("after")).await?;
    revoke(&world, "before").await?;
    assert_eq!(world.published().await?.len(), 1);
    assert_eq!(operator.exit_status()?, None);
    Ok(())
}

#[tokio::test]
async fn a_status_alone_is_no_reason_for_a_pass_over_an_api() -> Result {
    const WRITES: usize = 30;
    let (world, _operator) = World::running("status-only").await?;
    world.synced().await?;
    let before = passes(&world)?;
    for version in 0..WRITES {
        let status = json!({ "status": { "targetVersion": version.to_string() } });
        world.patch(OBJECT, &status, &["--subresource=status"])?;
    }
    // A pass that is asked for comes after all that the writes might have asked for.
    let asked = passes(&world)?;
    look_again(&world, OBJECT, "again")?;
    let after = until(&world, "the pass", async || {
        let now = passes(&world)?;
        ensure!(now > asked, "{asked} passes before, {now} since");
        Ok(now)
    })
    .await?;
    // The rollout, which waits here, has separate passes.
    let passes = after - before;
    ensure!(passes < WRITES / 2, "{passes} passes");
    Ok(())
}

//! At most one operator leads, and another takes over.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;

use crate::Result;
use crate::world::{PATIENCE, World, brought};

async fn holder(world: &World, wanted: &str) -> anyhow::Result<()> {
    world
        .wait(&format!("{wanted} to lead"), PATIENCE, async || {
            let holder = world.get("lease/water-operator")?["spec"]["holderIdentity"].clone();
            ensure!(holder == wanted, "{holder} leads");
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_stopped_leader_hands_over_at_once() -> Result {
    let (world, first) = World::running("hand-over").await?;
    holder(&world, "operator-0").await?;
    let _second = world.operator("operator-1")?;
    let asked = Instant::now();
    first.stop(PATIENCE).await?;
    holder(&world, "operator-1").await?;
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    world.apply(&brought("acme", '5'))?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_killed_leader_is_succeeded_once_its_lease_ran_out() -> Result {
    let (world, first) = World::running("killed").await?;
    world.apply(&brought("acme", '6'))?;
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    let term = world.directory()?.observe().await?.meta.unwrap().term;
    let second = world.operator("operator-1")?;
    let stands_by = async || {
        ensure!(
            second.log().contains("operator started"),
            "{}",
            second.log()
        );
        Ok(())
    };
    world.wait("the standby", PATIENCE, stands_by).await?;
    let killed = Instant::now();
    first.kill()?;
    holder(&world, "operator-1").await?;
    let took = killed.elapsed();
    assert!(
        took > Duration::from_secs(12) && took < Duration::from_secs(20),
        "{took:?}"
    );
    let claimed = async || {
        let now = world.directory()?.observe().await?.meta.unwrap().term;
        ensure!(now > term, "term {now}");
        Ok(())
    };
    world.wait("the successor's term", PATIENCE, claimed).await
}

#[tokio::test]
async fn a_leader_whose_lease_was_taken_writes_no_more() -> Result {
    let (world, operator) = World::running("taken").await?;
    holder(&world, "operator-0").await?;
    let patch = serde_json::json!({ "spec": { "holderIdentity": "somebody-else" } });
    world.patch("lease/water-operator", &patch, &[])?;
    let noticed = async || {
        ensure!(
            operator.log().contains("the lease names another leader"),
            "{}",
            operator.log_end()
        );
        Ok(())
    };
    world
        .wait("the leader to notice", PATIENCE, noticed)
        .await?;
    world.apply(&brought("acme", '7'))?;
    // Nobody renews for somebody-else: after 15 s the operator leads again, and only then writes.
    world
        .condition("apikey/acme", "Ready", "True/Active")
        .await?;
    let transitions = world.get("lease/water-operator")?["spec"]["leaseTransitions"].clone();
    assert_eq!(transitions, 1);
    Ok(())
}

#[tokio::test]
async fn a_restarted_api_server_is_no_reason_to_restart_or_to_tell_anything_twice() -> Result {
    let world = World::alone("api-server-restart").await?;
    world.apply(&crate::world::api())?;
    let operator = world.operator("operator-0")?;
    world.apply(&brought("before", '8'))?;
    world
        .condition("apikey/before", "Ready", "True/Active")
        .await?;
    world.cluster.api_server().kill()?;
    world.cluster.api_server().start_again()?;
    world.cluster.ready().await?;
    world.apply(&brought("after", '9'))?;
    world
        .condition("apikey/after", "Ready", "True/Active")
        .await?;
    assert_eq!(world.events("before")?, ["KeyIssued"]);
    assert_eq!(operator.exit_status()?, None);
    Ok(())
}

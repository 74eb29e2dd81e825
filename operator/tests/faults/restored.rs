//! etcd is restored from an older snapshot while everything runs, so that the API server goes back in
//! time; and it is full.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;
use water_harness::{ControlPlane, ControlPlaneOptions, Redis, scratch_directory};

use crate::change::offering;
use crate::clients::Expected;
use crate::objects::shown;
use crate::population::Population;
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::world::{PATIENCE, World, brought, key};

/// Watches that ask for changes since a time to come stay silent; a renewal of the Lease tells.
const NOTICED_WITHIN: Duration = Duration::from_secs(60);
/// What etcd may hold, in bytes: a few times what a control plane begins with.
const SMALL: u64 = 64 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_revoked_since_the_snapshot_stays_dead() -> Result<()> {
    let redis = Redis::start().await?;
    let world = World::on(ControlPlane::start().await?, "restored", &redis.url()).await?;
    let stage = Stage::of(world, redis, |operator| operator).await?;
    let kept = Scenario::Suspend.prepare(&stage, "kept").await?;
    let revoked = Scenario::Delete.prepare(&stage, "revoked").await?;
    stage.objects.create(&brought("partner", 'a')).await?;
    let partner = "apikey/partner";
    stage
        .world
        .condition(partner, "Ready", "True/Active")
        .await?;
    let snapshot = stage.world.cluster.snapshot().await?;
    let before = revoked.before.context("a key")?;
    let hash = "a".repeat(64).parse()?;
    for (name, hash) in [("revoked", before), ("partner", hash)] {
        stage.clients.expect(hash, Expected::Either);
        stage.objects.delete(name).await?;
        stage.world.gone(&format!("apikey/{name}")).await?;
        stage.clients.expect(hash, Expected::Refused);
    }
    stage.world.cluster.restore(&snapshot).await?;
    let restored = Instant::now();
    for name in ["revoked", "partner"] {
        let dead = async || {
            let key = stage.objects.key(name).await?.context("no ApiKey")?;
            let reason = shown(&key, "Stalled");
            ensure!(
                reason == "True/RevokedInStore",
                "{reason}: {:?}",
                key.status
            );
            Ok(())
        };
        stage
            .wait("the return to be refused", NOTICED_WITHIN, dead)
            .await?;
    }
    println!("converged after {:.3} s", restored.elapsed().as_secs_f64());
    Scenario::Suspend.prepare(&stage, "after").await?;
    ensure!(
        kept.before == stage.objects.text_hash("kept").await?,
        "another key"
    );
    ensure!(
        stage.operator.exit_status()?.is_none(),
        "{}",
        stage.operator.log_end()
    );
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_was_added_since_the_snapshot_is_offered_no_more() -> Result<()> {
    let redis = Redis::start().await?;
    let world = World::on(ControlPlane::start().await?, "unoffered", &redis.url()).await?;
    let stage = Stage::of(world, redis, |operator| operator).await?;
    let population = Population::of(&stage).await?;
    let snapshot = stage.world.cluster.snapshot().await?;
    stage.world.apply(&offering(true))?;
    let offered = async || {
        let api = stage.world.get("waterdataapi/water-data")?;
        let seen = &api["status"]["observedGeneration"];
        ensure!(*seen == api["metadata"]["generation"], "{api}");
        Ok(())
    };
    stage.wait("the plan to be seen", PATIENCE, offered).await?;
    stage.world.cluster.restore(&snapshot).await?;
    let restored = Instant::now();
    population.change(&stage).await?;
    let mut golden = key("golden");
    golden["spec"]["plan"] = "Gold".into();
    stage.objects.create(&golden).await?;
    let refused = async || {
        let key = stage.objects.key("golden").await?.context("no ApiKey")?;
        let accepted = shown(&key, "Accepted");
        ensure!(
            accepted == "False/PlanUnknown",
            "{accepted}: {:?}",
            key.status
        );
        Ok(())
    };
    stage
        .wait("the plan to be unknown", PATIENCE, refused)
        .await?;
    population.rest(&stage, restored).await?;
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_etcd_ends_no_key_and_room_in_it_needs_no_restart() -> Result<()> {
    let redis = Redis::start().await?;
    let options = ControlPlaneOptions {
        room: SMALL,
        ..ControlPlaneOptions::DEFAULT
    };
    let cluster = ControlPlane::start_with(options).await?;
    let stage = Stage::of(
        World::on(cluster, "full", &redis.url()).await?,
        redis,
        |operator| operator,
    )
    .await?;
    let kept = Scenario::Suspend.prepare(&stage, "kept").await?;
    let text = scratch_directory("filling")?.join("text");
    fs::write(&text, "x".repeat(900_000))?;
    let text = format!("--from-file={}", text.display());
    let fill = |number: usize| {
        let name = format!("filling-{number}");
        stage.world.kubectl(&["create", "configmap", &name, &text])
    };
    let refused = (0..100).find_map(|number| fill(number).err());
    let refused = refused.context("etcd is not full")?.to_string();
    ensure!(refused.contains("space exceeded"), "{refused}");
    let noticed = async || {
        let log = stage.operator.log();
        ensure!(
            log.contains("cannot renew the lease"),
            "{}",
            stage.operator.log_end()
        );
        Ok(())
    };
    stage.wait("a refused renewal", PATIENCE, noticed).await?;
    stage.world.kubectl(&["delete", "configmap", "--all"])?;
    stage.world.cluster.make_room().await?;
    let roomy = Instant::now();
    let after = Scenario::Suspend.prepare(&stage, "after").await;
    after.context("a key after there was room again")?;
    println!("converged after {:.3} s", roomy.elapsed().as_secs_f64());
    ensure!(
        kept.before == stage.objects.text_hash("kept").await?,
        "another key"
    );
    ensure!(
        stage.operator.exit_status()?.is_none(),
        "{}",
        stage.operator.log_end()
    );
    stage.holds_for_good().await
}

//! What the operator stands on is taken away and given back: its Lease, its rights, and the definition
//! of its resources.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use water_domain::Timestamp;
use water_harness::{ControlPlane, Redis};

use crate::clients::Expected;
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::world::{PATIENCE, World, install_definitions};

async fn runs_on(stage: &Stage) -> Result<()> {
    ensure!(
        stage.operator.exit_status()?.is_none(),
        "{}",
        stage.operator.log_end()
    );
    stage.holds_for_good().await
}

/// A record that does not change for this long is anybody's.
const LEASE: i64 = 15_000;

/// Waits until the Lease has been one operator's for longer than another's would last.
async fn kept(stage: &Stage) -> Result<Value> {
    let kept = async || {
        let lease = stage.world.get("lease/water-operator")?;
        let at = |field: &str| {
            let time = lease["spec"][field].as_str().context("no time")?;
            anyhow::Ok(Timestamp::parse(time)?.as_millis())
        };
        let held = at("renewTime")? - at("acquireTime")?;
        ensure!(held > LEASE, "{lease}");
        Ok(lease)
    };
    stage.wait("one holder of the Lease", PATIENCE, kept).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_deleted_resets_nothing_and_is_taken_by_one_operator_once() -> Result<()> {
    let stage = Stage::new("lease-deleted").await?;
    let standby = stage.standby()?;
    let said = |text: &str| {
        let logs = stage.operator.log() + &standby.log();
        logs.matches(text).count()
    };
    let stands_by = async || {
        ensure!(said("operator started") == 2, "{}", standby.log_end());
        Ok(())
    };
    stage.wait("the standby", PATIENCE, stands_by).await?;
    Scenario::Suspend.prepare(&stage, "before").await?;
    let before = stage.point().await?;
    stage
        .world
        .kubectl(&["delete", "lease", "water-operator"])?;
    let deleted = Instant::now();
    Scenario::Suspend.prepare(&stage, "after").await?;
    println!("converged after {:.3} s", deleted.elapsed().as_secs_f64());
    let lease = kept(&stage).await?;
    ensure!(lease["spec"]["leaseTransitions"] == 0, "{lease}");
    let (began, ended) = (said("\"leading\""), said("the lease names another leader"));
    ensure!(
        began == 2 && ended == 1,
        "{began} leaderships began and {ended} ended:\n{}\n\n{}",
        stage.operator.log_end(),
        standby.log_end()
    );
    let after = stage.point().await?;
    ensure!(
        after.term >= before.term && after.generation == before.generation,
        "{after:?}"
    );
    standby.stop(PATIENCE).await?;
    let leads = async || {
        let lease = stage.world.get("lease/water-operator")?;
        ensure!(lease["spec"]["holderIdentity"] == "operator-0", "{lease}");
        Ok(())
    };
    stage.wait("the Lease", PATIENCE, leads).await?;
    runs_on(&stage).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_that_are_taken_away_and_given_back_need_no_restart() -> Result<()> {
    let stage = Stage::new("rights-taken").await?;
    Scenario::Suspend.prepare(&stage, "before").await?;
    let role = "role/water-operator";
    let rules = stage.world.get(role)?["rules"].clone();
    stage.world.patch(role, &json!({ "rules": [] }), &[])?;
    stage.interceptor.cut();
    let forbidden = async || {
        let log = stage.operator.log();
        ensure!(
            log.contains("cannot renew the lease"),
            "{}",
            stage.operator.log_end()
        );
        Ok(())
    };
    stage.wait("a refused renewal", PATIENCE, forbidden).await?;
    stage.world.patch(role, &json!({ "rules": rules }), &[])?;
    let given = Instant::now();
    Scenario::Suspend.prepare(&stage, "after").await?;
    println!("converged after {:.3} s", given.elapsed().as_secs_f64());
    runs_on(&stage).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_is_deleted_and_made_again_revokes_its_keys_and_takes_new_ones()
-> Result<()> {
    let redis = Redis::start().await?;
    let world = World::on(ControlPlane::start().await?, "definition", &redis.url()).await?;
    let stage = Stage::of(world, redis, |operator| operator).await?;
    let subject = Scenario::Delete.prepare(&stage, "before").await?;
    let before = subject.before.context("a key")?;
    stage.clients.expect(before, Expected::Either);
    let definition = "crd/apikeys.waterdata.dev";
    stage
        .world
        .kubectl(&["delete", definition, "--wait=false"])?;
    stage.world.gone(definition).await?;
    stage.clients.expect(before, Expected::Refused);
    install_definitions(stage.world.cluster).await?;
    let made = Instant::now();
    Scenario::Suspend.prepare(&stage, "after").await?;
    println!("converged after {:.3} s", made.elapsed().as_secs_f64());
    runs_on(&stage).await
}

//! Tests in which the operator loses something that it depends on, and gets it back: its Lease, its rights, and the
//! definition of its resources.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use water_domain::Timestamp;
use water_harness::ControlPlane;
use water_kit::operator::clients::Expected;
use water_kit::operator::stage::{Stage, converged};
use water_kit::operator::world::{PATIENCE, install_definitions};

use crate::steps::one_leadership;

/// A record that does not change for this long is anybody's.
const LEASE: i64 = 15_000;

/// Waits until the Lease has been one operator's for longer than another's would last.
async fn kept(stage: &Stage) -> Result<Value> {
    let kept = async || {
        let lease = stage.get("lease/water-operator")?;
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
async fn fault_06_a_lease_that_is_deleted_resets_nothing_and_is_taken_by_one_operator_once()
-> Result<()> {
    let start = async |namespace: &str| Ok((Stage::new(namespace).await?, ()));
    one_leadership("lease-deleted", start, async |stage, ()| {
        deleted_lease(stage).await
    })
    .await
}

async fn deleted_lease(stage: &Stage) -> Result<()> {
    let standby = stage.operator("operator-1")?;
    stage.logged(&standby, "operator started").await?;
    stage.generate("before").await?;
    let before = stage.point().await?;
    stage.objects.delete("lease/water-operator")?;
    let deleted = Instant::now();
    stage.generate("after").await?;
    converged(deleted);
    let lease = kept(stage).await?;
    let logs = stage.logs();
    let said = |text: &str| logs.matches(text).count();
    let (began, ended) = (said("\"leading\""), said("the lease names another leader"));
    ensure!(
        lease["spec"]["leaseTransitions"] == 0 && began == 2 && ended == 1,
        "{began} leaderships began and {ended} ended: {lease}\n{logs}"
    );
    let after = stage.point().await?;
    ensure!(
        after.term >= before.term && after.generation == before.generation,
        "{after:?}"
    );
    standby.stop(PATIENCE).await?;
    let leads = async || {
        let leader = stage.objects.leader()?;
        ensure!(leader.as_deref() == Some("operator-0"), "{leader:?}");
        Ok(())
    };
    stage.wait("the Lease", PATIENCE, leads).await?;
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_14_rights_that_are_taken_away_and_given_back_need_no_restart() -> Result<()> {
    let stage = Stage::new("rights-taken").await?;
    stage.generate("before").await?;
    let role = "role/water-operator";
    let rules = stage.get(role)?["rules"].clone();
    stage.objects.patch(role, &json!({ "rules": [] }))?;
    stage.interceptor.cut();
    let refused = "cannot renew the lease";
    stage.logged(&stage.operator, refused).await?;
    stage.objects.patch(role, &json!({ "rules": rules }))?;
    let given = Instant::now();
    stage.generate("after").await?;
    converged(given);
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_15_a_definition_that_is_deleted_and_made_again_revokes_its_keys_and_takes_new_ones()
-> Result<()> {
    let stage = Stage::on(ControlPlane::start().await?, "definition").await?;
    let before = stage.generate("before").await?;
    stage.clients.expect(before, Expected::Either);
    let definition = "crd/apikeys.waterdata.dev";
    stage.objects.delete(definition)?;
    stage.gone(definition).await?;
    stage.clients.expect(before, Expected::Refused);
    install_definitions(stage.cluster).await?;
    let made = Instant::now();
    stage.generate("after").await?;
    converged(made);
    stage.holds_for_good().await
}

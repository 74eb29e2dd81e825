//! A list that takes longer than a pass, and a restart amid the changes of a population.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;
use water_harness::{ControlPlane, Fault, Moment, Which};
use water_kit::operator::stage::{Stage, converged};

use super::{NAME, each_is_told_once, restart};
use crate::faults::population::Population;

/// Longer than a pass or a sweep may have taken where these were bounded.
const DELAY: Duration = Duration::from_secs(50);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_takes_longer_than_a_pass_delays_a_rebuild_and_does_not_end_it() -> Result<()> {
    let stage = Stage::new("late-list").await?;
    stage.generate(NAME).await?;
    let before = stage.point().await?;
    // The request for a list in one answer has no parameters.
    let lists = Which::Ending("/apikeys?");
    let late = Fault::Late(DELAY);
    stage.interceptor.order(lists, Moment::BeforeDelivery, late);
    stage.redis.command(&["FLUSHALL"]).await?;
    let lost = Instant::now();
    stage.clients.forget();
    let suspend = json!({ "spec": { "suspend": true } });
    stage.objects.edit(NAME, &suspend)?;
    stage.rebuilt(before.generation).await?;
    ensure!(lost.elapsed() >= DELAY, "no list was late");
    stage.key_is(NAME, "Ready", "True/Suspended").await?;
    converged(lost);
    stage.interceptor.recall();
    stage.holds_for_good().await
}

/// Events of the keys of a population whose changes are through before the fault, …
const EARLY: [(&str, &[&str]); 7] = [
    ("early-create", &["KeyIssued"]),
    ("early-rotate", &["KeyIssued", "KeyRotated"]),
    ("early-reissue", &["KeyIssued", "SecretReissued"]),
    ("early-suspend", &["KeyIssued", "KeySuspended"]),
    ("early-delete", &["KeyIssued", "KeyRevoked"]),
    ("partner", &["KeyIssued"]),
    ("former", &["KeyIssued", "KeyRevoked"]),
];
/// … and the keys whose changes begin with it.
const LATE: [&str; 5] = [
    "late-create",
    "late-rotate",
    "late-reissue",
    "late-suspend",
    "late-delete",
];

/// Waits until these are the events about the early keys.
async fn early_keys_are_reported(stage: &Stage) -> Result<()> {
    for (name, reasons) in EARLY {
        stage.told(name, reasons).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_07_an_api_server_that_is_restarted_amid_changes_loses_none_and_is_told_nothing_twice()
-> Result<()> {
    let stage = Stage::on(ControlPlane::start().await?, "api-server-again").await?;
    let population = Population::make(&stage).await?;
    // Reported by now: an event that the API server does not take is not sent again.
    early_keys_are_reported(&stage).await?;
    population.change(&stage)?;
    let ready = restart(&stage).await?;
    population.rest(&stage, ready).await?;
    // What is reported afterwards comes after all that the restart may have reported again.
    stage.bring("last", 'b').await?;
    stage.told("last", &["KeyIssued"]).await?;
    early_keys_are_reported(&stage).await?;
    for name in LATE {
        each_is_told_once(&stage, name)?;
    }
    stage.holds_for_good().await
}

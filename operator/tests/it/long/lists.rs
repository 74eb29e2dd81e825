//! Lists that are cut off: what they have shown is not all there is.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::Value;
use tokio::time::Instant;
use water_domain::KeyHash;
use water_harness::{ControlPlane, ControlPlaneOptions, Fault, Moment, Which};
use water_kit::operator::clients::Expected;
use water_kit::operator::objects::shown;
use water_kit::operator::stage::{Stage, converged};
use water_kit::operator::world::{PATIENCE, brought};

/// A page has 500. One sweep may remove as few as are on the second.
const KEYS: usize = 503;
const PAGE: usize = 500;
/// The request for a page after the first.
const NEXT_PAGE: &str = "continue=";
/// The request for a list in one answer: it has no parameters.
const LIST: &str = "/apikeys?";

fn hash(number: usize) -> String {
    format!("{number:012x}{number:052x}")
}

fn declared(number: usize) -> Value {
    let mut key = brought(&format!("key-{number:03}"), '0');
    key["spec"]["material"]["hash"]["sha256"] = hash(number).into();
    key
}

/// Waits until every ApiKey is in force, and the directory holds their keys and no others.
async fn all_in_force(stage: &Stage) -> Result<()> {
    let wanted = (0..KEYS).map(|number| Ok(hash(number).parse()?));
    let wanted: BTreeSet<KeyHash> = wanted.collect::<Result<_>>()?;
    let in_force = async || {
        let keys = stage.objects.keys()?;
        let keys = keys.iter();
        let active = keys.filter(|key| shown(key, "Ready") == "True/Active");
        let active = active.count();
        ensure!(active == KEYS, "{active} are active");
        let stored = stage.directory()?.stored().await?;
        let stored: BTreeSet<KeyHash> = stored.into_keys().collect();
        ensure!(stored == wanted, "{} are stored", stored.len());
        Ok(())
    };
    stage.wait_for_all("all keys", 2 * PATIENCE, in_force).await
}

/// Answers these requests with the beginning of a list that never comes to its end.
fn cut_lists(stage: &Stage, requests: Which) {
    let list = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":["#;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let answer = format!("{head}Content-Length: 1000\r\n\r\n{list}");
    let (moment, answer) = (Moment::BeforeDelivery, Fault::Answer(answer.into()));
    stage.interceptor.order(requests, moment, answer);
}

/// Waits until three such requests were cut off.
async fn cut_off(stage: &Stage, is_cut: impl Fn(&str) -> bool) -> Result<()> {
    let asked = async || {
        let asked = stage.interceptor.requests();
        let cut = asked.iter().filter(|line| is_cut(line)).count();
        ensure!(cut >= 3, "{cut} were cut off");
        Ok(())
    };
    stage.wait("lists", PATIENCE, asked).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_12_a_list_whose_second_page_is_cut_off_fills_no_directory() -> Result<()> {
    // Without this, lists have no pages.
    let options = ControlPlaneOptions {
        flags: &["--feature-gates=WatchList=false"],
        ..ControlPlaneOptions::DEFAULT
    };
    let cluster = ControlPlane::start_with(options).await?;
    let stage = Stage::on(cluster, "second-page").await?;
    (0..KEYS).try_for_each(|number| stage.objects.create(&declared(number)))?;
    all_in_force(&stage).await?;
    for number in PAGE..KEYS {
        let hash = hash(number).parse()?;
        stage.clients.expect(hash, Expected::Accepted);
    }
    let before = stage.point().await?;
    // The next leader has nothing but lists to fill the directory from.
    stage.operator.stop(PATIENCE).await?;
    stage.redis.command(&["FLUSHALL"]).await?;
    cut_lists(&stage, Which::Every(NEXT_PAGE));
    stage.operator.start_again()?;
    cut_off(&stage, |request| request.contains(NEXT_PAGE)).await?;
    let seen = stage.directory()?.observe().await?;
    ensure!(seen.verified().is_none(), "filled from a page: {seen:?}");
    stage.interceptor.recall();
    let whole = Instant::now();
    stage.rebuilt(before.generation).await?;
    all_in_force(&stage).await?;
    converged(whole);
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_12_a_list_that_a_sweep_asks_for_and_is_cut_off_withdraws_nothing() -> Result<()> {
    let stage = Stage::new("cut-list").await?;
    stage.bring("acme", 'a').await?;
    let before = stage.point().await?;
    cut_lists(&stage, Which::Ending(LIST));
    // Only sweeps list while all watches are well.
    cut_off(&stage, |request| request.ends_with(LIST)).await?;
    ensure!(stage.point().await? == before, "something was withdrawn");
    stage.interceptor.recall();
    stage.holds_for_good().await
}

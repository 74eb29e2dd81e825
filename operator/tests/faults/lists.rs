//! Lists that are cut off: what they have shown is not all there is.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::Value;
use tokio::time::Instant;
use water_domain::KeyHash;
use water_harness::{ControlPlane, ControlPlaneOptions, Fault, Moment, Redis, Which};

use crate::clients::Expected;
use crate::objects::shown;
use crate::stage::Stage;
use crate::world::{PATIENCE, World, brought};

/// A page has 500. One sweep may remove as few as are on the second.
const KEYS: usize = 503;
const PAGE: usize = 500;
/// The request for a page after the first.
const NEXT_PAGE: &str = "continue=";
/// The request for a list in one answer: it has no parameters.
const LIST: &str = "/apikeys?";

fn name(number: usize) -> String {
    format!("key-{number:03}")
}

fn hash(number: usize) -> String {
    format!("{number:012x}{number:052x}")
}

fn declared(number: usize) -> Value {
    let mut key = brought(&name(number), '0');
    key["spec"]["material"]["hash"]["sha256"] = hash(number).into();
    key
}

/// Waits until every ApiKey is in force, and the directory holds their keys and no others.
async fn all_in_force(stage: &Stage) -> Result<()> {
    let wanted: Result<BTreeSet<KeyHash>> = (0..KEYS).map(|it| Ok(hash(it).parse()?)).collect();
    let wanted = wanted?;
    let in_force = async || {
        let keys = stage.objects.keys().await?;
        let active = keys
            .iter()
            .filter(|key| shown(key, "Ready") == "True/Active");
        let active = active.count();
        ensure!(active == KEYS, "{active} are active");
        let stored = stage.world.directory()?.stored().await?;
        let stored: BTreeSet<KeyHash> = stored.into_keys().collect();
        ensure!(stored == wanted, "{} are stored", stored.len());
        Ok(())
    };
    stage.wait_for_all("all keys", 2 * PATIENCE, in_force).await
}

/// The beginning of a list that never comes to its end.
fn beginning() -> Fault {
    let list = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":["#;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    Fault::Answer(format!("{head}Content-Length: 1000\r\n\r\n{list}").into())
}

/// Waits until so many such requests were cut off.
async fn cut_off(stage: &Stage, is_cut: impl Fn(&str) -> bool, times: usize) -> Result<()> {
    let asked = async || {
        let asked = stage.interceptor.requests();
        let cut = asked.iter().filter(|line| is_cut(line)).count();
        ensure!(cut >= times, "{cut} were cut off");
        Ok(())
    };
    stage.wait("lists", PATIENCE, asked).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_whose_second_page_is_cut_off_fills_no_directory() -> Result<()> {
    let redis = Redis::start().await?;
    // Without this, lists have no pages.
    let options = ControlPlaneOptions {
        flags: &["--feature-gates=WatchList=false"],
        ..ControlPlaneOptions::DEFAULT
    };
    let cluster = ControlPlane::start_with(options).await?;
    let world = World::on(cluster, "second-page", &redis.url()).await?;
    let stage = Stage::of(world, redis, |operator| operator).await?;
    for number in 0..KEYS {
        stage.objects.create(&declared(number)).await?;
    }
    all_in_force(&stage).await?;
    for number in PAGE..KEYS {
        stage
            .clients
            .expect(hash(number).parse()?, Expected::Accepted);
    }
    let before = stage.point().await?;
    // The next leader has nothing but lists to fill the directory from.
    stage.operator.stop(PATIENCE).await?;
    stage.redis.command(&["FLUSHALL"]).await?;
    stage
        .interceptor
        .order(Which::Every(NEXT_PAGE), Moment::BeforeDelivery, beginning());
    stage.operator.start_again()?;
    cut_off(&stage, |request| request.contains(NEXT_PAGE), 3).await?;
    let seen = stage.world.directory()?.observe().await?;
    ensure!(seen.verified().is_none(), "filled from a page: {seen:?}");
    stage.interceptor.recall();
    let whole = Instant::now();
    stage.rebuilt(before.generation).await?;
    all_in_force(&stage).await?;
    println!("converged after {:.3} s", whole.elapsed().as_secs_f64());
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_a_sweep_asks_for_and_is_cut_off_withdraws_nothing() -> Result<()> {
    let stage = Stage::new("cut-list").await?;
    stage.world.in_force(&brought("acme", 'a')).await?;
    let key = "a".repeat(64).parse()?;
    stage.clients.expect(key, Expected::Accepted);
    let before = stage.point().await?;
    stage
        .interceptor
        .order(Which::Ending(LIST), Moment::BeforeDelivery, beginning());
    // Only sweeps list while all watches are well.
    cut_off(&stage, |request| request.ends_with(LIST), 3).await?;
    ensure!(stage.point().await? == before, "something was withdrawn");
    stage.interceptor.recall();
    stage.holds_for_good().await
}

//! An API server that answers what no client likes, or is restarted (in the module `long` amid the changes of a
//! population): the operator asks again and misses nothing. The module `measurements` has how soon it does.

mod long;
mod measurements;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;
use water_harness::{ControlPlane, Fault, Moment, Which};
use water_kit::operator::stage::{Stage, converged};
use water_kit::operator::world::PATIENCE;

const NAME: &str = "acme";
/// Answer of an API server to a watch for changes since a time that it has forgotten.
const EXPIRED: &str = concat!(
    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"too old resource version","reason":"Expired","code":410}"#,
);
/// The beginning of an event.
const HALF: &str = r#"{"type":"MODIFIED","object":{"apiVersion":"waterdata.dev/v1","kind":"Api"#;
/// Every watch.
const ANY: &str = "watch=true";
/// A watch that begins with all objects, as a list does.
const LIST: &str = "sendInitialEvents=true";
/// A watch that goes on where another ended.
const RESUMED: &str = "allowWatchBookmarks=true&resourceVersion=";

fn answer(status: &str, more: &str, length: usize, body: &str) -> Fault {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{more}\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    Fault::Answer((head + body).into())
}

/// Lets the fault happen to all requests that contain this.
fn order(stage: &Stage, requests: &'static str, fault: Fault) {
    let (which, moment) = (Which::Every(requests), Moment::BeforeDelivery);
    stage.interceptor.order(which, moment, fault);
}

/// Waits until so many requests since the last order contained all of this.
async fn asked(stage: &Stage, words: &[&str], times: usize) -> Result<()> {
    let asked = async || {
        let asked = stage.interceptor.requests();
        let is_one = |line: &&String| words.iter().all(|word| line.contains(word));
        ensure!(asked.iter().filter(is_one).count() >= times, "{asked:?}");
        Ok(())
    };
    stage.wait(&format!("{words:?}"), PATIENCE, asked).await
}

async fn suspended(stage: &Stage, suspend: bool) -> Result<()> {
    let edit = json!({ "spec": { "suspend": suspend } });
    stage.objects.edit(NAME, &edit)?;
    let wanted = if suspend {
        "True/Suspended"
    } else {
        "True/Active"
    };
    stage.key_is(NAME, "Ready", wanted).await.map(drop)
}

/// Answers all such watches so. A change meanwhile is in force once they are answered well again; of a
/// watch that `is_listed`, before: each such answer is followed by a list.
async fn watches_are_answered(
    namespace: &str,
    watches: &'static str,
    fault: Fault,
    is_listed: bool,
) -> Result<()> {
    let stage = Stage::new(namespace).await?;
    stage.generate(NAME).await?;
    stage.clients.forget();
    stage.bring("kept", 'a').await?;
    order(&stage, watches, fault);
    stage.interceptor.cut();
    // The list that follows goes on as a watch, which is resumed after a minute.
    let times = if is_listed { 1 } else { 3 };
    asked(&stage, &["/apikeys?", watches], times).await?;
    let well = if is_listed {
        suspended(&stage, true).await?;
        stage.interceptor.recall();
        Instant::now()
    } else {
        let edit = json!({ "spec": { "suspend": true } });
        stage.objects.edit(NAME, &edit)?;
        stage.interceptor.recall();
        let well = Instant::now();
        stage.key_is(NAME, "Ready", "True/Suspended").await?;
        well
    };
    suspended(&stage, false).await?;
    converged(well);
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_10_a_watch_that_ends_with_410_is_followed_by_a_list() -> Result<()> {
    let event = format!("{{\"type\":\"ERROR\",\"object\":{EXPIRED}}}\n");
    let fault = answer("200 OK", "", event.len(), &event);
    watches_are_answered("watch-error", RESUMED, fault, true).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_11_a_watch_that_is_refused_with_410_is_followed_by_a_list() -> Result<()> {
    let fault = answer("410 Gone", "", EXPIRED.len(), EXPIRED);
    watches_are_answered("watch-gone", RESUMED, fault, true).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_12_a_watch_that_is_cut_off_within_an_event_loses_none() -> Result<()> {
    let fault = answer("200 OK", "", HALF.len() + 1000, HALF);
    watches_are_answered("watch-cut", ANY, fault, false).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_12_a_list_that_is_cut_off_is_not_taken_for_all_there_is() -> Result<()> {
    let stage = Stage::new("list-cut").await?;
    stage.generate(NAME).await?;
    let before = stage.point().await?;
    stage.operator.stop(PATIENCE).await?;
    // The next leader has nothing but lists to fill the directory from.
    stage.redis.command(&["FLUSHALL"]).await?;
    order(&stage, LIST, answer("200 OK", "", HALF.len() + 1000, HALF));
    stage.operator.start_again()?;
    asked(&stage, &["/apikeys?"], 3).await?;
    let seen = stage.directory()?.observe().await?;
    ensure!(seen.verified().is_none(), "filled from nothing: {seen:?}");
    stage.interceptor.recall();
    let whole = Instant::now();
    stage.rebuilt(before.generation).await?;
    converged(whole);
    stage.key_is(NAME, "Ready", "True/Active").await?;
    stage.holds_for_good().await
}

/// Kills the API server and starts it again on the same etcd. Returns the time at which it was ready.
async fn restart(stage: &Stage) -> Result<Instant> {
    let api_server = stage.cluster.api_server();
    api_server.kill()?;
    api_server.start_again()?;
    stage.cluster.ready().await?;
    Ok(Instant::now())
}

/// Fails where a reason is told twice of a key. A restarted API server may not take what is told meanwhile; and before
/// it has read its roles it refuses what is allowed, which is told, too.
fn each_is_told_once(stage: &Stage, name: &str) -> Result<()> {
    let events = stage.events(name)?;
    let reasons: BTreeSet<&String> = events.iter().collect();
    ensure!(reasons.len() == events.len(), "{name}: {events:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_07_a_change_that_was_asked_for_before_a_restart_is_made_and_nothing_is_told_twice()
-> Result<()> {
    let stage = Stage::on(ControlPlane::start().await?, "api-server-once").await?;
    stage.generate(NAME).await?;
    stage.clients.forget();
    stage.bring("kept", 'a').await?;
    // Told by now: an event that the API server does not take is not sent again.
    for name in [NAME, "kept"] {
        stage.told(name, &["KeyIssued"]).await?;
    }
    let suspend = json!({ "spec": { "suspend": true } });
    stage.objects.edit(NAME, &suspend)?;
    let ready = restart(&stage).await?;
    stage.key_is(NAME, "Ready", "True/Suspended").await?;
    converged(ready);
    // What is told afterwards comes after all that the restart may have told again.
    stage.bring("last", 'b').await?;
    stage.told("last", &["KeyIssued"]).await?;
    stage.told("kept", &["KeyIssued"]).await?;
    each_is_told_once(&stage, NAME)?;
    stage.holds_for_good().await
}

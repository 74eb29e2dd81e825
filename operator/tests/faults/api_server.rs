//! An API server that answers what no client likes, or is restarted: the operator asks again and
//! misses nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;
use water_harness::{ControlPlane, Fault, Moment, Redis, Which};

use crate::objects::shown;
use crate::population::{Population, in_force};
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::world::{PATIENCE, World, key};

const NAME: &str = "acme";
/// What an API server says to one that asks for changes since a time that it has forgotten.
const EXPIRED: &str = concat!(
    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"too old resource version","reason":"Expired","code":410}"#,
);

fn answer(status: &str, more: &str, length: usize, body: &str) -> Fault {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{more}\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    Fault::Answer((head + body).into())
}

async fn suspend(stage: &Stage, suspend: bool) -> Result<()> {
    let edit = json!({ "spec": { "suspend": suspend } });
    stage.objects.edit(NAME, &edit).await
}

/// Waits until the key is told to stand so.
async fn is(stage: &Stage, wanted: &str) -> Result<()> {
    let told = async || {
        let key = stage.objects.key(NAME).await?;
        let shown = key.as_ref().map(|key| shown(key, "Ready"));
        ensure!(shown.as_deref() == Some(wanted), "{shown:?}");
        Ok(())
    };
    stage.wait(wanted, PATIENCE, told).await
}

/// Every watch.
const ANY: &str = "watch=true";
/// One that begins with all objects, as a list does.
const LIST: &str = "sendInitialEvents=true";
/// One that goes on where another ended.
const RESUMED: &str = "allowWatchBookmarks=true&resourceVersion=";

/// When a change has to be in force that was made while watches were answered wrongly.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Meanwhile: each such answer to a resumed watch is followed by a list.
    Meanwhile,
    /// Once they are answered well again.
    Afterwards,
}

async fn watches_are_answered(
    namespace: &str,
    watches: &'static str,
    fault: Fault,
    seen: Seen,
) -> Result<()> {
    let stage = Stage::new(namespace).await?;
    Scenario::Suspend.prepare(&stage, NAME).await?;
    stage.clients.forget();
    in_force(&stage, "kept", 'a').await?;
    stage
        .interceptor
        .order(Which::Every(watches), Moment::BeforeDelivery, fault);
    stage.interceptor.cut();
    let times = match seen {
        // The list that follows goes on as a watch, which is resumed after a minute.
        Seen::Meanwhile => 1,
        Seen::Afterwards => 3,
    };
    let asked = async || {
        let asked = stage.interceptor.requests();
        let is_answered = |line: &&String| line.contains("/apikeys?") && line.contains(watches);
        ensure!(
            asked.iter().filter(is_answered).count() >= times,
            "{asked:?}"
        );
        Ok(())
    };
    stage.wait("wrong answers", PATIENCE, asked).await?;
    suspend(&stage, true).await?;
    if seen == Seen::Meanwhile {
        is(&stage, "True/Suspended").await?;
    }
    stage.interceptor.recall();
    let well = Instant::now();
    is(&stage, "True/Suspended").await?;
    suspend(&stage, false).await?;
    is(&stage, "True/Active").await?;
    println!("converged after {:.3} s", well.elapsed().as_secs_f64());
    ensure!(
        stage.operator.exit_status()?.is_none(),
        "{}",
        stage.operator.log_end()
    );
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_ends_with_410_is_followed_by_a_list() -> Result<()> {
    let event = format!("{{\"type\":\"ERROR\",\"object\":{EXPIRED}}}\n");
    let fault = answer("200 OK", "", event.len(), &event);
    watches_are_answered("watch-error", RESUMED, fault, Seen::Meanwhile).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_refused_with_410_is_followed_by_a_list() -> Result<()> {
    let fault = answer("410 Gone", "", EXPIRED.len(), EXPIRED);
    watches_are_answered("watch-gone", RESUMED, fault, Seen::Meanwhile).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_cut_off_within_an_event_loses_none() -> Result<()> {
    let half = r#"{"type":"MODIFIED","object":{"apiVersion":"waterdata.dev/v1","kind":"Api"#;
    let fault = answer("200 OK", "", half.len() + 1000, half);
    watches_are_answered("watch-cut", ANY, fault, Seen::Afterwards).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_cut_off_is_not_taken_for_all_there_is() -> Result<()> {
    let stage = Stage::new("list-cut").await?;
    Scenario::Suspend.prepare(&stage, NAME).await?;
    let before = stage.point().await?;
    stage.operator.stop(PATIENCE).await?;
    // The next leader has nothing but lists to fill the directory from.
    stage.redis.command(&["FLUSHALL"]).await?;
    let half = r#"{"type":"ADDED","object":{"apiVersion":"waterdata.dev/v1","kind":"Api"#;
    let fault = answer("200 OK", "", half.len() + 1000, half);
    stage
        .interceptor
        .order(Which::Every(LIST), Moment::BeforeDelivery, fault);
    stage.operator.start_again()?;
    let asked = async || {
        let asked = stage.interceptor.requests();
        let lists = asked.iter().filter(|line| line.contains("/apikeys?"));
        ensure!(lists.count() > 2, "{asked:?}");
        Ok(())
    };
    stage.wait("lists", PATIENCE, asked).await?;
    let seen = stage.world.directory()?.observe().await?;
    ensure!(seen.verified().is_none(), "filled from nothing: {seen:?}");
    stage.interceptor.recall();
    let whole = Instant::now();
    stage.rebuilt(before.generation).await?;
    println!("converged after {:.3} s", whole.elapsed().as_secs_f64());
    is(&stage, "True/Active").await?;
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_never_answered_ends_within_15_seconds_and_is_made_again() -> Result<()> {
    let stage = Stage::new("request-hangs").await?;
    in_force(&stage, "kept", 'a').await?;
    stage.interceptor.order(
        Which::Every("/secrets/acme-apikey"),
        Moment::BeforeDelivery,
        Fault::Hang,
    );
    stage.world.apply(&key(NAME))?;
    let given_up = async || {
        let log = stage.operator.log();
        let told = log.contains("the pass took longer than 15s");
        ensure!(told, "{}", stage.operator.log_end());
        Ok(())
    };
    let within = Duration::from_secs(20);
    stage.wait("the end of a pass", within, given_up).await?;
    stage.interceptor.recall();
    let answered = Instant::now();
    is(&stage, "True/Active").await?;
    println!("converged after {:.3} s", answered.elapsed().as_secs_f64());
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_that_name_ten_minutes_are_asked_again_within_seconds() -> Result<()> {
    let stage = Stage::new("retry-after").await?;
    in_force(&stage, "kept", 'a').await?;
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let fault = answer(status, "Retry-After: 600\r\n", 0, "");
        stage
            .interceptor
            .order(Which::Every(" /"), Moment::BeforeDelivery, fault);
        stage.interceptor.cut();
        // Until the leadership is lost, too.
        let refused = async || {
            let renewals = stage.interceptor.requests();
            let renewals = renewals.iter().filter(|line| line.contains("/leases/"));
            ensure!(renewals.count() > 6, "{}", stage.operator.log_end());
            Ok(())
        };
        stage.wait("refusals", PATIENCE, refused).await?;
        stage.interceptor.recall();
        let served = Instant::now();
        let name = format!("after-{}", &status[..3]);
        Scenario::Suspend.prepare(&stage, &name).await?;
        let took = served.elapsed();
        println!("converged after {:.3} s", took.as_secs_f64());
        ensure!(took < Duration::from_secs(20), "{took:?}");
    }
    ensure!(
        stage.operator.exit_status()?.is_none(),
        "{}",
        stage.operator.log_end()
    );
    stage.holds_for_good().await
}

/// What is told of the keys of a population whose changes are through before the fault, …
const EARLY: [(&str, &[&str]); 7] = [
    ("early-create", &["KeyIssued"]),
    ("early-rotate", &["KeyIssued", "KeyRotated"]),
    ("early-reissue", &["KeyIssued", "SecretReissued"]),
    ("early-suspend", &["KeyIssued", "KeySuspended"]),
    ("early-delete", &["KeyIssued", "KeyRevoked"]),
    ("partner", &["KeyIssued"]),
    ("former", &["KeyIssued", "KeyRevoked"]),
];
/// … and those whose changes begin with it.
const LATE: [&str; 5] = [
    "late-create",
    "late-rotate",
    "late-reissue",
    "late-suspend",
    "late-delete",
];

/// Waits until these are the events about the early keys.
async fn early_keys_are_told_of(stage: &Stage) -> Result<()> {
    for (name, reasons) in EARLY {
        stage.world.told(name, reasons).await?;
    }
    Ok(())
}

/// Each reason at most once. An API server that has not read its roles yet refuses what is allowed, which
/// is told, too; and it may not take what is told meanwhile.
fn nothing_is_told_twice_of_late_keys(stage: &Stage) -> Result<()> {
    for name in LATE {
        let told = stage.world.events(name)?;
        let reasons: BTreeSet<&String> = told.iter().collect();
        ensure!(reasons.len() == told.len(), "{name}: {told:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_restarted_amid_changes_loses_none_and_is_told_nothing_twice()
-> Result<()> {
    let redis = Redis::start().await?;
    let cluster = ControlPlane::start().await?;
    let world = World::on(cluster, "api-server-again", &redis.url()).await?;
    let stage = Stage::of(world, redis, |operator| operator).await?;
    let population = Population::of(&stage).await?;
    // Told by now: an event that the API server does not take is not told again.
    early_keys_are_told_of(&stage).await?;
    population.change(&stage).await?;
    let cluster = stage.world.cluster;
    cluster.api_server().kill()?;
    cluster.api_server().start_again()?;
    cluster.ready().await?;
    population.rest(&stage, Instant::now()).await?;
    // What is told afterwards comes after all that the restart may have told again.
    in_force(&stage, "last", 'b').await?;
    stage.world.told("last", &["KeyIssued"]).await?;
    early_keys_are_told_of(&stage).await?;
    nothing_is_told_twice_of_late_keys(&stage)?;
    ensure!(
        stage.operator.exit_status()?.is_none(),
        "{}",
        stage.operator.log_end()
    );
    stage.holds_for_good().await
}

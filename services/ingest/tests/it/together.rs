//! Two loads of the same data at once: the second says that it waits, waits for no longer than it
//! says, and loads upon what the first stored.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use water_harness::postgres_proxy::{Fault, Moment, Point, PostgresProxy};

use crate::interrupted::base::{ANALYSES, AUDITS, Base, RISK, STRESS, VIGIEAU};

/// Longer than a load takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

fn start(base: &Base, words: &str, way: SocketAddr) -> Child {
    let mut command = Command::from(base.command(words, way));
    command.kill_on_drop(true).spawn().unwrap()
}

/// A load that has done everything but commit, and the proxy that holds it there.
async fn held(base: &Base, words: &str) -> (Child, PostgresProxy) {
    let proxy = PostgresProxy::before(base.database.address())
        .await
        .unwrap();
    proxy.stop_at(Point::Text("COMMIT"), Moment::Before, Fault::Hold);
    let load = start(base, words, proxy.address());
    timeout(SOON, proxy.reached()).await.unwrap();
    (load, proxy)
}

/// The first line that a load says, byte by byte: nothing of the next one is taken.
async fn says(load: &mut Child) -> String {
    let said = load.stderr.as_mut().unwrap();
    let mut line = Vec::new();
    let read = async {
        while line.last() != Some(&b'\n') {
            line.push(said.read_u8().await.unwrap());
        }
    };
    timeout(SOON, read).await.unwrap();
    String::from_utf8(line).unwrap()
}

/// The exit status and the summary.
async fn ended(load: Child) -> (Option<i32>, Value) {
    let output = timeout(SOON, load.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let summary = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), summary)
}

async fn one_waits_for_the_other(first: &str, second: &str, dataset: &str) {
    let mut base = Base::new().await;
    let (old, new) = base.old_and_new(first).await;
    let (one, proxy) = held(&base, first).await;
    let mut other = start(&base, second, base.database.address());
    let waits = format!("waiting for another load of {dataset} to end, at most 10 minutes\n");
    assert_eq!(says(&mut other).await, waits);
    proxy.go_on();
    let (code, summary) = ended(one).await;
    assert_eq!((code, &summary["outcome"]), (Some(0), &json!("loaded")));
    let (code, summary) = ended(other).await;
    assert_eq!(code, Some(0), "{summary}");
    let stored = base.state().await;
    if first == second {
        assert_eq!(summary["outcome"], json!("unchanged"));
        assert!(stored == new, "{}", stored.beside(&old, &new));
    }
}

#[tokio::test]
async fn two_loads_of_stress_follow_each_other() {
    one_waits_for_the_other(STRESS, STRESS, "stress").await;
}

#[tokio::test]
async fn two_loads_of_risk_follow_each_other() {
    one_waits_for_the_other(RISK, RISK, "risk").await;
}

#[tokio::test]
async fn two_loads_of_levels_follow_each_other() {
    one_waits_for_the_other(VIGIEAU, VIGIEAU, "stress").await;
}

#[tokio::test]
async fn a_load_of_levels_follows_one_of_stress() {
    one_waits_for_the_other(STRESS, VIGIEAU, "stress").await;
}

#[tokio::test]
async fn two_loads_of_analyses_follow_each_other() {
    one_waits_for_the_other(ANALYSES, ANALYSES, "analyses").await;
}

#[tokio::test]
async fn two_loads_of_audits_follow_each_other() {
    one_waits_for_the_other(AUDITS, AUDITS, "audits").await;
}

#[tokio::test]
async fn a_load_that_has_waited_long_enough_gives_up_and_says_why() {
    for words in [STRESS, RISK, VIGIEAU, ANALYSES, AUDITS] {
        let base = Base::new().await;
        let (_first, _held) = held(&base, words).await;
        let way = PostgresProxy::before(base.database.address())
            .await
            .unwrap();
        way.rewrite("'10min'", "'100ms'");
        let mut second = start(&base, words, way.address());
        assert!(
            says(&mut second)
                .await
                .starts_with("waiting for another load")
        );
        let mut said = String::new();
        let rest = second.stderr.as_mut().unwrap().read_to_string(&mut said);
        timeout(SOON, rest).await.unwrap().unwrap();
        assert!(
            said.contains("waiting for another load of the dataset"),
            "{said}"
        );
        assert!(said.contains("lock timeout"), "{said}");
        assert_eq!(ended(second).await.0, Some(1));
    }
}

#[tokio::test]
async fn a_refused_load_ends_after_its_lock() {
    let base = Base::new().await;
    let proxy = PostgresProxy::before(base.database.address())
        .await
        .unwrap();
    proxy.stop_at(Point::Text("ROLLBACK"), Moment::Before, Fault::Hold);
    let mut load = start(
        &base,
        "load stress stress.csv --as-of 2026-02-01",
        proxy.address(),
    );
    timeout(SOON, proxy.reached()).await.unwrap();
    assert_eq!(load.try_wait().unwrap(), None);
    proxy.go_on();
    assert_eq!(ended(load).await.0, Some(3));
}

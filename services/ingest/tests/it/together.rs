//! Two loads of the same data at once: the second reports that it waits, waits no longer than it reports, and loads on
//! top of what the first stored.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use water_harness::postgres_proxy::{Fault, Moment, Point, PostgresProxy};
use water_kit::SOON;

use crate::interrupted::base::{ANALYSES, AUDITS, Base, RISK, STRESS, VIGIEAU};

fn start(base: &Base, words: &str, way: SocketAddr) -> Child {
    let mut command = Command::from(base.command_through(way, words));
    command.kill_on_drop(true).spawn().unwrap()
}

/// A load that has done everything but commit, and the proxy that holds it there.
async fn held(base: &Base, words: &str) -> (Child, PostgresProxy) {
    let proxy = PostgresProxy::before(base.address()).await.unwrap();
    proxy.stop_at(Point::Text("COMMIT"), Moment::Before, Fault::Hold);
    let load = start(base, words, proxy.address());
    timeout(SOON, proxy.reached()).await.unwrap();
    (load, proxy)
}

/// The first line of a load's messages, read byte by byte: nothing of the next one is taken.
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

/// Exit status and summary.
async fn ended(load: Child) -> (Option<i32>, Value) {
    let output = timeout(SOON, load.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let summary = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), summary)
}

#[tokio::test]
async fn two_loads_of_the_same_data_follow_each_other() {
    for (first, second, dataset) in [
        (STRESS, STRESS, "stress"),
        (RISK, RISK, "risk"),
        (VIGIEAU, VIGIEAU, "stress"),
        (STRESS, VIGIEAU, "stress"),
        (ANALYSES, ANALYSES, "analyses"),
        (AUDITS, AUDITS, "audits"),
    ] {
        let mut base = Base::new().await;
        let (old, new) = base.old_and_new(first).await;
        let (one, proxy) = held(&base, first).await;
        let mut other = start(&base, second, base.address());
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
}

#[tokio::test]
async fn a_load_that_has_waited_long_enough_gives_up_and_says_why() {
    for words in [STRESS, RISK, VIGIEAU, ANALYSES, AUDITS] {
        let base = Base::new().await;
        let (_first, _held) = held(&base, words).await;
        let way = PostgresProxy::before(base.address()).await.unwrap();
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
    let proxy = PostgresProxy::before(base.address()).await.unwrap();
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

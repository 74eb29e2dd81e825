//! A loader that is killed while the server merges what it staged.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{Instant, sleep};
use water_harness::postgres_proxy::{Fault, Moment, Point, PostgresProxy};

use crate::interrupted::base::{Base, history_file};

const WORDS: &str = "load analyses many.csv --as-of 2026-02-01";

/// First and last statement of a merge.
const FIRST: Point = Point::Text("CREATE TEMPORARY TABLE found");
const LAST: Point = Point::Text("COMMIT");

/// Kills that must hit a running statement.
const KILLS: u32 = 50;

async fn merging(base: &Base, proxy: &PostgresProxy) -> tokio::process::Child {
    proxy.stop_at(FIRST, Moment::Before, Fault::Hold);
    let mut command = Command::from(base.command_through(proxy.address(), WORDS));
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let loader = command.spawn().unwrap();
    proxy.reached().await;
    loader
}

/// Time from a merge's first statement to its commit.
async fn duration(base: &Base, proxy: &PostgresProxy) -> Duration {
    let mut loader = merging(base, proxy).await;
    proxy.stop_at(LAST, Moment::Before, Fault::Hold);
    let began = Instant::now();
    proxy.go_on();
    proxy.reached().await;
    let duration = began.elapsed();
    loader.kill().await.unwrap();
    duration
}

#[tokio::test]
async fn a_loader_killed_while_a_merge_runs_leaves_the_old_data_or_the_new() {
    let mut base = Base::new().await;
    base.file("many.csv", history_file("analyses", 0..6_000, 3));
    let (old, new) = base.old_and_new(WORDS).await;
    let proxy = PostgresProxy::before(base.address()).await.unwrap();
    // The shortest of three: a busy machine makes others longer.
    let mut whole = Duration::MAX;
    for _ in 0..3 {
        whole = whole.min(duration(&base, &proxy).await);
    }
    assert_eq!(base.state().await, old);
    let (mut tried, mut hit, mut stored) = (0, 0, 0);
    while hit < KILLS {
        tried += 1;
        assert!(
            tried <= 4 * KILLS,
            "{hit} of {tried} kills hit a running statement"
        );
        let mut loader = merging(&base, &proxy).await;
        proxy.go_on();
        // The kills are spread over the whole merge.
        sleep(whole.mul_f64(f64::from(tried * 37 % 100) / 100.0)).await;
        hit += u32::from(proxy.is_working());
        loader.kill().await.unwrap();
        let state = base.state().await;
        assert!(state == old || state == new, "{}", state.beside(&old, &new));
        if state == new {
            stored += 1;
            base.renew().await;
        }
    }
    println!("{tried} kills in merges of {whole:?}: {hit} in a running statement, {stored} stored");
}

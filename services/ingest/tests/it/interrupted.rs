//! Loads that are killed, or lose their connection, before or after each message that they send to
//! PostgreSQL. The database holds the old data or the new, never a mix.

pub mod base;
mod merge;

use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;
use water_harness::{Fault, Moment, Point, PostgresProxy};

use crate::interrupted::base::Base;

/// Every message is killed and cut on one side of its delivery. With this variable set to `all` it is
/// on both.
const HOW_MUCH: &str = "WATER_INTERRUPTIONS";

const HALF: [(Moment, Fault); 2] = [(Moment::Before, Fault::Hold), (Moment::After, Fault::Cut)];
const ALL: [(Moment, Fault); 4] = [
    (Moment::Before, Fault::Hold),
    (Moment::After, Fault::Hold),
    (Moment::Before, Fault::Cut),
    (Moment::After, Fault::Cut),
];

/// A load through the proxy that is stopped somewhere, or ends: then its exit status and summary.
/// One that is held up is killed there (SIGKILL).
async fn load(base: &Base, proxy: &PostgresProxy, words: &str) -> Option<(Option<i32>, Value)> {
    let mut command = Command::from(base.command(words, proxy.address()));
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let loader = command.spawn().unwrap();
    tokio::select! {
        // Dropped, and killed by that.
        () = held(proxy) => None,
        output = loader.wait_with_output() => {
            let output = output.unwrap();
            let summary = serde_json::from_slice(&output.stdout).unwrap_or_default();
            Some((output.status.code(), summary))
        }
    }
}

async fn held(proxy: &PostgresProxy) {
    proxy.reached().await;
    if !proxy.is_held() {
        // Cut: the loader ends by itself.
        std::future::pending().await
    }
}

/// Interrupts the load of `words` at its first message, its second, … until one runs to its end.
async fn interrupt_everywhere(words: &str) {
    let mut base = Base::new().await;
    let (old, new) = base.old_and_new(words).await;
    assert_ne!(old, new);
    let proxy = PostgresProxy::before(base.database.address())
        .await
        .unwrap();
    let all = std::env::var(HOW_MUCH).is_ok_and(|much| much == "all");
    let ways = if all { &ALL[..] } else { &HALF[..] };
    let (mut loads, mut stored) = (0, 0);
    let mut number = 0;
    'messages: loop {
        number += 1;
        for &(moment, fault) in ways {
            proxy.stop_at(Point::Number(number), moment, fault);
            let ended = load(&base, &proxy, words).await;
            if !proxy.is_reached() {
                assert_eq!(ended.map(|(code, _)| code), Some(Some(0)));
                assert_eq!(base.state().await, new, "a load that nothing stopped");
                break 'messages;
            }
            let state = base.state().await;
            let here = format!("{words}: {moment:?} message {number}, {fault:?}: {ended:?}");
            assert!(
                state == old || state == new,
                "{here}\n{}",
                state.beside(&old, &new)
            );
            if let Some((code, summary)) = ended {
                assert!(told_rightly(code, &summary, state == new), "{here}");
            }
            loads += 1;
            if state == new {
                stored += 1;
                base.renew().await;
            }
        }
    }
    println!(
        "{words}: {} messages, {loads} interrupted loads, {stored} of them stored",
        number - 1
    );
    assert!(
        stored > 0 && stored < loads,
        "no interruption was on one side of the commit"
    );
}

/// Whether what a load said of itself is so.
fn told_rightly(code: Option<i32>, summary: &Value, stored: bool) -> bool {
    match (code, summary["outcome"].as_str()) {
        (Some(0), Some("loaded")) => stored,
        (Some(1), Some("unknown")) => true,
        // Without a connection there is no load to tell of.
        (Some(1), Some("failed") | None) => !stored,
        _ => false,
    }
}

#[tokio::test]
async fn a_stress_load_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::STRESS).await;
}

#[tokio::test]
async fn a_risk_load_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::RISK).await;
}

#[tokio::test]
async fn a_load_of_levels_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::VIGIEAU).await;
}

#[tokio::test]
async fn a_load_of_analyses_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::ANALYSES).await;
}

#[tokio::test]
async fn a_load_of_audits_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::AUDITS).await;
}

//! Loads that are killed, or lose their connection, before or after each message that they send to
//! PostgreSQL. The database holds the old data or the new, never a mix.

pub mod base;
mod merge;

use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;
use water_harness::postgres_proxy::{Fault, Moment, Point, PostgresProxy};

use crate::interrupted::base::Base;
use crate::state::State;

/// How much is tried: with `all` every message is killed and cut on both sides of its delivery. Else
/// there is one interruption at each: before one message the loader is killed, after the next the
/// connection is cut.
const HOW_MUCH: &str = "WATER_INTERRUPTIONS";

const ALL: [(Moment, Fault); 4] = [
    (Moment::Before, Fault::Hold),
    (Moment::After, Fault::Cut),
    (Moment::After, Fault::Hold),
    (Moment::Before, Fault::Cut),
];

/// What is tried at this message.
fn ways(number: u64) -> &'static [(Moment, Fault)] {
    let all = std::env::var(HOW_MUCH).is_ok_and(|much| much == "all");
    match number % 2 {
        _ if all => &ALL,
        1 => &ALL[..1],
        _ => &ALL[1..2],
    }
}

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

/// One load and what it changes.
struct Interrupted {
    words: &'static str,
    base: Base,
    proxy: PostgresProxy,
    old: State,
    new: State,
    loads: u32,
    stored: u32,
}

impl Interrupted {
    async fn of(words: &'static str) -> Self {
        let mut base = Base::new().await;
        let (old, new) = base.old_and_new(words).await;
        assert_ne!(old, new);
        let proxy = PostgresProxy::before(base.database.address()).await;
        Self {
            words,
            base,
            proxy: proxy.unwrap(),
            old,
            new,
            loads: 0,
            stored: 0,
        }
    }

    /// Interrupts a load at this point; `false` where it ended before.
    async fn at(&mut self, point: Point, (moment, fault): (Moment, Fault)) -> bool {
        self.proxy.stop_at(point, moment, fault);
        let ended = load(&self.base, &self.proxy, self.words).await;
        let state = self.base.state().await;
        if !self.proxy.is_reached() {
            assert_eq!(ended.map(|(code, _)| code), Some(Some(0)));
            assert_eq!(state, self.new, "a load that nothing stopped");
            return false;
        }
        let here = format!("{}: {moment:?} {point:?}, {fault:?}: {ended:?}", self.words);
        let stored = state == self.new;
        let beside = || state.beside(&self.old, &self.new);
        assert!(stored || state == self.old, "{here}\n{}", beside());
        if let Some((code, summary)) = ended {
            assert!(told_rightly(code, &summary, stored), "{here}");
        }
        self.loads += 1;
        if stored {
            self.stored += 1;
            self.base.renew().await;
        }
        true
    }
}

/// Interrupts the load of `words` on both sides of its commit, and at its first message, its second, …
/// until one runs to its end.
async fn interrupt_everywhere(words: &'static str) {
    let mut interrupted = Interrupted::of(words).await;
    for way in ALL {
        let before = interrupted.stored;
        assert!(interrupted.at(Point::Text("COMMIT"), way).await);
        let stored = interrupted.stored > before;
        // One that is delivered may still be lost with its connection.
        assert!(!stored || way.0 == Moment::After, "{way:?} the commit");
    }
    let mut number = 0;
    'messages: loop {
        number += 1;
        for way in ways(number) {
            if !interrupted.at(Point::Number(number), *way).await {
                break 'messages;
            }
        }
    }
    let Interrupted { loads, stored, .. } = interrupted;
    println!(
        "{words}: {} messages, {loads} interrupted loads, {stored} of them stored",
        number - 1
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

//! Loads that are killed, or lose their connection, before or after each message that they send to
//! PostgreSQL. The database holds the old data or the new, never a mix. The load of fewest messages and a commit of each
//! kind are interrupted in every run.

pub mod base;
mod long;
mod measurements;

use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;
use water_harness::postgres_proxy::{Fault, Moment, Point, PostgresProxy};

use crate::interrupted::base::Base;
use crate::state::State;

/// Variable for the number of interruptions: with `all` the loader is killed and the connection cut on both sides of
/// every message's delivery. Otherwise each message has one: before one message the loader is killed, after the next
/// the connection is cut.
const HOW_MUCH: &str = "WATER_INTERRUPTIONS";

const ALL: [(Moment, Fault); 4] = [
    (Moment::Before, Fault::Hold),
    (Moment::After, Fault::Cut),
    (Moment::After, Fault::Hold),
    (Moment::Before, Fault::Cut),
];

/// Interruptions to try at this message.
fn ways(number: u64) -> &'static [(Moment, Fault)] {
    let all = std::env::var(HOW_MUCH).is_ok_and(|much| much == "all");
    match number % 2 {
        _ if all => &ALL,
        1 => &ALL[..1],
        _ => &ALL[1..2],
    }
}

/// Runs a load through the proxy; returns exit status and summary, or `None` if it was held up, and killed there
/// (SIGKILL).
async fn load(base: &Base, proxy: &PostgresProxy, words: &str) -> Option<(Option<i32>, Value)> {
    let mut command = Command::from(base.command_through(proxy.address(), words));
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let loader = command.spawn().unwrap();
    tokio::select! {
        // Dropping the loader kills it.
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
        // The connection is cut: the loader ends by itself.
        std::future::pending().await
    }
}

/// A load, its effects and its interruptions.
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
    async fn start(words: &'static str) -> Self {
        let mut base = Base::new().await;
        let (old, new) = base.old_and_new(words).await;
        assert_ne!(old, new);
        let proxy = PostgresProxy::before(base.address()).await;
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

/// Interrupts the load of `words` on both sides of its commit.
async fn interrupt_commit(words: &'static str) -> Interrupted {
    let mut interrupted = Interrupted::start(words).await;
    for way in ALL {
        let before = interrupted.stored;
        assert!(interrupted.at(Point::Text("COMMIT"), way).await);
        let stored = interrupted.stored > before;
        // A delivered commit may still be lost with its connection.
        assert!(!stored || way.0 == Moment::After, "{way:?} the commit");
    }
    interrupted
}

/// Interrupts the load of `words` on both sides of its commit, and at its first message, its second, …
/// until one runs to its end.
async fn interrupt_everywhere(words: &'static str) {
    let mut interrupted = interrupt_commit(words).await;
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

/// Whether a load's report of itself is right.
fn told_rightly(code: Option<i32>, summary: &Value, stored: bool) -> bool {
    match (code, summary["outcome"].as_str()) {
        (Some(0), Some("loaded")) => stored,
        (Some(1), Some("unknown")) => true,
        // Without a connection there is no load to report.
        (Some(1), Some("failed") | None) => !stored,
        _ => false,
    }
}

#[tokio::test]
async fn a_risk_load_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::RISK).await;
}

#[tokio::test]
async fn a_load_of_each_kind_interrupted_at_its_commit_is_stored_whole_or_not() {
    for words in [base::STRESS, base::VIGIEAU, base::ANALYSES, base::AUDITS] {
        interrupt_commit(words).await;
    }
}

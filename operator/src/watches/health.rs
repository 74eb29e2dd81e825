//! Health of the watches, each judged by itself: one that is forbidden is reported, and the leader goes on with the
//! others. When all have failed for minutes, a new process begins afresh.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::runtime::watcher;
use tokio::time::{Instant, interval};
use tracing::{info, warn};

use crate::lock::lock;
use crate::metrics::Metrics;

/// Time after which failures of all watches end the process.
const HOPELESS: Duration = Duration::from_secs(300);
/// Time without a failure after which a watch counts as well again: one that works reports nothing while nothing
/// changes. Longer than any try takes.
const FORGOTTEN: Duration = Duration::from_secs(120);
/// Time after which a failure that goes on is logged again.
const AGAIN: Duration = Duration::from_secs(60);
const EVERY: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct Health {
    watches: Arc<Mutex<BTreeMap<u64, Watch>>>,
    pub metrics: Metrics,
}

#[derive(Debug)]
struct Watch {
    kind: &'static str,
    failure: Option<Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    first: Instant,
    last: Instant,
    logged: Instant,
}

/// Probe that a watch reports to; dropped with it.
#[derive(Debug)]
pub struct Probe {
    health: Health,
    number: u64,
}

impl Health {
    pub fn new(metrics: Metrics) -> Self {
        Self {
            watches: Arc::default(),
            metrics,
        }
    }

    /// Adds a watch, of a kind in the plural.
    pub fn watch(&self, kind: &'static str) -> Probe {
        let mut watches = lock(&self.watches);
        let number = watches.last_key_value().map_or(0, |(number, _)| number + 1);
        let failure = None;
        watches.insert(number, Watch { kind, failure });
        self.metrics.watch_is_failing(kind, false);
        Probe {
            health: self.clone(),
            number,
        }
    }

    /// Returns when every watch has failed for minutes.
    pub async fn until_hopeless(&self) {
        let mut ticks = interval(EVERY);
        loop {
            let now = ticks.tick().await;
            self.forget(now);
            if self.is_hopeless(now) {
                return;
            }
        }
    }

    /// Forgets failures of watches that have been silent for long since: they work again.
    fn forget(&self, now: Instant) {
        let mut watches = lock(&self.watches);
        let is_over = |failure: &mut Failure| now.duration_since(failure.last) >= FORGOTTEN;
        let recovered = watches.values_mut().filter_map(|watch| {
            watch.failure.take_if(is_over)?;
            Some(watch.kind)
        });
        for kind in recovered.collect::<Vec<_>>() {
            self.recovered(kind, &watches);
        }
    }

    fn is_hopeless(&self, now: Instant) -> bool {
        let watches = lock(&self.watches);
        let has_failed_for_long = |watch: &Watch| {
            let failure = watch.failure.as_ref();
            failure.is_some_and(|failure| now.duration_since(failure.first) >= HOPELESS)
        };
        !watches.is_empty() && watches.values().all(has_failed_for_long)
    }

    fn recovered(&self, kind: &'static str, watches: &BTreeMap<u64, Watch>) {
        info!(kind, "a watch works again");
        let fails = |watch: &Watch| watch.kind == kind && watch.failure.is_some();
        if !watches.values().any(fails) {
            self.metrics.watch_is_failing(kind, false);
        }
    }
}

impl Probe {
    pub fn note<T>(&self, heard: &Result<T, watcher::Error>, now: Instant) {
        let mut watches = lock(&self.health.watches);
        let Some(watch) = watches.get_mut(&self.number) else {
            return;
        };
        match (heard, watch.failure) {
            (Ok(_), None) => {}
            (Ok(_), Some(_)) => {
                watch.failure = None;
                let kind = watch.kind;
                self.health.recovered(kind, &watches);
            }
            (Err(error), failure) => {
                let due = |failure: &Failure| now.duration_since(failure.logged) >= AGAIN;
                let is_told = failure.as_ref().is_some_and(|failure| !due(failure));
                if !is_told {
                    warn!(kind = watch.kind, error = %error, "a watch fails and is tried again");
                }
                watch.failure = Some(Failure {
                    first: failure.map_or(now, |failure| failure.first),
                    last: now,
                    logged: failure
                        .filter(|_| is_told)
                        .map_or(now, |failure| failure.logged),
                });
                self.health.metrics.watch_is_failing(watch.kind, true);
            }
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        lock(&self.health.watches).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Result<(), watcher::Error> {
        Err(watcher::Error::NoResourceVersion)
    }

    /// Whether the process would end after so many seconds in which both fail every 20 s, but for what one hears
    /// instead.
    fn after(seconds: u64, heard: impl Fn(u64) -> Option<Result<(), watcher::Error>>) -> bool {
        let (health, start) = (Health::new(Metrics::default()), Instant::now());
        let [keys, ingresses] = ["apikeys", "ingresses"].map(|kind| health.watch(kind));
        let mut is_hopeless = false;
        for second in (0..=seconds).step_by(20) {
            let now = start + Duration::from_secs(second);
            ingresses.note(&failure(), now);
            if let Some(heard) = heard(second) {
                keys.note(&heard, now);
            }
            health.forget(now);
            is_hopeless |= health.is_hopeless(now);
        }
        is_hopeless
    }

    #[test]
    fn all_watches_failing_for_five_minutes_is_hopeless() {
        assert!(!after(280, |_| Some(failure())));
        assert!(after(300, |_| Some(failure())));
    }

    #[test]
    fn one_failing_watch_never_is() {
        assert!(!after(3600, |_| None));
        assert!(!after(3600, |_| Some(Ok(()))));
    }

    #[test]
    fn a_watch_that_has_ended_does_not_count() {
        let (health, start) = (Health::new(Metrics::default()), Instant::now());
        let (keys, ingresses) = (health.watch("apikeys"), health.watch("ingresses"));
        keys.note(&failure(), start);
        let later = start + HOPELESS;
        assert!(!health.is_hopeless(later));
        drop(ingresses);
        assert!(health.is_hopeless(later));
    }

    #[test]
    fn a_success_or_a_long_silence_begins_a_new_count() {
        let success_at = |at| move |second| Some(if second == at { Ok(()) } else { failure() });
        assert!(!after(400, success_at(200)));
        assert!(after(520, success_at(200)));
        let silent = |second| (!(100..240).contains(&second)).then(failure);
        assert!(!after(500, silent));
    }
}

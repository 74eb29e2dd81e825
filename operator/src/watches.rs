//! Watches of the API server, each with a separate backoff, some of them with a store.

pub mod cache;
pub mod health;
pub mod listing;
mod relist;
pub mod trim;

use std::fmt::Debug;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use kube::runtime::controller::Action;
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::backoff::{chance, spread};
use health::Probe;

/// Delays each pass until every one of these is true, since it decides by what was reported. (`Store::wait_until_ready`
/// wakes only the last of several that wait.)
pub fn once_told<K, C, E, F>(
    told: Vec<watch::Receiver<bool>>,
    pass: impl Fn(Arc<K>, Arc<C>) -> F + Copy,
) -> impl FnMut(Arc<K>, Arc<C>) -> BoxFuture<'static, Result<Action, E>>
where
    F: Future<Output = Result<Action, E>> + Send + 'static,
{
    move |object, context| {
        let (pass, told) = (pass(object, context), told.clone());
        Box::pin(async move {
            for mut told in told {
                // An error would mean that no watch is left, and this pass about to be dropped.
                let _ = told.wait_for(|told| *told).await;
            }
            pass.await
        })
    }
}

pub type Changes<K> = BoxStream<'static, Result<K, watcher::Error>>;

/// Changed objects, nothing remembered. Failures are left out: a controller would hold all its watches up for each
/// one's, and every watch has a separate backoff.
pub fn changes<K>(api: Api<K>, config: watcher::Config, probe: Probe) -> Changes<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    begun_anew(api, config, Arc::default(), || {})
        .inspect(move |event| probe.note(event, Instant::now()))
        .touched_objects()
        .filter(|change| ready(change.is_ok()))
        .boxed()
}

/// A watch that begins with all objects again when `restart` says so, or when the API server refuses it
/// because it has forgotten the time since which it asks: kube would ask for the same time again. All
/// objects come as a stream, or by pages where the API server streams none. `begin` is called each time,
/// before it asks.
fn begun_anew<K>(
    api: Api<K>,
    config: watcher::Config,
    restart: Arc<Notify>,
    begin: impl Fn() + Send,
) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let streams = Arc::new(AtomicBool::new(true));
    let (again, does_stream) = (Arc::clone(&restart), Arc::clone(&streams));
    let watch = move || {
        begin();
        let (restart, mut config) = (Arc::clone(&restart), config.clone());
        if does_stream.load(Ordering::Acquire) {
            config = config.streaming_lists();
        }
        watcher(api.clone(), config).take_until(async move { restart.notified().await })
    };
    let events = stream::repeat_with(watch).flatten();
    let events = events.backoff(Patience::default());
    events.filter(move |event| {
        let is_refused = |code| match event {
            Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) => status.code == code,
            _ => false,
        };
        let has_forgotten = is_refused(410);
        // `WatchList` is off in Kubernetes 1.33, and can be elsewhere.
        let streams_none = is_refused(422) && streams.swap(false, Ordering::AcqRel);
        if has_forgotten || streams_none {
            again.notify_one();
        }
        ready(!streams_none)
    })
}

/// Pause between two tries, twice as long each time up to five seconds. kube's default goes to thirty, and a restarted
/// API server or Redis is back within a few.
#[derive(Default)]
pub struct Patience {
    failures: u32,
}

impl Patience {
    /// The pause after one more failure.
    pub fn pause(&mut self) -> Duration {
        let pause = Duration::from_millis(250) * 2_u32.pow(self.failures.min(5));
        self.failures += 1;
        spread(pause.min(Duration::from_secs(5)), chance())
    }
}

impl Iterator for Patience {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.pause())
    }
}

impl Backoff for Patience {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_to_five_seconds_give_or_take_a_quarter_and_begins_anew() {
        let around = |millis: u64| {
            let pause = Duration::from_millis(millis);
            pause * 3 / 4..pause * 5 / 4
        };
        let mut patience = Patience::default();
        for millis in [250, 500, 1000, 2000, 4000, 5000, 5000] {
            assert!(
                patience
                    .next()
                    .is_some_and(|pause| around(millis).contains(&pause))
            );
        }
        patience.reset();
        assert!(
            patience
                .next()
                .is_some_and(|pause| around(250).contains(&pause))
        );
    }
}

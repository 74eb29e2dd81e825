//! Metrics of the gate. No label comes from a key, an account, a path or an error's text.
//!
//! Each worker counts separately, and the counts are added up at each scrape: a counter that two cores write moves
//! between their caches at every request.

mod counts;
mod directory;
mod limits;
mod times;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use crate::grace::Grace;
pub use counts::AnsweredRequest;
use counts::Counts;

/// The counters and times of one worker.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Counts>>);

impl Metrics {
    /// Registers all metrics, also those of the key directory and of the limits, and returns the metrics of each
    /// worker.
    pub fn of_workers(
        count: NonZeroUsize,
        registry: &mut Registry,
        grace: Arc<Grace>,
    ) -> Vec<Self> {
        let workers: Vec<Self> = (0..count.get()).map(|_| Self::default()).collect();
        let registry = registry.sub_registry_with_prefix("gate");
        registry.register_collector(Box::new(AllWorkers(workers.clone())));
        directory::register(registry, Arc::clone(&grace.directory));
        limits::register(registry, grace);
        workers
    }

    /// Counts one answered request.
    pub fn request(&self, answered: &AnsweredRequest) {
        self.counts().request(answered);
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds up what the workers counted.
#[derive(Debug)]
struct AllWorkers(Vec<Metrics>);

impl Collector for AllWorkers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut all = Counts::default();
        for worker in &self.0 {
            all.add(&worker.counts());
        }
        all.encode(&mut encoder)
    }
}

//! Queues of passes, one for each key directory: what is slow or silent delays its own ApiKeys only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use kube::Resource;
use kube::core::DeserializeGuard;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use water_resources::ApiKey;
use water_resources::api_key::ApiName;

use crate::lock::lock;

/// Passes of one directory at a time: few enough for one connection to Redis.
const AT_ONCE: usize = 8;
/// Passes of all directories at a time, since ApiKeys may name WaterDataApis that do not exist.
const IN_ALL: usize = 64;
/// Number of queues from which on those in which nobody waits are forgotten: ApiKeys may name any WaterDataApi.
const IDLE_KEPT: usize = 1000;

/// The queues of one leadership.
#[derive(Debug)]
pub struct Queues {
    queues: Mutex<HashMap<ApiName, Arc<Semaphore>>>,
    all: Arc<Semaphore>,
}

/// The right to a pass, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    _directory: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            queues: Mutex::default(),
            all: Arc::new(Semaphore::new(IN_ALL)),
        }
    }
}

impl Queues {
    /// Waits for a turn in the queue of a directory: first come, first served.
    pub async fn turn(&self, directory: ApiName) -> Turn {
        const OPEN: &str = "no queue is ever closed";
        let directory = self.queue(directory).acquire_owned().await;
        let all = Arc::clone(&self.all).acquire_owned().await;
        Turn {
            _directory: directory.expect(OPEN),
            _all: all.expect(OPEN),
        }
    }

    fn queue(&self, directory: ApiName) -> Arc<Semaphore> {
        let mut queues = lock(&self.queues);
        if queues.len() >= IDLE_KEPT {
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        let queue = queues.entry(directory);
        Arc::clone(queue.or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))))
    }
}

/// The WaterDataApi whose directory a pass over the ApiKey is about, if the ApiKey names it; without a name, any of its
/// namespace.
pub fn directory_of(key: &DeserializeGuard<ApiKey>) -> ApiName {
    let namespace = key.meta().namespace.as_deref().unwrap_or_default();
    let named = key.0.as_ref().ok().and_then(|key| {
        let issued = key.issued_at();
        issued.or_else(|| Some(key.spec.api_ref.as_ref()?.place(namespace)))
    });
    named.unwrap_or_else(|| ApiName {
        namespace: namespace.to_owned(),
        name: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn api(name: &str) -> ApiName {
        ApiName {
            namespace: "team".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_full_queue_delays_no_other_and_moves_on_in_its_order() {
        let queues = Queues::default();
        let taken = |name| queues.turn(api(name)).now_or_never();
        let mut turns: Vec<Turn> = (0..AT_ONCE).filter_map(|_| taken("slow")).collect();
        assert_eq!(turns.len(), AT_ONCE);
        let mut first = Box::pin(queues.turn(api("slow")));
        assert!((&mut first).now_or_never().is_none());
        assert!(taken("other").is_some());
        turns.pop();
        assert!(taken("slow").is_none(), "somebody came before");
        assert!(first.now_or_never().is_some());
    }

    #[test]
    fn queues_in_which_nobody_waits_are_forgotten() {
        let queues = Queues::default();
        let _kept = queues.turn(api("busy")).now_or_never();
        for number in 0..2 * IDLE_KEPT {
            queues.turn(api(&number.to_string())).now_or_never();
        }
        let left = lock(&queues.queues);
        assert!(left.len() <= IDLE_KEPT && left.contains_key(&api("busy")));
    }
}

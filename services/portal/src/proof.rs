//! Proof that the API server holds the portal to its bounds, before the portal is ready and each minute after that. The
//! portal stays ready without it, for people revoke keys here: the log and a metric report that the policy has gone.

use std::convert::Infallible;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::sleep;
use tracing::{info, warn};
use water_runtime::Latch;
use water_runtime::telemetry::chain;

use crate::cluster::ClusterError;

/// Pause between two tries before the first proof.
const AGAIN: Duration = Duration::from_secs(1);
/// Pause between two tries after it.
const EVERY: Duration = Duration::from_secs(60);

/// Outcome of the last try.
#[derive(Default, Debug)]
pub struct Proof {
    is_there: Gauge<i64, AtomicI64>,
    problem: Option<String>,
}

impl Proof {
    /// Registers its metric.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "portal_bounds_proven",
            "Whether the API server was last seen to hold the portal to its bounds",
            self.is_there.clone(),
        );
    }

    /// Asks again and again whether the API server holds the portal to its bounds; the first proof meets the condition
    /// of readiness.
    pub async fn follow<F>(mut self, is_bounded: impl Fn() -> F, latch: &Latch) -> Infallible
    where
        F: Future<Output = Result<bool, ClusterError>>,
    {
        let mut pause = AGAIN;
        loop {
            if self.note(is_bounded().await) {
                latch.set();
                pause = EVERY;
            }
            sleep(pause).await;
        }
    }

    /// Returns whether the bounds are proven, and logs what has changed.
    fn note(&mut self, found: Result<bool, ClusterError>) -> bool {
        let problem = match found {
            Ok(true) => None,
            Ok(false) => Some(
                "the API server would let this portal generate keys: install the chart's ValidatingAdmissionPolicy \
                 and its binding, portal.enabled"
                    .to_owned(),
            ),
            Err(error) => Some(chain(&error)),
        };
        match &problem {
            // Logged when it changes, not each time.
            same if *same == self.problem => {}
            None => info!("the bounds of the portal's rights are proven"),
            Some(problem) => warn!(
                problem,
                "the bounds of the portal's rights are not proven; a portal that starts is not ready"
            ),
        }
        let is_proven = problem.is_none();
        self.is_there.set(is_proven.into());
        self.problem = problem;
        is_proven
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::ready;

    use tokio::time::timeout;
    use water_runtime::Readiness;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_proof_is_tried_each_minute_and_its_loss_leaves_the_portal_ready() {
        let (readiness, proof) = (Readiness::default(), Proof::default());
        let latch = readiness.latch("bounds");
        let is_there = proof.is_there.clone();
        // What the tries before it have made, at each try.
        let seen = RefCell::new(Vec::new());
        let second_proves = || {
            let mut seen = seen.borrow_mut();
            seen.push((is_there.get(), readiness.is_ready()));
            ready(Ok(seen.len() == 2))
        };
        let followed = timeout(2 * (AGAIN + EVERY), proof.follow(second_proves, &latch)).await;
        assert!(followed.is_err());
        let tries = [(0, false), (0, false), (1, true), (0, true)];
        assert_eq!(*seen.borrow(), tries);
    }

    #[test]
    fn a_proof_that_is_lost_is_seen_until_it_is_there_again() {
        let mut proof = Proof::default();
        let starting = ClusterError::Starting { attempt: "try" };
        let found = [Ok(false), Ok(true), Ok(false), Err(starting), Ok(true)];
        let seen = found.map(|found| (proof.note(found), proof.is_there.get()));
        let (lost, there) = ((false, 0), (true, 1));
        assert_eq!(seen, [lost, there, lost, lost, there]);
    }
}

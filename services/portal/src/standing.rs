//! Whether the identity provider can be used, looked at beside the requests: the operator tells it in
//! the WaterDataApi's conditions, a metric tells it, and the log tells each change.

use std::convert::Infallible;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::provider::{Provider, ProviderError};

/// Between two looks at a provider that answers.
const WHEN_FINE: Duration = Duration::from_secs(60);
/// Between two looks at one that does not.
const WHEN_NOT: Duration = Duration::from_secs(5);

/// What the last look found. Clones share it.
#[derive(Clone, Default, Debug)]
pub struct Standing {
    last: Arc<RwLock<Option<Result<(), String>>>>,
    usable: Gauge<i64, AtomicI64>,
}

impl Standing {
    /// Puts its metric into the process' registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "portal_provider_usable",
            "Whether the identity provider's discovery document was last read and can be used",
            self.usable.clone(),
        );
    }

    /// Looks again and again.
    pub async fn follow(&self, provider: &Provider) -> Infallible {
        loop {
            let is_fine = self.note(provider.look().await);
            sleep(if is_fine { WHEN_FINE } else { WHEN_NOT }).await;
        }
    }

    /// For the operator: `usable` is null before the first look.
    pub fn answer(&self) -> Value {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            None => json!({ "usable": null }),
            Some(Ok(())) => json!({ "usable": true }),
            Some(Err(problem)) => json!({ "usable": false, "problem": problem }),
        }
    }

    fn note(&self, found: Result<(), ProviderError>) -> bool {
        let found = found.map_err(|error| error.to_string());
        let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref() != Some(&found) {
            match &found {
                Ok(()) => info!("the identity provider can be used"),
                Err(problem) => {
                    warn!(
                        problem,
                        "the identity provider cannot be used: nobody can sign in"
                    );
                }
            }
        }
        let is_fine = found.is_ok();
        self.usable.set(is_fine.into());
        *last = Some(found);
        is_fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_hears_what_the_last_look_found() {
        let standing = Standing::default();
        assert_eq!(standing.answer(), json!({ "usable": null }));
        assert!(!standing.note(Err(ProviderError::Slow)));
        let problem = "the identity provider did not answer in time";
        let told = json!({ "usable": false, "problem": problem });
        assert_eq!(standing.answer(), told);
        assert_eq!(standing.usable.get(), 0);
        assert!(standing.note(Ok(())));
        assert_eq!(standing.answer(), json!({ "usable": true }));
        assert_eq!(standing.usable.get(), 1);
    }
}

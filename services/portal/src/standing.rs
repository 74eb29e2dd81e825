//! Health of the identity provider: the operator reports it in the WaterDataApi's conditions, a metric
//! reports it, and the log reports each change.
//!
//! A background task checks the provider's metadata. Whether it takes the portal's client id and secret
//! shows only when a code is exchanged.

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

/// Time between two checks of a provider that answers.
const WHEN_FINE: Duration = Duration::from_secs(60);
/// Time between two checks of a provider that does not.
const WHEN_NOT: Duration = Duration::from_secs(5);

/// Health of the provider. Clones share it.
#[derive(Clone, Default, Debug)]
pub struct Standing {
    known: Arc<RwLock<ProviderState>>,
    usable: Gauge<i64, AtomicI64>,
}

#[derive(Default, Debug)]
struct ProviderState {
    /// Result of the last check.
    look: Option<Result<(), String>>,
    /// Reason for which the provider refused the portal's client, since it last took it.
    refusal: Option<String>,
}

impl Standing {
    /// Registers its metric.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "portal_provider_usable",
            "Whether the identity provider's discovery document was last read and can be used",
            self.usable.clone(),
        );
    }

    /// Checks the provider again and again.
    pub async fn follow(&self, provider: &Provider) -> Infallible {
        loop {
            let is_fine = self.note_look(provider.look().await);
            sleep(if is_fine { WHEN_FINE } else { WHEN_NOT }).await;
        }
    }

    /// Returns the report for the operator: `usable` is null before the first check, and `clientRefused`
    /// says that the remedy is another client id or secret.
    pub fn answer(&self) -> Value {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            ProviderState {
                look: Some(Err(problem)),
                ..
            } => json!({ "usable": false, "problem": problem }),
            ProviderState {
                refusal: Some(problem),
                ..
            } => {
                json!({ "usable": false, "problem": problem, "clientRefused": true })
            }
            ProviderState {
                look: Some(Ok(())), ..
            } => json!({ "usable": true }),
            ProviderState { look: None, .. } => json!({ "usable": null }),
        }
    }

    /// Notes the outcome of the exchange of a code. A failure that is not the client's says nothing of the
    /// client: it may be that of anybody who calls the callback.
    pub fn note_exchange<T>(&self, exchanged: &Result<T, ProviderError>) {
        let refusal = match exchanged {
            // A token that is refused here was given to a client that was taken.
            Ok(_) | Err(ProviderError::Token(_)) => None,
            Err(error) if error.refusal_of_client().is_some() => Some(error.to_string()),
            Err(_) => return,
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.refusal != refusal {
            match &refusal {
                None => info!("the identity provider takes the portal's client again"),
                Some(problem) => warn!(
                    problem,
                    "the identity provider refuses the portal's client: nobody can sign in"
                ),
            }
        }
        known.refusal = refusal;
    }

    fn note_look(&self, found: Result<(), ProviderError>) -> bool {
        let found = found.map_err(|error| error.to_string());
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.look.as_ref() != Some(&found) {
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
        known.look = Some(found);
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
        assert!(!standing.note_look(Err(ProviderError::Slow)));
        let problem = "the identity provider did not answer in time";
        let told = json!({ "usable": false, "problem": problem });
        assert_eq!(standing.answer(), told);
        assert_eq!(standing.usable.get(), 0);
        assert!(standing.note_look(Ok(())));
        assert_eq!(standing.answer(), json!({ "usable": true }));
        assert_eq!(standing.usable.get(), 1);
    }

    #[test]
    fn a_refused_client_stays_told_until_a_code_is_exchanged() {
        let standing = Standing::default();
        standing.note_look(Ok(()));
        let usable = |standing: &Standing| standing.answer()["usable"].clone();
        let refused = |word| Err::<(), _>(ProviderError::Refused(word));
        standing.note_exchange(&refused("invalid_grant"));
        assert_eq!(usable(&standing), true, "a stranger's code proves nothing");
        standing.note_exchange(&refused("invalid_client"));
        for says_nothing in [refused("invalid_grant"), Err(ProviderError::Slow)] {
            standing.note_exchange(&says_nothing);
            standing.note_look(Ok(()));
            assert_eq!(standing.answer()["clientRefused"], true);
        }
        standing.note_look(Err(ProviderError::Slow));
        assert!(
            standing.answer()["clientRefused"].is_null(),
            "the provider comes first"
        );
        standing.note_look(Ok(()));
        standing.note_exchange(&Ok(()));
        assert_eq!(standing.answer(), json!({ "usable": true }));
    }
}

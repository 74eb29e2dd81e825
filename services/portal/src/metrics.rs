//! The portal's counters. No label comes from a person, an account, a path or an error's text.

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The counters. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    sign_ins: Family<SignInLabels, Counter>,
    other_plans: Counter,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct SignInLabels {
    outcome: &'static str,
}

impl Metrics {
    /// Adds `portal_requests`, `portal_sign_ins` and `portal_keys_on_other_plans`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("portal");
        registry.register("requests", "Answered requests", self.requests.clone());
        registry.register(
            "sign_ins",
            "Ways back from the identity provider, by what became of them",
            self.sign_ins.clone(),
        );
        registry.register(
            "keys_on_other_plans",
            "Keys in answered lists whose plan is another than the session's, once for each list",
            self.other_plans.clone(),
        );
    }

    /// Counts an answered request.
    pub fn request(&self, route: &'static str, status: StatusCode) {
        let status = status.as_u16();
        self.requests
            .get_or_create(&RequestLabels { route, status })
            .inc();
    }

    /// Counts a finished sign-in; `outcome` is `signed_in` or the reason why it is not.
    pub fn sign_in(&self, outcome: &'static str) {
        self.sign_ins.get_or_create(&SignInLabels { outcome }).inc();
    }

    /// Counts listed keys whose plan is another than the session's: the holder's claims have changed since
    /// they were made, or the cluster has made them.
    pub fn keys_on_other_plans(&self, keys: usize) {
        self.other_plans.inc_by(keys as u64);
    }
}

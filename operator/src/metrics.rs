//! What the operator counts. No label comes from an object's name or an error's text.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use water_keystore::Reason as StoreReason;

/// The operator's metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(crate) leading: Gauge,
    passes: Family<Pass, Counter>,
    watch_failures: Family<WatchedKind, Counter>,
    watches_failing: Family<WatchedKind, Gauge>,
    store_failures: Family<Refused, Counter>,
    pub(crate) directory_rebuilds: Counter,
    pub(crate) swept_owners: Counter,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct WatchedKind {
    /// In the plural, as RBAC rules name it.
    kind: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Refused {
    reason: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Pass {
    kind: &'static str,
    outcome: &'static str,
}

impl Metrics {
    /// Puts them into the process' registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "operator_leading",
            "Whether this pod leads",
            self.leading.clone(),
        );
        registry.register(
            "operator_passes",
            "Passes over objects",
            self.passes.clone(),
        );
        registry.register(
            "operator_watch_failures",
            "Watches that failed and were tried again",
            self.watch_failures.clone(),
        );
        registry.register(
            "operator_watch_failing",
            "Whether a watch of the leader fails",
            self.watches_failing.clone(),
        );
        registry.register(
            "operator_store_failures",
            "Commands of the operator that Redis did not carry out, by reason",
            self.store_failures.clone(),
        );
        for reason in StoreReason::ALL {
            let reason = reason.as_str();
            drop(self.store_failures.get_or_create(&Refused { reason }));
        }
        registry.register(
            "operator_directory_rebuilds",
            "Rebuilds of key directories",
            self.directory_rebuilds.clone(),
        );
        registry.register(
            "operator_swept_api_keys",
            "ApiKeys that went without a revocation and whose keys a sweep withdrew",
            self.swept_owners.clone(),
        );
    }

    pub(crate) fn watch_is_failing(&self, kind: &'static str, fails: bool) {
        let kind = WatchedKind { kind };
        self.watches_failing.get_or_create(&kind).set(fails.into());
        if fails {
            self.watch_failures.get_or_create(&kind).inc();
        }
    }

    pub(crate) fn store_failure(&self, reason: StoreReason) {
        let reason = reason.as_str();
        self.store_failures.get_or_create(&Refused { reason }).inc();
    }

    /// A pass that was given up in the middle is tried again.
    pub(crate) fn pass<T, E>(&self, kind: &'static str, result: &Result<T, E>) {
        let outcome = if result.is_ok() { "Done" } else { "Failed" };
        self.passes.get_or_create(&Pass { kind, outcome }).inc();
    }
}

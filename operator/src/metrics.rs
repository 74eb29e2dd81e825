//! What the operator counts. No label comes from an object's name or an error's text.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use water_keystore::Reason as StoreReason;

/// The operator's metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// 1 while this pod leads.
    pub leading: Gauge<i64, AtomicI64>,
    /// Passes over objects.
    pub passes: Family<Pass, Counter>,
    /// Watches that failed and are tried again.
    pub watch_failures: Family<WatchedKind, Counter>,
    /// 1 while a watch fails.
    pub watches_failing: Family<WatchedKind, Gauge>,
    /// What Redis did not do for the operator, by reason.
    pub store_failures: Family<Refused, Counter>,
    /// Rebuilds of key directories, the first of each included.
    pub directory_rebuilds: Counter,
    /// ApiKeys that were gone without a revocation, and whose keys a sweep withdrew.
    pub swept_owners: Counter,
}

/// A kind that is watched.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
pub struct WatchedKind {
    /// In the plural, as RBAC rules name it.
    pub kind: &'static str,
}

/// Why Redis did not do what was asked.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
pub struct Refused {
    /// One word.
    pub reason: &'static str,
}

/// A pass over one object.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
pub struct Pass {
    /// What was looked at.
    pub kind: Kind,
    /// What came of it.
    pub outcome: PassOutcome,
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
pub enum Kind {
    /// An ApiKey.
    ApiKey,
    /// A WaterDataApi.
    WaterDataApi,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
pub enum PassOutcome {
    /// A whole pass.
    Done,
    /// Given up in the middle, to be tried again.
    Failed,
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

    /// Notes how a watch is doing.
    pub fn watch_is_failing(&self, kind: &'static str, fails: bool) {
        let kind = WatchedKind { kind };
        self.watches_failing.get_or_create(&kind).set(fails.into());
    }

    /// Counts what Redis did not do.
    pub fn store_failure(&self, reason: StoreReason) {
        let reason = reason.as_str();
        self.store_failures.get_or_create(&Refused { reason }).inc();
    }

    /// Counts a pass.
    pub fn pass(&self, kind: Kind, outcome: PassOutcome) {
        self.passes.get_or_create(&Pass { kind, outcome }).inc();
    }
}

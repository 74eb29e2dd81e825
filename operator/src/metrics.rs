//! Metrics of the operator. No label comes from an object's name or an error's text.

mod capacity;
mod leader;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use water_keystore::Reason as StoreReason;

use crate::client::ApiFailure;
use leader::Leader;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// The operator's metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(crate) leading: Gauge,
    pub(crate) leader: Leader,
    passes: Family<Labels<2>, Counter>,
    /// Failures by kind; kinds are in the plural, as RBAC rules name them.
    watch_failures: Family<Labels<1>, Counter>,
    watches_failing: Family<Labels<1>, Gauge>,
    store_failures: Family<Labels<1>, Counter>,
    api_server_failures: Family<Labels<1>, Counter>,
    pub(crate) directory_rebuilds: Counter,
    sweeps: Family<Labels<1>, Counter>,
    pub(crate) swept_owners: Counter,
}

impl Metrics {
    /// Puts the metrics into the process' registry.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("operator");
        registry.register("leading", "Whether this pod leads", self.leading.clone());
        registry.register_collector(Box::new(self.leader.clone()));
        if let Some(api_keys) = capacity::api_keys() {
            registry.register(
                "api_keys_capacity",
                "ApiKeys, each with a Secret, for which the container's memory limit is enough",
                ConstGauge::new(api_keys),
            );
        }
        registry.register("passes", "Passes over objects", self.passes.clone());
        registry.register(
            "watch_failures",
            "Watches that failed and were tried again",
            self.watch_failures.clone(),
        );
        registry.register(
            "watch_failing",
            "Whether a watch of the leader fails",
            self.watches_failing.clone(),
        );
        registry.register(
            "store_failures",
            "Commands of the operator that Redis did not carry out, by reason",
            self.store_failures.clone(),
        );
        for reason in StoreReason::ALL {
            let labels = [("reason", reason.as_str())];
            drop(self.store_failures.get_or_create(&labels));
        }
        registry.register(
            "api_server_failures",
            "Passes and other work of the operator that the API server kept from their end, by reason",
            self.api_server_failures.clone(),
        );
        for failure in ApiFailure::ALL {
            let labels = [("reason", failure.as_str())];
            drop(self.api_server_failures.get_or_create(&labels));
        }
        registry.register(
            "directory_rebuilds",
            "Rebuilds of key directories",
            self.directory_rebuilds.clone(),
        );
        registry.register("sweeps", "Sweeps of key directories", self.sweeps.clone());
        // Without them, a first failure would be no increase.
        for is_done in [true, false] {
            drop(self.sweeps.get_or_create(&[("outcome", outcome(is_done))]));
        }
        registry.register(
            "swept_api_keys",
            "ApiKeys that went without a revocation and whose keys a sweep withdrew",
            self.swept_owners.clone(),
        );
    }

    pub(crate) fn watch_is_failing(&self, kind: &'static str, fails: bool) {
        let labels = [("kind", kind)];
        let failing = self.watches_failing.get_or_create(&labels);
        failing.set(fails.into());
        if fails {
            self.watch_failures.get_or_create(&labels).inc();
        }
    }

    pub(crate) fn store_failure(&self, reason: StoreReason) {
        let labels = [("reason", reason.as_str())];
        self.store_failures.get_or_create(&labels).inc();
    }

    pub(crate) fn api_server_failure(&self, failure: ApiFailure) {
        let labels = [("reason", failure.as_str())];
        self.api_server_failures.get_or_create(&labels).inc();
    }

    /// Number of failures of every kind.
    #[cfg(test)]
    pub(crate) fn api_server_failures(&self) -> u64 {
        let count = |failure: ApiFailure| {
            let labels = [("reason", failure.as_str())];
            self.api_server_failures.get_or_create(&labels).get()
        };
        ApiFailure::ALL.into_iter().map(count).sum()
    }

    /// Counts a pass. One that was given up in the middle is tried again.
    pub(crate) fn pass<T, E>(&self, kind: &'static str, result: &Result<T, E>) {
        let labels = [("kind", kind), ("outcome", outcome(result.is_ok()))];
        self.passes.get_or_create(&labels).inc();
    }

    pub(crate) fn swept(&self, is_done: bool) {
        let labels = [("outcome", outcome(is_done))];
        self.sweeps.get_or_create(&labels).inc();
    }
}

fn outcome(is_done: bool) -> &'static str {
    if is_done { "Done" } else { "Failed" }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prometheus_client::encoding::text::encode;

    use super::leader::Numbers;
    use super::*;

    /// Metrics without an alert: a condition or another alert has the same cause, or nothing is wrong.
    const WITHOUT_ALERT: [&str; 5] = [
        "passes",
        "pending_changes",
        "revocations",
        "swept_api_keys",
        "watch_failures",
    ];
    /// Metric of a process with a memory limit.
    const OF_LIMIT: &str = "api_keys_capacity";

    /// Names of the operator's metrics in a text, without what all begin with and counters end with.
    fn names(text: &str) -> BTreeSet<&str> {
        let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        words
            .filter_map(|word| word.strip_prefix("water_operator_"))
            .map(|name| name.trim_end_matches("_total"))
            .collect()
    }

    fn shown(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    }

    #[test]
    fn the_charts_readme_names_each_metric_and_alerts_on_each_but_those_that_need_none() {
        let (metrics, mut registry) = (Metrics::default(), Registry::with_prefix("water"));
        metrics.register(&mut registry);
        // An empty family is not shown.
        metrics.pass("ApiKey", &Ok::<(), ()>(()));
        metrics.watch_is_failing("apikeys", true);
        let text = shown(&registry);
        let mut registered = names(&text);
        registered.insert(OF_LIMIT);
        let code = include_str!("metrics.rs").split("#[cfg(test)]\nmod").next();
        let registrations = code.unwrap().matches("registry.register(").count();
        assert_eq!(registered.len(), registrations, "{registered:?}");

        let of_operator = registry.sub_registry_with_prefix("operator");
        of_operator.register_collector(Box::new(Numbers::default()));
        let text = shown(&registry);
        let mut all = names(&text);
        all.insert(OF_LIMIT);
        let readme = include_str!("../../charts/water-data/README.md");
        assert_eq!(names(readme), all);
        let alerts = readme
            .lines()
            .skip_while(|line| !line.starts_with("| alert |"));
        let alerts: String = alerts.take_while(|line| line.starts_with('|')).collect();
        let (alerted, without) = (names(&alerts), BTreeSet::from(WITHOUT_ALERT));
        assert!(alerted.is_disjoint(&without), "{alerted:?}");
        assert_eq!(&alerted | &without, all, "metrics with a decision, and all");
    }
}

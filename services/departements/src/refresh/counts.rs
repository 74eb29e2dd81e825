//! Metrics of the refreshes from the database.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Reads of changed records, checks that failed, and records that are not served.
#[derive(Clone, Default)]
pub struct Counts {
    pub(super) reads: Counter,
    pub(super) failures: Counter,
    pub(super) skipped: Gauge,
}

impl Counts {
    /// Adds `dataset_reads_total`, `dataset_failures_total` and `dataset_records_skipped`.
    pub fn register(&self, metrics: &mut Registry) {
        let reads = "Times that changed records were read";
        metrics.register("dataset_reads", reads, self.reads.clone());
        let failures = "Looks for changes that failed; answers came from memory";
        metrics.register("dataset_failures", failures, self.failures.clone());
        let skipped = "Stored records that this version does not understand and does not serve";
        metrics.register("dataset_records_skipped", skipped, self.skipped.clone());
    }
}

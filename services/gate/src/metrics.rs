//! What the gate counts. No label comes from a key, an account, a path or an error's text.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use water_http::Code;

use crate::grace::Grace;
use crate::route::Route;

mod directory;
mod limits;

/// Counters and times of all workers.
#[derive(Debug)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    gate_seconds: Histogram,
    limiter_seconds: Histogram,
    service_seconds: Family<ServiceLabel, Histogram, fn() -> Histogram>,
    service_failures: Family<FailureLabels, Counter>,
}

/// What is counted of one request.
#[derive(Debug)]
pub struct Answered {
    /// The route that it asked for, if there is one.
    pub route: Option<&'static Route>,
    /// As answered.
    pub status: StatusCode,
    /// Why it was no success.
    pub reason: Option<Code>,
    /// How long the gate itself took.
    pub gate: Duration,
    /// How long the limiter took, if it was asked.
    pub limiter: Option<Duration>,
    /// How long the service took, if it was asked.
    pub service: Option<Duration>,
    /// Why the service gave nothing to pass on, as a stable word.
    pub failure: Option<&'static str>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct RequestLabels {
    /// A route's name, or `none`.
    route: &'static str,
    status: u16,
    /// A problem's code, or `none`.
    reason: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct ServiceLabel {
    service: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct FailureLabels {
    service: &'static str,
    reason: &'static str,
}

impl Metrics {
    /// Registers everything, the state of the key directory and of the limits too.
    pub fn new(registry: &mut Registry, grace: Arc<Grace>) -> Self {
        let metrics = Self {
            requests: Family::default(),
            gate_seconds: seconds(),
            limiter_seconds: seconds(),
            service_seconds: Family::new_with_constructor(seconds),
            service_failures: Family::default(),
        };
        let registry = registry.sub_registry_with_prefix("gate");
        registry.register("requests", "Answered requests", metrics.requests.clone());
        registry.register(
            "seconds",
            "Time in the gate, without the limiter and the service",
            metrics.gate_seconds.clone(),
        );
        registry.register(
            "limiter_seconds",
            "Time of one question to the limiter",
            metrics.limiter_seconds.clone(),
        );
        registry.register(
            "service_seconds",
            "Time of one exchange with a service",
            metrics.service_seconds.clone(),
        );
        registry.register(
            "service_failures",
            "Exchanges that gave no answer to pass on",
            metrics.service_failures.clone(),
        );
        directory::register(registry, Arc::clone(&grace.directory));
        limits::register(registry, grace);
        metrics
    }

    /// Counts one answered request.
    pub fn request(&self, answered: &Answered) {
        let labels = RequestLabels {
            route: answered.route.map_or("none", |route| route.name),
            status: answered.status.as_u16(),
            reason: answered.reason.map_or("none", Code::as_str),
        };
        self.requests.get_or_create(&labels).inc();
        if let Some(took) = answered.limiter {
            self.limiter_seconds.observe(took.as_secs_f64());
        }
        if let (Some(took), Some(route)) = (answered.service, answered.route) {
            let service = route.service.as_str();
            let times = self
                .service_seconds
                .get_or_create(&ServiceLabel { service });
            times.observe(took.as_secs_f64());
            if let Some(reason) = answered.failure {
                let labels = FailureLabels { service, reason };
                self.service_failures.get_or_create(&labels).inc();
            }
        }
        self.gate_seconds.observe(answered.gate.as_secs_f64());
    }
}

/// From 50 µs, the fastest refusal, to 6.5 s, beyond the longest deadline, each twice the last.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(50e-6, 2.0, 18))
}

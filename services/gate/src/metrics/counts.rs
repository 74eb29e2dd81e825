//! Counters and times of one worker.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;
use http::StatusCode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use water_http::Code;
use water_http::route::{Route, ServiceName};

use super::times::Times;

/// An answered request, as it is counted.
#[derive(Debug)]
pub struct AnsweredRequest {
    /// Route of the request, if there is one.
    pub route: Option<&'static Route>,
    /// Status of the answer.
    pub status: StatusCode,
    /// Code of the problem, unless the request succeeded.
    pub reason: Option<Code>,
    /// Time in the gate itself.
    pub gate: Duration,
    /// Time in the limiter, if it was asked.
    pub limiter: Option<Duration>,
    /// Time in the service, if it was asked.
    pub service: Option<Duration>,
    /// Reason that the service gave no answer to pass on, as a stable word.
    pub failure: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct RequestLabels {
    /// A route's name, or `none`.
    route: &'static str,
    status: u16,
    /// A problem's code, or `none`.
    reason: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct FailureLabels {
    service: &'static str,
    reason: &'static str,
}

/// Counters and times.
#[derive(Default, Debug)]
pub(super) struct Counts {
    requests: HashMap<RequestLabels, u64>,
    gate: Times,
    limiter: Times,
    departements: Times,
    history: Times,
    failures: HashMap<FailureLabels, u64>,
}

impl Counts {
    /// Counts one answered request.
    pub(super) fn request(&mut self, answered: &AnsweredRequest) {
        let labels = RequestLabels {
            route: answered.route.map_or("none", |route| route.name),
            status: answered.status.as_u16(),
            reason: answered.reason.map_or("none", Code::as_str),
        };
        *self.requests.entry(labels).or_default() += 1;
        if let Some(took) = answered.limiter {
            self.limiter.observe(took);
        }
        if let (Some(took), Some(route)) = (answered.service, answered.route) {
            match route.service {
                ServiceName::Departements => self.departements.observe(took),
                ServiceName::History => self.history.observe(took),
            }
            if let Some(reason) = answered.failure {
                let service = route.service.as_str();
                let labels = FailureLabels { service, reason };
                *self.failures.entry(labels).or_default() += 1;
            }
        }
        self.gate.observe(answered.gate);
    }

    /// Adds the counts of another worker.
    pub(super) fn add(&mut self, other: &Self) {
        add_counts(&mut self.requests, &other.requests);
        add_counts(&mut self.failures, &other.failures);
        self.gate.add(&other.gate);
        self.limiter.add(&other.limiter);
        self.departements.add(&other.departements);
        self.history.add(&other.history);
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        encode_counts(encoder, "requests", "Answered requests", &self.requests)?;
        let histogram = MetricType::Histogram;
        let help = "Time in the gate, without the limiter and the service";
        self.gate
            .encode(encoder.encode_descriptor("seconds", help, None, histogram)?)?;
        let help = "Time of one question to the limiter";
        self.limiter.encode(encoder.encode_descriptor(
            "limiter_seconds",
            help,
            None,
            histogram,
        )?)?;
        let help = "Time of one exchange with a service";
        let mut services = encoder.encode_descriptor("service_seconds", help, None, histogram)?;
        for (service, times) in [
            (ServiceName::Departements, &self.departements),
            (ServiceName::History, &self.history),
        ] {
            times.encode(services.encode_family(&[("service", service.as_str())])?)?;
        }
        let help = "Exchanges that gave no answer to pass on";
        encode_counts(encoder, "service_failures", help, &self.failures)
    }
}

fn add_counts<L: Copy + Eq + Hash>(counts: &mut HashMap<L, u64>, others: &HashMap<L, u64>) {
    for (labels, count) in others {
        *counts.entry(*labels).or_default() += count;
    }
}

fn encode_counts<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    counts: &HashMap<L, u64>,
) -> Result<(), fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, count) in counts {
        ConstCounter::new(*count).encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

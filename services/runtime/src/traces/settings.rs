//! Settings of spans, in the variables that OpenTelemetry's specification names.

use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;
use opentelemetry_sdk::trace::Sampler;

use crate::{Invalid, Settings};

const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";

/// Collector, owner and sampling of spans.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// Collector of the batches; without one no spans are made.
    pub endpoint: Option<CollectorUrl>,
    /// Name of the spans' service; the program's name if none is set.
    pub service_name: Option<String>,
    /// Decides whether a trace is exported.
    pub sampler: Sampler,
}

impl TraceSettings {
    /// Reads the variables.
    pub fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let base = settings.optional::<CollectorUrl>(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "the URL of a collector that takes OTLP over HTTP, such as http://collector:4318; by default no spans are made",
        );
        let exact = settings.optional::<CollectorUrl>(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "the URL that takes spans if it is another than /v1/traces there, such as http://collector:4318/v1/traces",
        );
        let service_name = settings.optional(
            "OTEL_SERVICE_NAME",
            "the name of this service in its spans; by default the binary's",
        );
        let sampler = sampler(settings);
        let (base, exact) = (base?, exact?);
        Ok(Self {
            endpoint: exact.or(base.map(|base| base.traces())),
            service_name: service_name?,
            sampler: sampler?,
        })
    }
}

fn sampler(settings: &mut Settings) -> Result<Sampler, Invalid> {
    let name = settings.or::<SamplerName>(
        SAMPLER,
        "parentbased_always_on",
        "which traces are exported: always_on, always_off, traceidratio, or one of them after parentbased_ for requests that do not say it themselves",
    );
    let ratio = settings.or::<Ratio>(
        ARGUMENT,
        "1.0",
        "the share of traces that traceidratio exports, from 0 to 1, such as 0.1",
    );
    let (SamplerName { of_parent, root }, Ratio(ratio)) = (name?, ratio?);
    let root = match root {
        Root::AlwaysOn => Sampler::AlwaysOn,
        Root::AlwaysOff => Sampler::AlwaysOff,
        Root::Ratio => Sampler::TraceIdRatioBased(ratio),
    };
    Ok(if of_parent {
        Sampler::ParentBased(Box::new(root))
    } else {
        root
    })
}

/// `http://host[:port][/path]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectorUrl(Uri);

/// Text that is no such URL; it is not repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidCollectorUrl {
    /// Text that cannot be read at all, or has more parts than a host, a port and a path.
    #[error("a collector's URL is http://, a host, perhaps a port and a path, and nothing else")]
    Malformed,
    /// URL with encryption.
    #[error("spans are sent without TLS; let a collector in the cluster pass them on with it")]
    Tls,
}

impl CollectorUrl {
    /// Returns the whole URL.
    pub fn as_str(&self) -> String {
        self.0.to_string()
    }

    /// Returns the path for spans below a collector's own URL.
    fn traces(&self) -> Self {
        let text = format!("{}/v1/traces", self.0.to_string().trim_end_matches('/'));
        Self(text.parse().expect("a longer path is a path"))
    }
}

impl FromStr for CollectorUrl {
    type Err = InvalidCollectorUrl;

    fn from_str(text: &str) -> Result<Self, InvalidCollectorUrl> {
        let uri: Uri = text.parse().map_err(|_| InvalidCollectorUrl::Malformed)?;
        if uri.scheme() == Some(&Scheme::HTTPS) {
            return Err(InvalidCollectorUrl::Tls);
        }
        let host = uri.host().unwrap_or_default();
        let address = match uri.port_u16() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let plain = uri.scheme() == Some(&Scheme::HTTP) && uri.query().is_none();
        // An authority with more than that has a user, which is a secret, or a number that is no port.
        let exact = uri.authority().is_some_and(|given| *given == *address);
        if plain && exact && !host.is_empty() {
            Ok(Self(uri))
        } else {
            Err(InvalidCollectorUrl::Malformed)
        }
    }
}

struct SamplerName {
    of_parent: bool,
    root: Root,
}

enum Root {
    AlwaysOn,
    AlwaysOff,
    Ratio,
}

#[derive(Debug, thiserror::Error)]
#[error("there is no such sampler")]
struct NoSuchSampler;

impl FromStr for SamplerName {
    type Err = NoSuchSampler;

    fn from_str(text: &str) -> Result<Self, NoSuchSampler> {
        let root = text.strip_prefix("parentbased_");
        Ok(Self {
            of_parent: root.is_some(),
            root: match root.unwrap_or(text) {
                "always_on" => Root::AlwaysOn,
                "always_off" => Root::AlwaysOff,
                "traceidratio" => Root::Ratio,
                _ => return Err(NoSuchSampler),
            },
        })
    }
}

struct Ratio(f64);

#[derive(Debug, thiserror::Error)]
#[error("a share is a number from 0 to 1")]
struct NoShare;

impl FromStr for Ratio {
    type Err = NoShare;

    fn from_str(text: &str) -> Result<Self, NoShare> {
        let ratio: f64 = text.parse().map_err(|_| NoShare)?;
        (0.0..=1.0)
            .contains(&ratio)
            .then_some(Self(ratio))
            .ok_or(NoShare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<const N: usize>(
        pairs: [(&'static str, &'static str); N],
    ) -> Result<TraceSettings, Vec<String>> {
        let mut settings = Settings::from_pairs(pairs);
        TraceSettings::read(&mut settings).map_err(|_| settings.problems().to_vec())
    }

    fn endpoint<const N: usize>(pairs: [(&'static str, &'static str); N]) -> Option<String> {
        Some(read(pairs).unwrap().endpoint?.as_str())
    }

    #[test]
    fn spans_go_below_the_collectors_url_or_exactly_where_it_is_said() {
        const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        const EXACT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        assert_eq!(endpoint([]), None);
        for (base, expected) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("http://collector/otlp/", "http://collector/otlp/v1/traces"),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/traces"),
        ] {
            assert_eq!(endpoint([(BASE, base)]).as_deref(), Some(expected));
        }
        let exact = "http://other:4318/spans";
        let both = endpoint([(BASE, "http://collector:4318"), (EXACT, exact)]);
        assert_eq!(both.as_deref(), Some(exact));
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_with_the_reason_and_not_repeated() {
        for (url, reason) in [
            ("planted", "a host, perhaps a port and a path"),
            ("collector:4318", "a host, perhaps a port and a path"),
            (
                "http://planted@collector",
                "a host, perhaps a port and a path",
            ),
            ("http://planted:70000", "a host, perhaps a port and a path"),
            (
                "http://collector/?planted",
                "a host, perhaps a port and a path",
            ),
            ("https://planted:4318", "without TLS"),
        ] {
            let problems = read([("OTEL_EXPORTER_OTLP_ENDPOINT", url)]).unwrap_err();
            let [problem] = problems.as_slice() else {
                panic!("{problems:?}")
            };
            assert!(problem.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT is not usable: "));
            assert!(problem.contains(reason), "{problem}");
            assert!(!problem.contains("planted"), "{problem}");
        }
    }

    #[test]
    fn every_sampler_of_the_specification_is_read_and_no_other() {
        let sampler = |name| Some(format!("{:?}", read([(SAMPLER, name)]).ok()?.sampler));
        for (name, expected) in [
            ("", "ParentBased(AlwaysOn)"),
            ("always_on", "AlwaysOn"),
            ("always_off", "AlwaysOff"),
            ("traceidratio", "TraceIdRatioBased(1.0)"),
            ("parentbased_always_on", "ParentBased(AlwaysOn)"),
            ("parentbased_always_off", "ParentBased(AlwaysOff)"),
            (
                "parentbased_traceidratio",
                "ParentBased(TraceIdRatioBased(1.0))",
            ),
        ] {
            assert_eq!(sampler(name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(sampler("parentbased_jaeger_remote"), None);
        for share in ["-0.1", "1.1", "NaN", "half"] {
            assert!(read([(ARGUMENT, share)]).is_err(), "{share}");
        }
        let tenth = read([(SAMPLER, "traceidratio"), (ARGUMENT, "0.1")]).unwrap();
        assert_eq!(format!("{:?}", tenth.sampler), "TraceIdRatioBased(0.1)");
    }
}

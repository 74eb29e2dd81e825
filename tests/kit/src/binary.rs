//! Duties of every binary behind the gate: check its settings, start, stop, and report its spans.

use std::process::Command;

use water_harness::{Collector, Program};

use crate::{CURRENT, Database, SOON, Server, Signature};

/// A service's binary.
pub struct Binary {
    /// Package.
    pub name: &'static str,
    /// File: `env!("CARGO_BIN_EXE_…")`.
    pub path: &'static str,
    /// Version of the package: `env!("CARGO_PKG_VERSION")`.
    pub version: &'static str,
}

impl Binary {
    /// Checks that bad settings are reported at once and without their values, with exit code 64.
    pub fn refuses_bad_settings(&self) {
        let set = [
            ("WATER_IDENTITY_CURRENT", "too short"),
            ("WATER_LISTEN_ADDRESS", "nowhere"),
        ];
        let mut command = Command::new(self.path);
        let output = command.env_clear().envs(set).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{said}");
        for name in [
            "WATER_LISTEN_ADDRESS",
            "WATER_POSTGRES_URL",
            "WATER_IDENTITY_CURRENT",
        ] {
            assert!(said.contains(name), "{name} in {said}");
        }
        assert!(!said.contains("too short"), "{said}");
    }

    /// Checks that its version is its image's, else its package's.
    pub fn reports_its_version(&self) {
        for (image, version) in [("1.2.3-next", "1.2.3-next"), ("", self.version)] {
            let mut command = Command::new(self.path);
            let command = command.env_clear().env("WATER_VERSION", image);
            let output = command.arg("--version").output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            assert_eq!(said, format!("{} {version}\n", self.name));
        }
    }

    /// Checks that it starts on an empty database; that a request to `target`, which gets `status` for
    /// `reason`, is a span inside the gate's; and that it ends without an error when it is asked to.
    pub async fn reports_a_span(&self, target: &str, status: u16, reason: Option<&str>) {
        let collector = Collector::start().await.unwrap();
        let database = Database::new().await;
        let program = Program::new(self.path)
            .env("WATER_POSTGRES_URL", database.reader_url())
            .env("WATER_IDENTITY_CURRENT", CURRENT)
            .env("WATER_STOP_DELAY_SECONDS", "0")
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint());
        let running = Server::start(program).ready().await;

        let identity = Signature::default().value("GET", target);
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let fields = [
            ("X-Water-Identity", identity.as_str()),
            ("traceparent", parent),
        ];
        let mut client = running.connect().await;
        let answer = client.request("GET", target, &fields).await.unwrap();
        assert_eq!(answer.status, status);
        let ended = running.process.stop(SOON).await.unwrap();
        let log = running.process.log();
        assert!(
            ended.success() && log.contains("drained in time"),
            "{ended}: {log}"
        );

        let spans = collector.spans().unwrap();
        let [span] = spans.as_slice() else {
            panic!("not one span: {spans:#?}")
        };
        assert_eq!(span.service, self.name);
        assert_eq!(span.trace, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(span.parent, "00f067aa0ba902b7");
        assert_eq!(span.name, format!("GET {target}"));
        let attribute = |name| span.attributes.get(name).map(String::as_str);
        let expected = status.to_string();
        assert_eq!(
            attribute("http.response.status_code"),
            Some(expected.as_str())
        );
        assert_eq!(attribute("http.route"), Some(target));
        assert_eq!(attribute("error.type"), reason);
    }
}

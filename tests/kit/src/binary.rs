//! What every binary behind the gate must do: judge its settings, start, stop, and tell its spans.

use std::process::Command;

use water_harness::{Collector, HttpClient, Port, Postgres, Process, Program, wait_until};

use crate::{CURRENT, SOON, Signature, migrated};

/// A service's binary.
pub struct Binary {
    /// Its package.
    pub name: &'static str,
    /// Where it is: `env!("CARGO_BIN_EXE_…")`.
    pub path: &'static str,
    /// What it logs when it has read the database.
    pub when_ready: &'static str,
}

impl Binary {
    /// All bad settings are said at once and without their values; exit code 64.
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

    /// Its version is its image's, else its package's.
    pub fn tells_its_version(&self, package: &str) {
        for (image, version) in [("1.2.3-next", "1.2.3-next"), ("", package)] {
            let mut command = Command::new(self.path);
            let command = command.env_clear().env("WATER_VERSION", image);
            let output = command.arg("--version").output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            assert_eq!(said, format!("{} {version}\n", self.name));
        }
    }

    /// Starts on an empty database, and ends without an error when it is asked to.
    pub async fn starts_and_stops(&self) {
        let database = migrated(Postgres::shared().await.unwrap()).await;
        let program = self.program(&database.url_as("water_reader"));
        let running = self.start(program).await;
        let status = running.stop(SOON).await.unwrap();
        assert!(
            status.success() && running.log().contains("drained in time"),
            "{status}: {}",
            running.log()
        );
    }

    /// A request to `target` on an empty database, which gets `status` for `reason`, is a span
    /// inside the gate's.
    pub async fn tells_a_span(&self, target: &str, status: u16, reason: Option<&str>) {
        let collector = Collector::start().await.unwrap();
        let database = migrated(Postgres::shared().await.unwrap()).await;
        let http = Port::reserve().unwrap();
        let program = self
            .program(&database.url_as("water_reader"))
            .env("WATER_LISTEN_ADDRESS", http.address().to_string())
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint());
        let running = self.start(program).await;

        let identity = Signature::default().value("GET", target);
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let fields = [
            ("X-Water-Identity", identity.as_str()),
            ("traceparent", parent),
        ];
        let mut client = HttpClient::connect(http.address()).await.unwrap();
        let answer = client.request("GET", target, &fields).await.unwrap();
        assert_eq!(answer.status, status);
        assert!(running.stop(SOON).await.unwrap().success());

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

    fn program(&self, postgres_url: &str) -> Program {
        Program::new(self.path)
            .env("WATER_LISTEN_ADDRESS", "127.0.0.1:0")
            .env("WATER_ADMIN_ADDRESS", "127.0.0.1:0")
            .env("WATER_POSTGRES_URL", postgres_url)
            .env("WATER_IDENTITY_CURRENT", CURRENT)
            .env("WATER_STOP_DELAY_SECONDS", "0")
    }

    async fn start(&self, program: Program) -> Process {
        let running = program.start().unwrap();
        let ready = async || match running.log() {
            log if log.contains(self.when_ready) => Ok(()),
            log => anyhow::bail!(log),
        };
        wait_until("the database to be read", SOON, ready)
            .await
            .unwrap();
        running
    }
}

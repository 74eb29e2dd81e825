//! The access log: one line a request, and nothing in it that a client could plant.

use std::io::Write;
use std::sync::mpsc;

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};
use tracing::subscriber::DefaultGuard;
use water_runtime::telemetry::{Lines, subscriber};

use crate::sample::Sample;

/// What this test's thread logs; the server runs on the same thread.
struct Log {
    lines: Lines,
    output: mpsc::Receiver<Vec<u8>>,
    _guard: DefaultGuard,
}

impl Log {
    fn start() -> Result<Self> {
        let (sender, output) = mpsc::channel();
        let lines = Lines::start(Sent(sender));
        let subscriber = subscriber("info", lines.clone())?;
        Ok(Self {
            lines,
            output,
            _guard: tracing::subscriber::set_default(subscriber),
        })
    }

    /// All lines so far; the log ends with this.
    fn lines(self) -> Result<Vec<Value>> {
        self.lines.close();
        let bytes: Vec<u8> = self.output.try_iter().flatten().collect();
        let lines = std::str::from_utf8(&bytes)?.lines();
        Ok(lines.map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}

/// Hands each write to the test.
struct Sent(mpsc::Sender<Vec<u8>>);

impl Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let sent = self.0.send(bytes.to_vec());
        sent.map(|()| bytes.len()).map_err(std::io::Error::other)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_request_is_one_line_without_its_query() -> Result<()> {
    let log = Log::start()?;
    let mut sample = Sample::start().await?;
    sample
        .ask(
            Method::GET,
            "/api/v1/page?limit=7&note=planted",
            &[("X-Request-Id", "request-1")],
        )
        .await?;
    let lines = log.lines()?;
    let [line] = lines.as_slice() else {
        panic!("not one line: {lines:#?}")
    };
    let expected = json!({
        "target": "access", "request.id": "request-1", "method": "GET", "route": "/api/v1/page",
        "status": 200, "bytes": 1063, "account.id": "acme", "key.id": "0123456789ab",
        "plan": "Enterprise",
    });
    for (field, value) in expected.as_object().context("an object")? {
        assert_eq!(&line[field], value, "{field}");
    }
    assert!(line["duration_ms"].as_f64().unwrap() > 0.0);
    assert!(line.get("reason").is_none());
    assert!(!line.to_string().contains("planted"));
    Ok(())
}

#[tokio::test]
async fn a_method_that_nobody_knows_is_not_repeated() -> Result<()> {
    let log = Log::start()?;
    let mut sample = Sample::start().await?;
    let method = Method::from_bytes(b"PLANTED")?;
    sample.ask(method, "/api/v1/page", &[]).await?;
    let lines = log.lines()?;
    assert_eq!(lines[0]["method"], "-");
    assert!(!lines[0].to_string().contains("PLANTED"), "{lines:#?}");
    Ok(())
}

#[tokio::test]
async fn a_line_names_the_trace() -> Result<()> {
    let log = Log::start()?;
    let mut sample = Sample::start().await?;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for traceparent in [parent, "planted"] {
        let fields = [("traceparent", traceparent)];
        sample.ask(Method::GET, "/api/v1/page", &fields).await?;
    }
    let lines = log.lines()?;
    assert_eq!(lines[0]["trace.id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(lines[1].get("trace.id"), None);
    Ok(())
}

#[tokio::test]
async fn a_strangers_path_is_not_repeated() -> Result<()> {
    let log = Log::start()?;
    let mut sample = Sample::start().await?;
    sample.ask_unsigned("/planted", &[]).await?;
    let lines = log.lines()?;
    let access = lines
        .iter()
        .find(|line| line["target"] == "access")
        .unwrap();
    assert_eq!(
        (&access["route"], &access["reason"]),
        (&json!("-"), &json!("invalid_identity"))
    );
    assert!(
        lines
            .iter()
            .all(|line| !line.to_string().contains("planted"))
    );
    Ok(())
}

#[tokio::test]
async fn a_cause_is_logged_once_with_the_request() -> Result<()> {
    let log = Log::start()?;
    let mut sample = Sample::start().await?;
    sample
        .ask(
            Method::GET,
            "/api/v1/store",
            &[("X-Request-Id", "request-1")],
        )
        .await?;
    let lines = log.lines()?;
    let said = |line: &&Value| line.to_string().contains("store.internal");
    let causes: Vec<_> = lines.iter().filter(said).collect();
    assert_eq!(causes.len(), 1, "{lines:#?}");
    assert_eq!(causes[0]["error"], "connection to store.internal refused");
    assert_eq!(causes[0]["request.id"], "request-1");
    Ok(())
}

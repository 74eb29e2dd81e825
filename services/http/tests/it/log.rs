//! The access log: one line a request, and nothing in it that a client could inject.

use std::io::Write;
use std::sync::mpsc;

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};
use tracing::subscriber::DefaultGuard;
use water_runtime::telemetry::{Lines, subscriber};

use crate::sample::Sample;

/// Log of this test's thread; the server runs on the same thread.
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

    /// Returns all lines so far, and ends the log.
    fn lines(self) -> Result<Vec<Value>> {
        self.lines.close();
        // The writing thread ends once everything is out, and its sender with it.
        let bytes: Vec<u8> = self.output.iter().flatten().collect();
        let lines = std::str::from_utf8(&bytes)?.lines();
        Ok(lines.map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}

/// Sends each write to the test.
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
            "/api/v1/page?limit=7&utm_note=planted",
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
async fn a_line_names_the_trace_and_repeats_no_strangers_text() -> Result<()> {
    let log = Log::start()?;
    let mut sample = Sample::start().await?;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let method = Method::from_bytes(b"PLANTED")?;
    for traceparent in [parent, "planted"] {
        let fields = [("traceparent", traceparent)];
        sample.ask(method.clone(), "/api/v1/page", &fields).await?;
    }
    sample.ask_unsigned("/planted", &[]).await?;
    let lines = log.lines()?;
    let is_access = |line: &&Value| line["target"] == "access";
    let access: Vec<_> = lines.iter().filter(is_access).collect();
    let [known, unknown, stranger] = access.as_slice() else {
        panic!("not three requests: {lines:#?}")
    };
    assert_eq!(known["trace.id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(unknown.get("trace.id"), None);
    assert_eq!(known["method"], "-");
    assert_eq!(stranger["route"], "-");
    assert_eq!(stranger["reason"], "invalid_identity");
    let printed = format!("{lines:?}").to_lowercase();
    assert!(!printed.contains("planted"), "{printed}");
    Ok(())
}

#[tokio::test]
async fn a_stores_failure_is_503_without_its_cause_which_is_logged_once() -> Result<()> {
    let log = Log::start()?;
    let mut sample = Sample::start().await?;
    let fields = [("X-Request-Id", "request-1")];
    let answer = sample.ask(Method::GET, "/api/v1/store", &fields).await?;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("2"))
    );
    assert!(!answer.text()?.contains("store.internal"));
    let lines = log.lines()?;
    let said = |line: &&Value| line.to_string().contains("store.internal");
    let causes: Vec<_> = lines.iter().filter(said).collect();
    assert_eq!(causes.len(), 1, "{lines:#?}");
    assert_eq!(causes[0]["error"], "connection to store.internal refused");
    assert_eq!(causes[0]["request.id"], "request-1");
    Ok(())
}

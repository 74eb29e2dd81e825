//! An OpenTelemetry collector: takes spans as OTLP over HTTP and keeps them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n\
    content-length: 0\r\n\r\n";

/// A span as it arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exported {
    /// The resource's `service.name`.
    pub service: String,
    /// The span's name.
    pub name: String,
    /// Side of the exchange.
    pub kind: SpanKind,
    /// 32 hex digits.
    pub trace: String,
    /// 16 hex digits.
    pub id: String,
    /// 16 hex digits; empty for the first span of a trace.
    pub parent: String,
    /// Attributes, their values as text.
    pub attributes: BTreeMap<String, String>,
    /// Whether its status says that it failed.
    pub failed: bool,
    /// Duration in nanoseconds.
    pub nanoseconds: u64,
}

/// A running collector; it ends when it is dropped.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
    accepting: JoinHandle<()>,
}

impl Collector {
    /// Starts one on loopback.
    pub async fn start() -> Result<Self> {
        Self::start_at(([127, 0, 0, 1], 0).into()).await
    }

    /// Starts one at this address.
    pub async fn start_at(address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("listen at {address}"))?;
        let address = listener.local_addr()?;
        let bodies = Arc::default();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&bodies)));
        Ok(Self {
            address,
            bodies,
            accepting,
        })
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the value of `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the spans so far.
    pub fn spans(&self) -> Result<Vec<Exported>> {
        let mut spans = Vec::new();
        for body in self.bodies().iter() {
            let request = ExportTraceServiceRequest::decode(body.as_slice())?;
            for group in request.resource_spans {
                let resource = attributes(group.resource.unwrap_or_default().attributes);
                let service = resource
                    .get("service.name")
                    .context("whose spans are these?")?;
                let found = group.scope_spans.into_iter().flat_map(|scope| scope.spans);
                spans.extend(found.map(|span| exported(service, span)));
            }
        }
        Ok(spans)
    }

    /// Returns the bytes of the bodies so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.bodies().concat()
    }

    fn bodies(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn exported(service: &str, span: Span) -> Exported {
    Exported {
        service: service.to_owned(),
        kind: span.kind(),
        name: span.name,
        trace: hex::encode(span.trace_id),
        id: hex::encode(span.span_id),
        parent: hex::encode(span.parent_span_id),
        attributes: attributes(span.attributes),
        failed: span
            .status
            .is_some_and(|status| status.code() == StatusCode::Error),
        nanoseconds: span
            .end_time_unix_nano
            .saturating_sub(span.start_time_unix_nano),
    }
}

fn attributes(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    pairs
        .into_iter()
        .map(|pair| (pair.key, text(pair.value)))
        .collect()
}

async fn accept(listener: TcpListener, bodies: Arc<Mutex<Vec<Vec<u8>>>>) {
    let mut serving = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let bodies = Arc::clone(&bodies);
        serving.spawn(async move {
            // A client that sends something else gets no answer, and the test finds no spans.
            if let Err(error) = take(stream, &bodies).await {
                eprintln!("the collector was not sent spans: {error:#}");
            }
        });
    }
}

/// Takes one batch; its connection carries no other.
async fn take(mut stream: TcpStream, bodies: &Mutex<Vec<Vec<u8>>>) -> Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head)?.to_ascii_lowercase();
    let (line, fields) = head.split_once("\r\n").context("a request line")?;
    ensure!(line == "post /v1/traces http/1.1", "{line}");
    let field = |name: &str| {
        let mut fields = fields.split("\r\n");
        let value = fields.find_map(|field| field.strip_prefix(name)?.strip_prefix(": "));
        value.with_context(|| format!("no {name}"))
    };
    ensure!(field("content-type")? == "application/x-protobuf", "{head}");
    let mut body = vec![0; field("content-length")?.parse()?];
    stream.read_exact(&mut body).await?;
    bodies
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(body);
    stream.write_all(TAKEN).await?;
    Ok(())
}

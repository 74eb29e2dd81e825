//! A line of the access log from the event to the last byte written, and the sink by itself.
//!
//! Lines come in bursts, as many a second as a busy gate writes, and every one must have been
//! written in the end. The library's sink writes each line by itself; a buffer before the file, which
//! it flushes when nothing is left to write, is the best that it can be given.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Result, ensure};
use http::{Method, StatusCode};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing_appender::non_blocking::NonBlockingBuilder;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use water_domain::{AccountId, KeyId, PlanName};
use water_harness::wait_until;
use water_http::{Access, RequestId, RequestIds};
use water_runtime::telemetry::{Lines, subscriber};

use super::orders::take_turns;
use crate::cpu;
use crate::load::Slice;
use crate::rounds::Turn;

/// 25 000 lines a second.
const BURST: u64 = 500;
const EVERY: Duration = Duration::from_millis(20);

/// Until the last line is written, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Enough for many lines.
const BUFFER: usize = 64 * 1024;

/// As a binary's by default.
const FILTER: &str = "info";

/// A line as ours, for what only passes lines on.
const LINE: &[u8] = br#"{"timestamp":"2026-07-02T00:00:00.000000Z","level":"INFO","target":"access","message":"request","request.id":"0123456789abcdef-0","method":"GET","route":"/api/v1/stress","status":200,"bytes":223,"duration_ms":1.234,"gate_ms":0.123,"upstream_ms":0.987,"account.id":"acme-water","key.id":"0123456789ab","plan":"Professional"}
"#;

/// Our line and our sink.
pub async fn ours() -> Result<()> {
    let (output, written) = Output::open()?;
    let subscriber = subscriber(FILTER, Lines::start(output))?;
    tracing::subscriber::set_global_default(subscriber)?;
    events(&written).await
}

/// tracing-subscriber's JSON, the fields beside the message as in ours, and tracing-appender's sink.
pub async fn library() -> Result<()> {
    let (output, written) = Output::open()?;
    let output = BufWriter::with_capacity(BUFFER, output);
    let (sink, _guard) = NonBlockingBuilder::default().lossy(true).finish(output);
    let layer = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(sink);
    let subscriber = tracing_subscriber::registry()
        .with(EnvFilter::try_new(FILTER)?)
        .with(layer);
    tracing::subscriber::set_global_default(subscriber)?;
    events(&written).await
}

/// Our sink alone.
pub async fn sink_ours() -> Result<()> {
    let (output, written) = Output::open()?;
    let lines = Lines::start(output);
    compete(&written, LINE.len() as u64, || lines.push(LINE)).await
}

/// tracing-appender's sink alone.
pub async fn sink_library() -> Result<()> {
    let (output, written) = Output::open()?;
    let output = BufWriter::with_capacity(BUFFER, output);
    let (mut sink, _guard) = NonBlockingBuilder::default().lossy(true).finish(output);
    compete(&written, LINE.len() as u64, || {
        sink.write_all(LINE).expect("it takes or drops each line");
    })
    .await
}

/// Where a log goes that costs nothing, but for the system call.
struct Output {
    null: File,
    bytes: Arc<AtomicU64>,
}

impl Output {
    /// And how many bytes have been written to it.
    fn open() -> Result<(Self, Arc<AtomicU64>)> {
        let null = File::options().write(true).open("/dev/null")?;
        let bytes = Arc::new(AtomicU64::new(0));
        let output = Self {
            null,
            bytes: Arc::clone(&bytes),
        };
        Ok((output, bytes))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.null.write(bytes)?;
        self.bytes.fetch_add(written as u64, Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.null.flush()
    }
}

/// Logs events whose lines are all of the same length, which the first one tells.
async fn events(written: &AtomicU64) -> Result<()> {
    let request = Request::new()?;
    request.log();
    let length = wait_until("the first line", PATIENCE, async || {
        let length = written.load(Relaxed);
        ensure!(length > 0, "nothing is written");
        Ok(length)
    })
    .await?;
    let expected = LINE.len() as u64;
    ensure!(
        length.abs_diff(expected) < 16,
        "{length} bytes, not some {expected}"
    );
    compete(written, length, || request.log()).await
}

/// Takes turns with lines of `length` bytes.
async fn compete(written: &AtomicU64, length: u64, write: impl FnMut()) -> Result<()> {
    let lines = written.load(Relaxed) / length;
    let mut writing = Writing {
        written,
        length,
        lines,
        write,
    };
    take_turns(async |slice| writing.turn(slice).await).await
}

struct Writing<'a, W> {
    /// Bytes that have come out.
    written: &'a AtomicU64,
    /// Of each line, in bytes.
    length: u64,
    /// Lines that went in.
    lines: u64,
    write: W,
}

impl<W: FnMut()> Writing<'_, W> {
    /// The CPU time of a line in nanoseconds: all threads', and the writing thread's.
    async fn turn(&mut self, slice: Slice) -> Result<Turn> {
        self.bursts(slice.warm_up).await?;
        self.all_written().await?;
        let (before, lines) = (cpu::own()?, self.lines);
        let calling = self.bursts(slice.counted).await?;
        self.all_written().await?;
        let (spent, lines) = (cpu::own()? - before, self.lines - lines);
        let of_a_line = |time: Duration| time.as_nanos() as f64 / lines as f64;
        Ok(Turn {
            cost: of_a_line(spent),
            counted: of_a_line(calling),
        })
    }

    /// Writes for as long; the CPU time of this thread in it.
    async fn bursts(&mut self, length: Duration) -> Result<Duration> {
        let mut calling = Duration::ZERO;
        let mut turns = interval(EVERY);
        // A late burst is not made up for by two at once.
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = Instant::now() + length;
        while turns.tick().await < end {
            let before = cpu::own_thread()?;
            (0..BURST).for_each(|_| (self.write)());
            calling += cpu::own_thread()? - before;
            self.lines += BURST;
        }
        Ok(calling)
    }

    async fn all_written(&self) -> Result<()> {
        wait_until("all lines", PATIENCE, async || {
            let (written, expected) = (self.written.load(Relaxed), self.lines * self.length);
            ensure!(
                written == expected,
                "{written} of {expected} bytes are written"
            );
            Ok(())
        })
        .await
    }
}

/// What the gate logs of a request.
struct Request {
    id: RequestId,
    account: AccountId,
    key: KeyId,
    plan: PlanName,
}

impl Request {
    fn new() -> Result<Self> {
        Ok(Self {
            id: RequestIds::new(0x0123_4567_89ab_cdef).mint(),
            account: "acme-water".parse()?,
            key: "0123456789ab".parse()?,
            plan: "Professional".parse()?,
        })
    }

    fn log(&self) {
        let access = Access {
            request_id: &self.id,
            trace: None,
            method: &Method::GET,
            route: "/api/v1/stress",
            status: StatusCode::OK,
            reason: None,
            bytes: 223,
            duration: Duration::from_micros(1_234),
            gate: Some(Duration::from_micros(123)),
            upstream: Some(Duration::from_micros(987)),
            account: Some(&self.account),
            key: Some(&self.key),
            plan: Some(&self.plan),
        };
        access.log();
    }
}

//! The frame in which every binary runs: start, wait, stop.

use std::future::pending;
use std::net::SocketAddr;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{debug, error, info, warn};

use crate::descriptors;
use crate::listener::{announce, listen};
use crate::shutdown::Stage;
use crate::telemetry::chain;
use crate::traces::Traces;
use crate::{
    Admin, BoxError, DrainOutcome, Invalid, Program, Readiness, Settings, Shutdown, Tasks,
};
use crate::{TraceSettings, Tracer};

/// The settings that every serving binary has.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// Address on which requests are answered.
    pub listen: SocketAddr,
    /// Address on which health and metrics are answered.
    pub admin: SocketAddr,
    /// Time from the request to stop until connections are drained: load balancers need it to hear that the
    /// process is unready.
    pub stop_delay: Duration,
    /// Longest time of draining before connections are cut.
    pub drain: Duration,
    /// Export of spans.
    pub traces: TraceSettings,
}

impl ProcessSettings {
    /// Reads the variables.
    pub fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let listen = settings.or(
            "WATER_LISTEN_ADDRESS",
            "0.0.0.0:8080",
            "the address and port that answer requests, such as 0.0.0.0:8080",
        );
        let admin = settings.or(
            "WATER_ADMIN_ADDRESS",
            "0.0.0.0:9090",
            "the address and port of /live, /ready and /metrics, such as 0.0.0.0:9090",
        );
        let stop_delay = settings.seconds(
            "WATER_STOP_DELAY_SECONDS",
            "5",
            "the seconds to go on serving after being asked to stop, such as 5",
        );
        let drain = settings.seconds(
            "WATER_DRAIN_SECONDS",
            "20",
            "the seconds that requests under way have to end, such as 20",
        );
        let traces = TraceSettings::read(settings);
        Ok(Self {
            listen: listen?,
            admin: admin?,
            stop_delay: stop_delay?,
            drain: drain?,
            traces: traces?,
        })
    }
}

/// A running process: the state that its parts share.
#[derive(Debug)]
pub struct Process {
    /// Name, version and purpose of the binary.
    pub program: Program,
    /// Latches that say whether it can answer.
    pub readiness: Readiness,
    /// Stage of stopping.
    pub shutdown: Shutdown,
    /// Background tasks.
    pub tasks: Tasks,
    /// Largest number of its file descriptors.
    pub descriptors: u64,
    /// Metrics of `/metrics`; names get the prefix `water_`.
    pub metrics: Registry,
    traces: Option<Traces>,
    signals: Signals,
}

#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// A server that returned although nobody had asked the process to stop.
#[derive(Debug, thiserror::Error)]
#[error("the server ended before it was asked to")]
struct ServerEnded;

/// Runs `work` on a single-threaded runtime; an error is logged with its causes and is exit code 1.
pub fn run<F>(program: Program, work: F) -> ExitCode
where
    F: AsyncFnOnce(&mut Process) -> Result<(), BoxError>,
{
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BoxError::from)
        .and_then(|runtime| {
            runtime.block_on(async {
                let mut process = Process::start(program)?;
                info!(version = program.version, "{} starts", program.name);
                debug!(descriptors = process.descriptors, "debug lines are logged");
                work(&mut process).await
            })
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            error!(error = chain(failure.as_ref()), "{} failed", program.name);
            ExitCode::FAILURE
        }
    }
}

impl Process {
    /// Takes as many descriptors as it may have, and catches SIGTERM and SIGINT from then on. Needs a
    /// runtime; [`run`] calls it.
    pub fn start(program: Program) -> std::io::Result<Self> {
        let mut metrics = Registry::with_prefix("water");
        metrics.register(
            "build",
            "Which build this is",
            Info::new([("version", program.version)]),
        );
        Ok(Self {
            program,
            readiness: Readiness::default(),
            shutdown: Shutdown::default(),
            tasks: Tasks::default(),
            descriptors: descriptors::raise()?,
            metrics,
            traces: None,
            signals: Signals {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            },
        })
    }

    /// Exports spans from then on if a collector is set; without one there is no tracer. Comes before the
    /// admin port, which counts the spans by outcome.
    pub fn export_traces(&mut self, settings: &TraceSettings) -> Result<Option<Tracer>, BoxError> {
        let Some(endpoint) = &settings.endpoint else {
            return Ok(None);
        };
        let traces = Traces::start(settings, endpoint, &self.program, &mut self.metrics)?;
        let tracer = traces.tracer(&self.program);
        self.traces = Some(traces);
        Ok(Some(tracer))
    }

    /// Opens the port that answers requests and announces it.
    pub fn listen(&self, address: SocketAddr) -> Result<TcpListener, BoxError> {
        let listener = listen(address)?;
        announce("http", listener.local_addr()?);
        Ok(listener)
    }

    /// Opens the admin port, announces it, and answers on it from then on. Comes after every metric is
    /// registered: the registry goes with it. `routes` adds the binary's own answers. Returns its address,
    /// which port 0 leaves open.
    pub fn open_admin(
        &mut self,
        address: SocketAddr,
        routes: impl FnOnce(Admin) -> Admin,
    ) -> Result<SocketAddr, BoxError> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        announce("admin", address);
        let metrics = std::mem::take(&mut self.metrics);
        let admin = routes(Admin::new(self.readiness.clone(), metrics));
        self.tasks.spawn("admin port", admin.serve(listener));
        Ok(address)
    }

    /// Drives `server` until a signal or the end of a background task asks the process to stop; then unready,
    /// `stop_delay` more of serving (a second signal skips the rest), and draining, which `server` ends by
    /// itself at its deadline; at last the spans are flushed. Background tasks run until the process is
    /// dropped. An error is the reason for the stop, if it was no signal.
    pub async fn finish<E: Into<BoxError>>(
        &mut self,
        stop_delay: Duration,
        server: impl Future<Output = Result<DrainOutcome, E>>,
    ) -> Result<(), BoxError> {
        let mut server = pin!(server);
        let cause = tokio::select! {
            name = self.signals.next() => {
                info!(signal = name, "asked to stop");
                Ok(())
            }
            ended = self.tasks.ended() => {
                error!(error = chain(&ended), "stopping because a background task ended");
                Err(BoxError::from(ended))
            }
            early = &mut server => return Err(early.err().map_or(ServerEnded.into(), Into::into)),
        };
        self.readiness.stop();
        self.shutdown.advance(Stage::Stopping);
        tokio::select! {
            () = tokio::time::sleep(stop_delay) => {}
            name = self.signals.next() => info!(signal = name, "asked again: draining at once"),
            early = &mut server => return Err(early.err().map_or(ServerEnded.into(), Into::into)),
        }
        self.shutdown.advance(Stage::Draining);
        let drained = server.await.map_err(Into::into)?;
        match drained.cut {
            0 => info!("drained in time"),
            cut => warn!(connections = cut, "drain deadline passed: connections cut"),
        }
        if let Some(traces) = &self.traces {
            traces.finish().await;
        }
        cause
    }
}

impl Signals {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            Some(()) = self.terminate.recv() => "SIGTERM",
            Some(()) = self.interrupt.recv() => "SIGINT",
            else => pending().await,
        }
    }
}

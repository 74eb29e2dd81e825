//! Frame of a process: settings, telemetry, admin port, accept loop, shutdown.
//!
//! Knows the mechanics and no business word. The `main` of every binary is the same table of
//! contents: telemetry, settings or exit 64, build, announce addresses, wait, drain with a
//! deadline.
//!
//! ```no_run
//! # use water_runtime::*;
//! # struct Config { process: ProcessSettings }
//! # impl water_runtime::Config for Config {
//! #     fn read(settings: &mut Settings) -> Result<Self, Invalid> {
//! #         Ok(Self { process: ProcessSettings::read(settings)? })
//! #     }
//! # }
//! # type Answer = http::Response<http_body_util::Full<bytes::Bytes>>;
//! fn main() -> std::process::ExitCode {
//!     let _telemetry = telemetry::init();
//!     let program = program!();
//!     let config: Config = match settings::load(&program) {
//!         Ok(config) => config,
//!         Err(code) => return code,
//!     };
//!     process::run(program, async |process| {
//!         let connections = Connections::default();
//!         connections.register(&mut process.metrics);
//!         process.open_admin(config.process.admin, |admin| admin)?;
//!         let listener = process.listen(config.process.listen)?;
//!         let server = Server::new(connections, process.shutdown.clone(), config.process.drain);
//!         let service = hyper::service::service_fn(|_| async { Ok::<_, BoxError>(Answer::default()) });
//!         let serving = async { Ok::<_, BoxError>(server.serve(listener, |_peer| service).await) };
//!         process.finish(config.process.stop_delay, serving).await
//!     })
//! }
//! ```

pub mod admin;
mod descriptors;
pub mod json;
pub mod line_end;
pub mod listener;
pub mod process;
pub mod program;
pub mod readiness;
pub mod secret;
pub mod serve;
pub mod settings;
pub mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod traces;
pub mod workers;

pub use admin::Admin;
pub use process::{Process, ProcessSettings};
pub use program::Program;
pub use readiness::{Latch, Readiness};
pub use secret::Secret;
pub use serve::{ConnectionLimits, Connections, DrainOutcome, Peer, Server};
pub use settings::{Config, Invalid, Settings};
pub use shutdown::Shutdown;
pub use tasks::Tasks;
pub use traces::{TraceSettings, Tracer};

/// Any error, on its way to the one place that logs it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

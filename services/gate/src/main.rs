//! `water-gate`: the only way in. Authenticate, admit by plan, route, limit, forward.

use std::process::ExitCode;

use water_gate::{Config, Service};
use water_runtime::{process, program, settings, telemetry};

/// A request makes some fifty short-lived allocations: with glibc's allocator they took a seventh of the gate's
/// instructions (callgrind), with this one a twentieth.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let _telemetry = telemetry::init();
    let program = program!();
    let config: Config = match settings::load(&program) {
        Ok(config) => config,
        Err(code) => return code,
    };
    process::run(program, async |process| {
        let stop_delay = config.process.stop_delay;
        let service = Service::start(config, getrandom::u64()?, process)?;
        process.finish(stop_delay, service.serve()).await
    })
}

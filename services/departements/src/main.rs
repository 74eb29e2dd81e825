//! `water-departements`: answers stress and risque of the départements from memory.

use std::process::ExitCode;

use water_departements::{Config, start};
use water_runtime::{process, program, settings, telemetry};

fn main() -> ExitCode {
    let _telemetry = telemetry::init();
    let program = program!();
    let config: Config = match settings::load(&program) {
        Ok(config) => config,
        Err(code) => return code,
    };
    process::run(program, async |process| {
        let service = start(&config, getrandom::u64()?, process)?;
        service.run(process).await
    })
}

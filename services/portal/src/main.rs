//! `water-portal`: the account holder's settings in a browser.

use std::process::ExitCode;
use std::time::Duration;

use water_portal::{Config, Pages, Service};
use water_resources::client::connect;
use water_runtime::{process, program, settings, telemetry};

/// Deadline of the API server's answers: a person waits for each.
const API_SERVER_TIME: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let _telemetry = telemetry::init();
    let program = program!();
    let config: Config = match settings::load(&program) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let pages = match Pages::embedded() {
        Ok(pages) => pages,
        Err(missing) => {
            eprintln!("{missing}");
            return ExitCode::from(settings::EXIT_USAGE);
        }
    };
    process::run(program, async |process| {
        let stop_delay = config.process.stop_delay;
        let client = connect(API_SERVER_TIME).await?;
        let service = Service::start(config, pages, client, getrandom::u64()?, process)?;
        process.finish(stop_delay, service.serve()).await
    })
}

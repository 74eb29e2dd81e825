//! `water-ingest`: loads files into the database, the only way in.
//!
//! Problems go to standard error, one a line; one JSON summary goes to standard output (of
//! `provenance`, a table where that is a terminal). It exits with 0 done, 1 infrastructure, 2 bad
//! data, 3 refused by a guard, 64 wrong usage.

mod arguments;
mod as_of;
mod cell;
mod command;
mod config;
mod connection;
mod dataset;
mod delete;
mod demo;
mod encoding;
mod failure;
mod load;
mod problem;
mod provenance;
mod remote;
mod report;
mod shown;
mod source;
mod summary;
mod table;
mod verify;
mod windows_1252;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use water_domain::Timestamp;
use water_runtime::settings::EXIT_USAGE;

use crate::arguments::Arguments;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
                _ => EXIT_USAGE,
            };
            // A failure of standard error itself cannot be reported.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let form = arguments.command.report();
    match command::run(arguments.command, now()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(form);
            failure.exit_code()
        }
    }
}

/// The moment at which the command began.
fn now() -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "the process meets the world here"
    )]
    let now = std::time::SystemTime::now();
    let since_epoch = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_epoch.as_millis())
        .ok()
        .and_then(Timestamp::from_millis)
        .expect("the clock is between 1970 and the year 9999")
}

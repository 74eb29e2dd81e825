//! Log of a process: one JSON object a line on standard error, filtered by `WATER_LOG`.
//!
//! Lines go through [`Lines`], so that a slow reader of the log never holds up a request.

mod json;
mod lines;
mod moment;

use std::error::Error;
use std::panic::PanicHookInfo;
use std::str::FromStr;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt;

use crate::{Invalid, Settings};
use json::Json;
pub use lines::Lines;

const VARIABLE: &str = "WATER_LOG";
const DEFAULT_FILTER: &str = "info";
/// kube's client warns of an answer that it cannot decode with all of it, a key's Secret too: no level shows that.
const WITHOUT_ANSWERS: &str = "kube_client::client=error";

/// Keeps the log open; what was written is flushed when it is dropped, at the end of `main`.
#[derive(Debug)]
#[must_use = "the log ends when this is dropped"]
pub struct Telemetry(Lines);

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Starts the log, first in `main`. A bad `WATER_LOG` logs as by default until the settings are
/// read, which then refuse it.
pub fn init() -> Telemetry {
    let lines = Lines::start(std::io::stderr());
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let started = subscriber(&wanted, lines.clone())
        .or_else(|_| subscriber(DEFAULT_FILTER, lines.clone()))
        .map(tracing::subscriber::set_global_default);
    if !matches!(started, Ok(Ok(()))) {
        eprintln!("telemetry was started twice in one process; the first one stays");
    }
    std::panic::set_hook(Box::new(log_panic));
    Telemetry(lines)
}

/// Logs a panic like any other line, with its place.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic
        .payload_as_str()
        .unwrap_or("a panic without a message");
    let place = panic.location().map(ToString::to_string);
    tracing::error!(place, "panicked: {message}");
}

/// Makes a log with a filter as in `WATER_LOG`, for [`init`] and for tests of what is logged.
pub fn subscriber(filter: &str, lines: Lines) -> Result<impl Subscriber + Send + Sync, ParseError> {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(filter)?
        .add_directive(WITHOUT_ANSWERS.parse()?);
    Ok(tracing_subscriber::registry()
        .with(filter)
        .with(Json(lines)))
}

/// Makes `WATER_LOG` one of the settings.
pub(crate) fn declare(settings: &mut Settings) -> Result<(), Invalid> {
    let meaning = "a tracing filter: a level, or levels by target, such as info,water_gate=debug";
    settings
        .or::<Filter>(VARIABLE, DEFAULT_FILTER, meaning)
        .map(drop)
}

struct Filter;

impl FromStr for Filter {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        EnvFilter::try_new(text).map(|_| Self)
    }
}

/// Joins an error and its causes in one text: `cannot load: connection refused: os error 111`.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        // Some libraries repeat their cause in their own text.
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot load the snapshot")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_chain_has_every_cause() {
        let error = Outer(std::io::Error::other("connection refused"));
        assert_eq!(
            chain(&error),
            "cannot load the snapshot: connection refused"
        );
    }
}

//! The connection to the database, as the environment sets it.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use water_database::writer::{ConnectError, Writer};
use water_domain::Fault;

use crate::config::{self, Postgres};
use crate::failure::Failure;
use crate::report::{self, Form};

/// Connects as the environment says. Waiting for another load is reported in this form.
pub async fn connect(form: Form) -> Result<Writer, Failure> {
    let postgres: Postgres = config::from_environment().map_err(Failure::Settings)?;
    let writer = Writer::connect(postgres.url.expose(), postgres.authority()).await?;
    Ok(writer.when_waiting(match form {
        Form::Text => |dataset| waiting(Form::Text, dataset),
        Form::Json => |dataset| waiting(Form::Json, dataset),
    }))
}

fn waiting(form: Form, dataset: &str) {
    let text = format!("waiting for another load of {dataset} to end, at most 10 minutes");
    report::note(form, None, &text);
}

/// Interval between two checks of the schema.
const SCHEMA_PAUSE: Duration = Duration::from_secs(1);

/// Connects likewise, once the schema has what this version writes: a load is installed together with the operator,
/// which migrates.
pub async fn connect_to_schema(form: Form, seconds: u32) -> Result<Writer, Failure> {
    let end = Instant::now() + Duration::from_secs(seconds.into());
    let mut told = false;
    loop {
        let ready = match connect(form).await {
            Ok(writer) => match writer.has_schema().await {
                Ok(true) => return Ok(writer),
                Ok(false) => Ok(()),
                Err(error) => Err(Failure::Database(error)),
            },
            Err(failure) => Err(failure),
        };
        let passing = match &ready {
            Ok(()) => true,
            Err(Failure::Database(error) | Failure::Connect(ConnectError::Database(error))) => {
                error.is_transient()
            }
            Err(_) => false,
        };
        if !passing || Instant::now() >= end {
            return Err(ready.err().unwrap_or(Failure::Unmigrated));
        }
        if !told {
            report::note(form, None, "waiting for the schema to be migrated");
            told = true;
        }
        sleep(SCHEMA_PAUSE).await;
    }
}

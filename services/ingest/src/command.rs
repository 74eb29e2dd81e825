//! What each command does.

use std::io::{self, Write};

use serde_json::json;
use water_database::migrations;
use water_database::writer::Writer;
use water_domain::Timestamp;

use crate::arguments::{
    CheckArguments, Command, LoadArguments, ProvenanceArguments, PurgeArguments,
};
use crate::config::Postgres;
use crate::demo;
use crate::failure::{self, Failure};
use crate::load::{self, Job};
use crate::provenance;
use crate::source::Source;
use crate::summary;

/// Runs a command that begins at `now`.
pub async fn run(command: Command, now: Timestamp) -> Result<(), Failure> {
    match command {
        Command::BootstrapSql => {
            let script = migrations::BOOTSTRAP_SQL.as_bytes();
            io::stdout().write_all(script).map_err(Failure::Output)
        }
        Command::Migrate => migrate().await,
        Command::Check(arguments) => check(&arguments, now),
        Command::Load(arguments) => load(arguments, now).await,
        Command::Demo(arguments) => demo::run(arguments, now).await,
        Command::Purge(arguments) => purge(arguments).await,
        Command::Provenance(arguments) => list(arguments).await,
    }
}

async fn migrate() -> Result<(), Failure> {
    let postgres = Postgres::from_environment()?;
    let applied = migrations::migrate(postgres.url.expose(), postgres.ca_file.as_deref()).await?;
    summary::print(&json!({ "applied": applied }))
}

fn check(arguments: &CheckArguments, now: Timestamp) -> Result<(), Failure> {
    let job = Job::to_check(arguments, now)?;
    let source = Source::open(&arguments.file).map_err(Failure::reading(&arguments.file))?;
    let (checked, result) = load::check(source, &job);
    summary::print(&checked)?;
    result
}

async fn load(arguments: LoadArguments, now: Timestamp) -> Result<(), Failure> {
    let job = Job::of(&arguments, now)?;
    let mut writer = connect().await?;
    let source = Source::open(&arguments.file).map_err(Failure::reading(&arguments.file))?;
    let (summary, result) = load::run(&mut writer, source, job).await;
    summary::print(&summary)?;
    result
}

async fn purge(arguments: PurgeArguments) -> Result<(), Failure> {
    let PurgeArguments {
        account,
        dry_run,
        lift,
        purged_by,
    } = arguments;
    let mut writer = connect().await?;
    if lift {
        let lifted = writer.lift_purge(&account).await?;
        return summary::print(&json!({ "account": account, "lifted": lifted }));
    }
    let purged = writer.purge(&account, &purged_by, dry_run).await;
    let purged = purged.map_err(|error| failure::of_load(error, account.as_str()))?;
    summary::print(&json!({
        "account": account,
        "analyses": purged.analyses,
        "audits": purged.audits,
        "dryRun": dry_run,
    }))
}

async fn list(arguments: ProvenanceArguments) -> Result<(), Failure> {
    provenance::print(&connect().await?.provenance(arguments.limit).await?)
}

/// A connection as the environment says.
pub async fn connect() -> Result<Writer, Failure> {
    let postgres = Postgres::from_environment()?;
    let writer = Writer::connect(postgres.url.expose(), postgres.ca_file.as_deref()).await?;
    Ok(writer.when_waiting(|dataset| {
        eprintln!("waiting for another load of {dataset} to end, at most 10 minutes");
    }))
}

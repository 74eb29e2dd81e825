//! Execution of each command.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use clap::CommandFactory;
use serde_json::json;
use water_database::migrations;
use water_domain::Timestamp;
use water_runtime::telemetry::chain;

use crate::arguments::{
    Arguments, CheckArguments, Command, DeleteArguments, LoadArguments, ProvenanceArguments,
    PurgeArguments, VerifyArguments,
};
use crate::config::{self, Postgres};
use crate::connection::{connect, connect_to_schema};
use crate::delete::{self, Ids};
use crate::failure::{self, Failure};
use crate::load::{self, Job};
use crate::remote::{self, Address, FetchError};
use crate::report::{self, Form};
use crate::source::Source;
use crate::{demo, provenance, summary, verify};

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
        Command::Delete(arguments) => delete(&arguments, now).await,
        Command::Purge(arguments) => purge(arguments).await,
        Command::NewEpoch => new_epoch().await,
        Command::Verify(arguments) => verify(&arguments).await,
        Command::Provenance(arguments) => list(arguments).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(
                shell,
                &mut Arguments::command(),
                "water-ingest",
                &mut script,
            );
            io::stdout().write_all(&script).map_err(Failure::Output)
        }
    }
}

async fn migrate() -> Result<(), Failure> {
    let postgres: Postgres = config::from_environment().map_err(Failure::Settings)?;
    let applied = migrations::migrate(postgres.url.expose(), postgres.authority()).await?;
    summary::print(&json!({ "applied": applied }))
}

fn check(arguments: &CheckArguments, now: Timestamp) -> Result<(), Failure> {
    let job = Job::to_check(arguments, now)?;
    let source = open(&arguments.file, arguments.report.report)?;
    let (checked, result) = load::check(source, &job);
    summary::print(&checked)?;
    result
}

async fn load(arguments: LoadArguments, now: Timestamp) -> Result<(), Failure> {
    let job = Job::from_arguments(&arguments, now)?;
    let form = arguments.report.report;
    let mut writer = match arguments.wait_for_schema {
        None => connect(form).await?,
        Some(seconds) => connect_to_schema(form, seconds).await?,
    };
    let source = open(&arguments.file, form)?;
    let (summary, result) = load::run(&mut writer, source, job).await;
    writer.close().await;
    summary::print(&summary)?;
    result
}

async fn delete(arguments: &DeleteArguments, now: Timestamp) -> Result<(), Failure> {
    let file = arguments.file.as_deref();
    let file = file.map(|file| open(file, Form::Text)).transpose()?;
    let ids = Ids::read(arguments, file)?;
    let mut writer = connect(Form::Text).await?;
    let result = delete::run(&mut writer, ids, arguments, now).await;
    writer.close().await;
    result
}

async fn purge(arguments: PurgeArguments) -> Result<(), Failure> {
    let PurgeArguments {
        account,
        dry_run,
        lift,
        purged_by,
    } = arguments;
    let mut writer = connect(Form::Text).await?;
    if lift {
        let lifted = writer.lift_purge(&account).await?;
        return summary::print(&json!({ "account": account, "lifted": lifted }));
    }
    let purged = writer.purge(&account, &purged_by, dry_run).await;
    writer.close().await;
    let purged = purged.map_err(|error| failure::of_load(error, account.as_str()))?;
    summary::print(&json!({
        "account": account,
        "analyses": purged.analyses,
        "audits": purged.audits,
        "dryRun": dry_run,
    }))
}

async fn new_epoch() -> Result<(), Failure> {
    let mut writer = connect(Form::Text).await?;
    let begun = writer.begin_epoch().await;
    writer.close().await;
    let begun = begun.map_err(|error| failure::of_load(error, "new-epoch"))?;
    summary::print(&json!(BTreeMap::from(begun)))
}

async fn verify(arguments: &VerifyArguments) -> Result<(), Failure> {
    verify::run(&mut connect(arguments.report).await?, arguments).await
}

async fn list(arguments: ProvenanceArguments) -> Result<(), Failure> {
    let mut writer = connect(Form::Text).await?;
    provenance::print(&writer.provenance(arguments.limit).await?)
}

/// Opens a file, standard input, or the answer of an `https://` address, which may take several attempts.
fn open(argument: &Path, form: Form) -> Result<Source, Failure> {
    let Some(address) = Address::from_argument(argument) else {
        return Source::open(argument).map_err(Failure::reading(argument));
    };
    let address = address?;
    let settings = config::from_environment().map_err(Failure::Settings)?;
    let pause = |error: &FetchError, length: Duration| {
        let why = format!("{}: trying again in {} s", chain(error), length.as_secs());
        report::note(form, Some(&address.name), &why);
        thread::sleep(length);
    };
    let fetched = remote::fetch(&address, &settings, pause);
    let fetched = fetched.map_err(|source| Failure::Fetch {
        address: address.label.clone(),
        source,
    })?;
    let source = Source::stream(&address.name, fetched.length, fetched.bytes);
    Ok(source.labelled(address.label))
}

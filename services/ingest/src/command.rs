//! What each command does.

use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use serde_json::json;
use water_database::migrations;
use water_domain::Timestamp;

use crate::arguments::{
    Arguments, CheckArguments, Command, DeleteArguments, LoadArguments, ProvenanceArguments,
    PurgeArguments, VerifyArguments,
};
use crate::config::{self, Postgres};
use crate::connection::{connect, connect_to_schema};
use crate::delete::{self, Ids};
use crate::failure::{self, Failure};
use crate::load::{self, Job};
use crate::remote::{self, Address};
use crate::report::Form;
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
        Command::Delete(arguments) => delete(&arguments).await,
        Command::Purge(arguments) => purge(arguments).await,
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
    let source = open(&arguments.file)?;
    let (checked, result) = load::check(source, &job);
    summary::print(&checked)?;
    result
}

async fn load(arguments: LoadArguments, now: Timestamp) -> Result<(), Failure> {
    let job = Job::of(&arguments, now)?;
    let form = arguments.report.report;
    let mut writer = match arguments.wait_for_schema {
        None => connect(form).await?,
        Some(seconds) => connect_to_schema(form, seconds).await?,
    };
    let source = open(&arguments.file)?;
    let (summary, result) = load::run(&mut writer, source, job).await;
    writer.close().await;
    summary::print(&summary)?;
    result
}

async fn delete(arguments: &DeleteArguments) -> Result<(), Failure> {
    let ids = Ids::of(arguments)?;
    let mut writer = connect(Form::Text).await?;
    let result = delete::run(&mut writer, ids, arguments).await;
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

async fn verify(arguments: &VerifyArguments) -> Result<(), Failure> {
    verify::run(&mut connect(arguments.report).await?, arguments).await
}

async fn list(arguments: ProvenanceArguments) -> Result<(), Failure> {
    let mut writer = connect(Form::Text).await?;
    provenance::print(&writer.provenance(arguments.limit).await?)
}

/// A file, standard input, or what an `https://` address answers.
fn open(argument: &Path) -> Result<Source, Failure> {
    let Some(address) = Address::of(argument) else {
        return Source::open(argument).map_err(Failure::reading(argument));
    };
    let address = address?;
    let settings = config::from_environment().map_err(Failure::Settings)?;
    let fetched = remote::fetch(&address, &settings).map_err(|source| Failure::Fetch {
        address: address.label.clone(),
        source,
    })?;
    let source = Source::stream(&address.name, fetched.length, fetched.bytes);
    Ok(source.labelled(address.label))
}

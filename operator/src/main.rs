//! The operator's command line; without a subcommand it runs.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use water_keystore::{Instance, PasswordHash, redis_acl};
use water_operator::config::OperatorConfig;
use water_operator::{adopt, client, crd, release, run};
use water_runtime::{Program, Settings, process, program, settings, telemetry};

/// Issues and revokes the API's keys, and rolls out its services.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controllers; the default.
    Run,
    /// The custom resource definitions.
    #[command(subcommand)]
    Crd(Crd),
    /// Print the lines of a Redis ACL file for the users of the operator, the gate and, if its
    /// password is given, the portal.
    RedisAcl {
        /// `<namespace>.<name>` of the WaterDataApi.
        #[arg(long, default_value = "water.water-data")]
        instance: Instance,
        /// The user of operator-url.
        #[arg(long, default_value = "water-operator")]
        operator_user: String,
        /// SHA-256 of its password, as 64 lower-case hexadecimal digits.
        #[arg(long)]
        operator_password_hash: PasswordHash,
        /// The user of gate-url.
        #[arg(long, default_value = "water-gate")]
        gate_user: String,
        /// SHA-256 of its password, as 64 lower-case hexadecimal digits.
        #[arg(long)]
        gate_password_hash: PasswordHash,
        /// The user of portal-url.
        #[arg(long, default_value = "water-portal")]
        portal_user: String,
        /// SHA-256 of its password, as 64 lower-case hexadecimal digits; left out: there is no portal.
        #[arg(long)]
        portal_password_hash: Option<PasswordHash>,
    },
    /// Have ApiKeys take over the Secrets that were restored with them from a backup.
    Adopt {
        /// Take only ApiKeys of this namespace.
        #[arg(long)]
        namespace: Option<String>,
        /// The backup's ApiKeys with their status, as YAML or JSON: only keys that they name are adopted. Without it the
        /// restored Secrets are believed.
        #[arg(long)]
        backup: Option<PathBuf>,
        /// Report what would be adopted, and change nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Release ApiKeys when no operator runs that could revoke them.
    Release {
        /// Release all ApiKeys; there is no other choice, and this one has to be meant.
        #[arg(long, required = true)]
        all: bool,
        /// Release only ApiKeys of this namespace.
        #[arg(long)]
        namespace: Option<String>,
    },
}

#[derive(Subcommand)]
enum Crd {
    /// Write the definitions into directories, one file each.
    Generate {
        /// A directory that exists; may be repeated.
        #[arg(long, required = true)]
        directory: Vec<PathBuf>,
    },
    /// Print the definitions.
    Print,
    /// Replace the definitions in the cluster and wait until it serves them.
    Apply,
}

fn main() -> ExitCode {
    let program = program!();
    let _telemetry = telemetry::init();
    match arguments(&program).command.unwrap_or(Command::Run) {
        Command::Run => serve(program),
        Command::Crd(Crd::Generate { directory }) => told(crd::generate(&directory)),
        Command::Crd(Crd::Print) => told(crd::print().map(|text| print!("{text}"))),
        Command::Crd(Crd::Apply) => process::run(program, async |_| {
            Ok(crd::apply(client::connect().await?).await?)
        }),
        Command::RedisAcl {
            instance,
            operator_user,
            operator_password_hash,
            gate_user,
            gate_password_hash,
            portal_user,
            portal_password_hash,
        } => {
            let operator = (operator_user.as_str(), &operator_password_hash);
            let gate = (gate_user.as_str(), &gate_password_hash);
            let portal = portal_password_hash.as_ref();
            let portal = portal.map(|hash| (portal_user.as_str(), hash));
            println!(
                "{}",
                redis_acl(&instance, operator, gate, portal).join("\n")
            );
            ExitCode::SUCCESS
        }
        Command::Adopt {
            namespace,
            backup,
            dry_run,
        } => process::run(program, async |_| {
            let read = |file: &PathBuf| adopt::Backup::parse(&fs::read_to_string(file)?);
            let backup = backup.as_ref().map(read).transpose()?;
            let client = client::connect().await?;
            let namespace = namespace.as_deref();
            let adoption = adopt::all(&client, namespace, backup.as_ref(), dry_run).await?;
            adoption.asked.iter().for_each(|asked| println!("{asked}"));
            println!(
                "{} ApiKeys {} the keys in their restored Secrets",
                adoption.asked.len(),
                if dry_run { "would ask for" } else { "ask for" }
            );
            match adoption.left.len() {
                0 => Ok(()),
                left => Err(format!(
                    "{left} not adopted:
{}",
                    adoption.left.join(
                        "
"
                    )
                )
                .into()),
            }
        }),
        Command::Release { all: _, namespace } => process::run(program, async |_| {
            let client = client::connect().await?;
            let identity = format!("release-{:08x}", getrandom::u32()?);
            let released = release::all(&client, namespace.as_deref(), &identity).await?;
            println!(
                "{} ApiKeys freed; no gate accepts their keys, and an operator that runs again publishes those of ApiKeys \
                 that still exist",
                released.freed
            );
            match released.kept.len() {
                0 => Ok(()),
                kept => {
                    Err(format!("{kept} ApiKeys not freed:\n{}", released.kept.join("\n")).into())
                }
            }
        }),
    }
}

/// The arguments; the help also lists the settings.
fn arguments(program: &Program) -> Arguments {
    let settings = settings::help::<OperatorConfig>(program);
    let settings = settings
        .split_once("\n\n")
        .map_or("", |(_, settings)| settings)
        .to_owned();
    let command = Arguments::command()
        .name(program.name)
        .version(program.version)
        .after_help(settings);
    Arguments::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

fn serve(program: Program) -> ExitCode {
    match settings::from_settings::<OperatorConfig>(&mut Settings::from_environment()) {
        Ok(config) => process::run(program, async |process| run::run(config, process).await),
        Err(problems) => {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            ExitCode::from(settings::EXIT_USAGE)
        }
    }
}

fn told(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

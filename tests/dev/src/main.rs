//! `cargo dev`: a real single-node Kubernetes cluster on this machine, with the product on it.

mod accounts;
mod background;
mod bench;
mod binaries;
mod browser;
mod certificates;
mod cluster;
mod clusters;
mod confidential;
mod control_plane;
mod credentials;
mod data;
mod disk;
mod down;
mod environment;
mod faults;
mod identity;
mod images;
mod ingress;
mod init;
mod interruption;
mod leftovers;
mod namespace;
mod node;
mod node_js;
mod packages;
mod portal;
mod process;
mod product;
mod programs;
mod progress;
mod project;
mod searched;
mod status;
mod stores;
mod suite;
mod supervisor;
mod test;
mod test_programs;
mod unused;
mod up;
mod wait;
mod web;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::cluster::Cluster;
use crate::clusters::Clusters;

/// A real single-node Kubernetes cluster on this machine, with Water Data API on it.
#[derive(Parser)]
#[command(bin_name = "cargo dev")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start the cluster, or bring a running one up to date with the sources.
    Up,
    /// Stop the cluster and leave nothing of it behind.
    Down {
        /// Leave the data of PostgreSQL and Redis for the next `up`.
        #[arg(long)]
        keep_data: bool,
    },
    /// Say what runs, and what does not.
    Status,
    /// Print `export` lines for a shell: URLs, keys and KUBECONFIG. Use: eval "$(cargo dev env)"
    Env,
    /// Check and build the portal's pages, if their sources have changed.
    Web,
    /// Build images that report another version, for a rollout by hand, and put them into the
    /// cluster's registry.
    Images {
        /// What the binaries report and the images are tagged with. Left out: WATER_NEXT_TAG of
        /// `cargo dev env`.
        version: Option<String>,
    },
    /// Run every check and every test, on a cluster of its own.
    Test {
        /// Run only the parts whose name contains this, such as "whole-system".
        #[arg(long)]
        only: Option<String>,
        /// Run the faults that take long, too, and write the report of all faults, unless only some
        /// parts run.
        #[arg(long)]
        faults: bool,
    },
    /// Compare the product with well-known programs that do the same work, on this machine, and
    /// record the result.
    Bench {
        /// What is measured. Left out: everything.
        part: Option<bench::Part>,
    },
    /// Run kubectl on the cluster.
    Kubectl {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run helm on the cluster.
    Helm {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Process 1 of the cluster's namespaces.
    #[command(hide = true)]
    Init {
        #[arg(long)]
        number: u8,
        #[arg(long)]
        folder: PathBuf,
    },
    /// What keeps the cluster's programs running, inside its namespaces.
    #[command(hide = true)]
    Supervise {
        #[arg(long)]
        number: u8,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Up => up::run(),
        Command::Down { keep_data } => down::run(keep_data),
        Command::Status => status::print(),
        Command::Env => environment::print(),
        Command::Web => web::run(),
        Command::Images { version } => up::images_of(version),
        Command::Test { only, faults } => test::run(only.as_deref(), faults),
        Command::Bench { part } => bench::run(part),
        Command::Kubectl { arguments } => pass_through(Cluster::kubectl, &arguments),
        Command::Helm { arguments } => pass_through(Cluster::helm, &arguments),
        Command::Init { number, folder } => init::run_as_process_1(&Cluster { number, folder }),
        Command::Supervise { number } => init::supervise(&Cluster {
            number,
            folder: PathBuf::from(Cluster::FILES),
        }),
    }
}

/// Becomes `program` on this checkout's cluster.
fn pass_through(
    program: fn(&Cluster) -> std::process::Command,
    arguments: &[OsString],
) -> Result<()> {
    let cluster = Clusters::of_user()?.running_development()?;
    Err(program(&cluster).args(arguments).exec()).context("cannot start the program")
}

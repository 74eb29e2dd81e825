//! `cargo dev`: a real single-node Kubernetes cluster on this machine, with the product on it.

mod accounts;
mod background;
mod bench;
mod binaries;
mod browser;
mod certificates;
mod clients;
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
mod marks;
mod namespace;
mod node;
mod node_js;
mod packages;
mod portal;
mod process;
mod product;
mod profile;
mod programs;
mod progress;
mod project;
#[cfg(test)]
mod rules;
mod stalls;
mod status;
mod stores;
mod stress;
mod suites;
mod supervisor;
mod test;
mod timeline;
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
use crate::suites::Tier;

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
    /// Install the generators of API clients, for the whole-system tests on a running cluster.
    Clients,
    /// Build images that report another version, for a rollout by hand, and put them into the
    /// cluster's registry.
    Images {
        /// Version that the binaries report and the images are tagged with. Left out: the second version
        /// in WATER_VERSIONS of `cargo dev env`.
        version: Option<String>,
    },
    /// Run every check and the tests that every change has to pass, on a separate cluster. The tables and the
    /// summary stay in target/test-report.txt.
    Test {
        /// Run only the parts whose name contains this, such as "whole-system"; or, where no part has it, the
        /// tests whose path contains it, such as "gate it limits". Their report is target/test-report-only.txt.
        #[arg(long)]
        only: Option<String>,
        /// Run the tests that take minutes or measure time, too, and record that all have passed, unless only
        /// some tests run.
        #[arg(long)]
        long: bool,
        /// Run all of `--long`, faults in their longer form, and write the report of all faults, unless only
        /// some tests run.
        #[arg(long)]
        faults: bool,
        /// Print the times of the slowest compilations, too.
        #[arg(long)]
        profile: bool,
        /// Keep a core busy beside the run, and all of them for five seconds every two minutes: a busy machine must
        /// not fail the tests.
        #[arg(long)]
        stress: bool,
    },
    /// Compare the product with well-known programs that do the same work, on this machine, and
    /// record the result.
    Bench {
        /// Part that is measured. Left out: every part.
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
        folder: PathBuf,
    },
    /// The supervisor of the cluster's programs, inside its namespaces.
    #[command(hide = true)]
    Supervise,
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
        Command::Clients => clients::run(),
        Command::Images { version } => up::images_of(version),
        Command::Test {
            only,
            long,
            faults,
            profile,
            stress,
        } => test::run(&test::Asked {
            only: only.as_deref(),
            tier: if faults {
                Tier::Faults
            } else if long {
                Tier::Long
            } else {
                Tier::First
            },
            profile,
            stress,
        }),
        Command::Bench { part } => bench::run(part),
        Command::Kubectl { arguments } => pass_through(Cluster::kubectl, &arguments),
        Command::Helm { arguments } => pass_through(Cluster::helm, &arguments),
        Command::Init { folder } => init::run_as_process_1(&Cluster { folder }),
        Command::Supervise => init::supervise(),
    }
}

/// Becomes `program` on the development cluster.
fn pass_through(
    program: fn(&Cluster) -> std::process::Command,
    arguments: &[OsString],
) -> Result<()> {
    let cluster = Clusters::of_user()?.running_development()?;
    Err(program(&cluster).args(arguments).exec()).context("cannot start the program")
}

//! `water-bench`: the product compared with well-known programs that do the same work, on the same machine, in
//! the same minutes. Absolute times mean nothing on a shared machine; what is judged is a ratio within one run,
//! or a bound that leaves room. `cargo dev bench` builds and runs it.
//!
//! A part of it (`gate`, `operator`, `history`, `departements`, `ingest`) starts its programs, lets its variants take turns (`rounds`)
//! under a load (`load`), and makes rows of a report of what that cost.

mod cpu;
mod database;
mod departements;
mod gate;
mod history;
mod ingest;
mod keys;
mod load;
mod nginx;
mod operator;
mod programs;
mod report;
mod rounds;
mod signed;
mod store;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};

/// Compare the product with well-known programs that do the same work, on this machine.
#[derive(Parser)]
struct Arguments {
    /// Part of the product that is measured.
    part: Part,
    /// Prove only that everything that is compared runs and answers right: one short round, few keys, nothing
    /// judged and nothing recorded.
    #[arg(long)]
    smoke: bool,
    /// Number of ApiKeys that the operator is measured with.
    #[arg(long, default_value_t = 10_000)]
    keys: usize,
    /// Send only this variant's load to the gate for half a minute, for a profiler, and print the process
    /// that it goes to, such as "gate".
    #[arg(long, conflicts_with = "smoke")]
    profile: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// The gate compared with nginx, and with nginx, Lua and Redis.
    Gate,
    /// The operator with many ApiKeys.
    Operator,
    /// Pages of a history compared with pgbench.
    History,
    /// Answers about départements compared with nginx that serves them from files.
    Departements,
    /// Loads of a history compared with psql.
    Ingest,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs on one thread: the load generator leaves the other cores to what is measured.
fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let smoke = arguments.smoke;
        if let Some(variant) = &arguments.profile {
            return match arguments.part {
                Part::Gate => gate::profile(variant).await,
                _ => bail!("only variants of the gate can be profiled"),
            };
        }
        let (name, report) = match arguments.part {
            Part::Gate => ("gate", gate::measure(smoke).await?),
            Part::Operator => ("operator", operator::measure(smoke, arguments.keys).await?),
            Part::History => ("history", history::measure(smoke).await?),
            Part::Departements => ("departements", departements::measure(smoke).await?),
            Part::Ingest => ("ingest", ingest::measure(smoke).await?),
        };
        println!("{report}");
        if smoke {
            report.counts()
        } else {
            report.record(name)
        }
    })
}

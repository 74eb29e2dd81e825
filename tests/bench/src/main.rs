//! `water-bench`: the product side by side with well-known programs that do the same work, on the
//! same machine, in the same minutes. Absolute times say nothing on a shared machine; what is judged
//! is a ratio within one run, or a bound that leaves room. `cargo dev bench` builds and runs it.

mod binary;
mod chart;
mod cores;
mod cpu;
mod database;
mod departements;
mod gate;
mod history;
mod ingest;
mod keys;
mod load;
mod machine;
mod nginx;
mod operator;
mod paced;
mod parts;
mod portal;
mod product;
mod report;
mod rounds;
mod server;
mod spread;
mod store;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use parts::Contestant;
use report::Report;

/// As the gate takes its memory: its parts are compared here.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compare the product with well-known programs that do the same work, on this machine.
#[derive(Parser)]
struct Arguments {
    /// What is measured.
    part: Part,
    /// Only prove that everything that is compared runs and answers right: one short round, few
    /// keys, nothing judged and nothing recorded.
    #[arg(long)]
    smoke: bool,
    /// How many ApiKeys the operator is measured with.
    #[arg(long, default_value_t = 10_000)]
    keys: usize,
    /// Only send this variant's load for half a minute, for a profiler, and say which process it
    /// goes to, such as "gate".
    #[arg(long, conflicts_with = "smoke")]
    profile: Option<String>,
    /// Be one of those that the parts are compared with, told what to do by standard input.
    #[arg(long, hide = true)]
    contestant: Option<Contestant>,
    /// Where what it needs is.
    #[arg(hide = true)]
    with: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// The gate beside nginx, and beside nginx with Lua and Redis.
    Gate,
    /// The operator with many ApiKeys.
    Operator,
    /// The parts that are written by hand beside the libraries that do the same.
    Parts,
    /// Pages of a history beside pgbench.
    History,
    /// A load of a history beside `psql \copy`.
    Ingest,
    /// The answers from memory beside nginx with the same files.
    Departements,
    /// The portal's pages beside nginx, its list of keys beside the API server's, and its memory.
    Portal,
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

/// One thread: the load generator leaves the other cores to what is measured.
fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if let Some(contestant) = arguments.contestant {
        return runtime.block_on(parts::compete(contestant, &arguments.with));
    }
    runtime.block_on(async {
        match (arguments.part, arguments.smoke, &arguments.profile) {
            (Part::Gate, true, _) => gate::smoke().await,
            (Part::Gate, _, Some(variant)) => gate::profile(variant).await,
            (Part::Gate, ..) => record("gate", gate::measure().await?),
            (Part::Operator, true, _) => operator::smoke().await,
            (Part::Operator, _, Some(_)) => bail!("the operator has no load to be profiled with"),
            (Part::Operator, ..) => record("operator", operator::measure(arguments.keys).await?),
            (Part::Parts, true, _) => parts::smoke().await,
            (Part::Parts, _, Some(contestant)) => parts::profile(contestant).await,
            (Part::Parts, ..) => record("parts", parts::measure().await?),
            (Part::Ingest | Part::Departements | Part::Portal, false, Some(_)) => {
                bail!("only variants of gate, parts and history can be profiled")
            }
            (Part::History, true, _) => history::smoke().await,
            (Part::History, _, Some(variant)) => history::profile(variant).await,
            (Part::History, ..) => record("history", history::measure().await?),
            (Part::Ingest, true, _) => ingest::smoke().await,
            (Part::Ingest, ..) => record("ingest", ingest::measure().await?),
            (Part::Departements, true, _) => departements::smoke().await,
            (Part::Departements, ..) => record("departements", departements::measure().await?),
            (Part::Portal, true, _) => portal::smoke().await,
            (Part::Portal, ..) => record("portal", portal::measure().await?),
        }
    })
}

fn record(part: &str, report: Report) -> Result<()> {
    println!("{report}");
    report.record(part)
}

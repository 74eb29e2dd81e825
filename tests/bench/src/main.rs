//! `water-bench`: the product side by side with well-known programs that do the same work, on the
//! same machine, in the same minutes. Absolute times say nothing on a shared machine; every figure
//! that is judged is a ratio within one run. `cargo dev bench` builds and runs it.

mod cpu;
mod gate;
mod keys;
mod load;
mod machine;
mod nginx;
mod report;
mod rounds;
mod spread;
mod store;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

/// Compare the product with well-known programs that do the same work, on this machine.
#[derive(Parser)]
struct Arguments {
    /// What is measured.
    part: Part,
    /// Only prove that everything that is compared runs and answers right: one short round, few
    /// keys, nothing judged and nothing recorded.
    #[arg(long)]
    smoke: bool,
    /// Only send this variant's load for half a minute, for a profiler, and say which process it
    /// goes to, such as "gate".
    #[arg(long, conflicts_with = "smoke")]
    profile: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// The gate beside nginx, and beside nginx with Lua and Redis.
    Gate,
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
    let Part::Gate = arguments.part;
    if arguments.smoke {
        return runtime.block_on(gate::smoke());
    }
    if let Some(variant) = &arguments.profile {
        return runtime.block_on(gate::profile(variant));
    }
    let report = runtime.block_on(gate::measure())?;
    println!("{report}");
    report.record("gate")
}

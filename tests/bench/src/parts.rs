//! The parts of the product that are written by hand, each beside the library that does the same:
//! in one run, in turns, so that only ratios within a round count.

mod accept;
mod child;
mod contestant;
mod directory;
mod exchange;
mod limiter;
mod log;
mod orders;
mod rows;
mod site;
mod stop;

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::load::Slice;
use crate::machine;
use crate::report::{Report, Row};
use crate::rounds::take_turns;
pub use contestant::Contestant;
use site::Site;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Scale {
    rounds: usize,
    slice: Slice,
    /// Keys in each directory.
    keys: usize,
}

/// Some five minutes on two cores.
const FULL: Scale = Scale {
    rounds: 7,
    slice: Slice {
        warm_up: Duration::from_millis(400),
        counted: Duration::from_secs(2),
    },
    keys: 1_000_000,
};

const SMOKE: Scale = Scale {
    rounds: 1,
    slice: Slice {
        warm_up: Duration::from_millis(20),
        counted: Duration::from_millis(60),
    },
    keys: 1_000,
};

/// For a profiler.
const LONG: Slice = Slice {
    warm_up: Duration::from_secs(2),
    counted: Duration::from_secs(30),
};

/// The libraries whose versions a result tells.
const LIBRARIES: [&str; 6] = [
    "hashbrown",
    "hyper",
    "hyper-util",
    "tracing-appender",
    "tracing-subscriber",
    "warp",
];

/// Proves that every contestant runs and answers right.
pub async fn smoke() -> Result<()> {
    let rows = compare(SMOKE).await?;
    let doubts: Vec<&str> = rows.iter().filter_map(Row::doubt).collect();
    ensure!(doubts.is_empty(), "{}", doubts.join("\n"));
    println!("everything that the parts are compared with runs and answers right");
    Ok(())
}

/// Measures everything.
pub async fn measure() -> Result<Report> {
    let rows = compare(FULL).await?;
    Ok(Report::new(rows)?.with_versions(machine::locked(&LIBRARIES)))
}

/// Gives one contestant a long turn, for a profiler.
pub async fn profile(name: &str) -> Result<()> {
    let mut site = Site::start(FULL.keys).await?;
    let names = site.names();
    let index = names.iter().position(|found| *found == name);
    let index = index.with_context(|| format!("the contestants are {}", names.join("; ")))?;
    eprintln!("process {}", site.entrants[index].process());
    let turn = site.entrants[index].turn(LONG).await?;
    println!("{} {}", turn.cost, turn.counted);
    Ok(())
}

/// The child's side of the comparison: see [`Contestant`].
pub async fn compete(contestant: Contestant, with: &[String]) -> Result<()> {
    contestant.compete(with).await
}

async fn compare(scale: Scale) -> Result<Vec<Row>> {
    let mut site = Site::start(scale.keys).await?;
    let names = site.names();
    let turn = async |index: usize| site.entrants[index].turn(scale.slice).await;
    let rounds = take_turns(&names, scale.rounds, turn).await;
    Ok(rows::of(&rounds))
}

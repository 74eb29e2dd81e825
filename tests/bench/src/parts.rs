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
mod stop;

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::load::Slice;
use crate::machine;
use crate::report::{Report, Row, Target};
use crate::rounds::{Rounds, Turn, take_turns};
use child::Child;
pub use contestant::Contestant;
use contestant::Contestant::*;
use limiter::{Counting, Method};

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

/// A part must cost at most this much of what the library costs, or the library takes its place.
const WORTH_IT: Target = Target::AtMost(0.95);

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
    let mut site = Site::start(FULL).await?;
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
    let mut site = Site::start(scale).await?;
    let names = site.names();
    let turn = async |index: usize| {
        let entrant: &mut Entrant = &mut site.entrants[index];
        entrant.turn(scale.slice).await
    };
    let rounds = take_turns(&names, scale.rounds, turn).await;
    Ok(judged(&rounds).chain(said(&rounds)).collect())
}

/// Everything that runs meanwhile.
struct Site {
    /// Answers what is exchanged.
    _service: exchange::Service,
    /// Holds the keys of our directory.
    _store: directory::Filled,
    entrants: Vec<Entrant>,
}

/// What takes turns.
enum Entrant {
    /// Measures itself.
    Child(Contestant, Child),
    /// Answers requests.
    Server(Contestant, accept::Asked),
    /// Counts in Redis.
    Limiter(Counting),
}

impl Site {
    async fn start(scale: Scale) -> Result<Self> {
        let service = exchange::Service::start().await?;
        let store = directory::Filled::start(scale.keys).await?;
        let mut entrants = Vec::new();
        for contestant in Contestant::ALL {
            let with = match contestant {
                ExchangeOurs | ExchangeClient | ExchangeConnection => vec![service.address()],
                DirectoryOurs | DirectoryRecords | DirectoryPacked => store.address(),
                _ => Vec::new(),
            };
            let child = Child::start(&contestant.argument(), &with).await?;
            entrants.push(match contestant.is_server() {
                true => Entrant::Server(contestant, accept::Asked::new(child)?),
                false => Entrant::Child(contestant, child),
            });
        }
        for method in Method::ALL {
            entrants.push(Entrant::Limiter(Counting::start(method).await?));
        }
        Ok(Self {
            _service: service,
            _store: store,
            entrants,
        })
    }

    fn names(&self) -> Vec<&'static str> {
        self.entrants.iter().map(Entrant::name).collect()
    }
}

impl Entrant {
    fn name(&self) -> &'static str {
        match self {
            Self::Child(contestant, _) | Self::Server(contestant, _) => contestant.name(),
            Self::Limiter(counting) => counting.method.name(),
        }
    }

    /// Whose CPU time is counted.
    fn process(&self) -> u32 {
        match self {
            Self::Child(_, child) => child.id(),
            Self::Server(_, server) => server.child.id(),
            Self::Limiter(counting) => counting.process(),
        }
    }

    async fn turn(&mut self, slice: Slice) -> Result<Turn> {
        match self {
            Self::Child(_, child) => child.turn(slice).await,
            Self::Server(_, server) => server.turn(slice).await,
            Self::Limiter(counting) => counting.turn(slice).await,
        }
    }
}

/// What decides whether a part stays ours.
fn judged(rounds: &Rounds) -> impl Iterator<Item = Row> {
    let ratio = |name, ours: Contestant, library: Contestant| {
        let ratio = rounds.ratio(ours.name(), library.name());
        Row::judged(name, "×", ratio, WORTH_IT)
    };
    let memory = |name, library: Contestant| {
        let ratio = rounds.count_ratio(DirectoryOurs.name(), library.name());
        Row::judged(name, "×", ratio, WORTH_IT)
    };
    [
        ratio(
            "exchange with a service ÷ hyper-util's client",
            ExchangeOurs,
            ExchangeClient,
        ),
        ratio(
            "exchange with a service ÷ hyper's connection and a small pool",
            ExchangeOurs,
            ExchangeConnection,
        ),
        ratio(
            "accept loop before warp's routes ÷ warp's server",
            AcceptOursRoutes,
            AcceptWarp,
        ),
        ratio(
            "log line ÷ tracing-subscriber's JSON with tracing-appender",
            LogOurs,
            LogLibrary,
        ),
        ratio("log sink ÷ tracing-appender", SinkOurs, SinkLibrary),
        memory(
            "directory, memory of a key ÷ hashbrown of records",
            DirectoryRecords,
        ),
        memory(
            "directory, memory of a key ÷ hashbrown of packed records",
            DirectoryPacked,
        ),
    ]
    .into_iter()
}

/// What explains them, and what is ours for another reason than its cost.
fn said(rounds: &Rounds) -> impl Iterator<Item = Row> {
    let ratio = |name, ours, library| Row::said(name, "×", rounds.ratio(ours, library));
    let ours = Method::Ours.name();
    let ratios = [
        ratio(
            "accept loop ÷ plain loop before hyper",
            AcceptOurs.name(),
            AcceptHyper.name(),
        ),
        ratio("limiter ÷ GCRA script", ours, Method::Gcra.name()),
        ratio("limiter ÷ INCR and EXPIRE", ours, Method::Fixed.name()),
        ratio(
            "directory, lookup ÷ hashbrown of records",
            DirectoryOurs.name(),
            DirectoryRecords.name(),
        ),
        ratio(
            "directory, lookup ÷ hashbrown of packed records",
            DirectoryOurs.name(),
            DirectoryPacked.name(),
        ),
    ];
    let cost = |unit, name| Row::said(name, unit, rounds.cost(name));
    let costs = Contestant::ALL.map(|contestant| cost(contestant.unit(), contestant.name()));
    let counted = Contestant::ALL.into_iter().filter_map(|contestant| {
        let (name, unit) = contestant.counts()?;
        Some(Row::said(name, unit, rounds.count(contestant.name())))
    });
    let limiters = Method::ALL.map(|method| cost("µs", method.name()));
    let counted: Vec<Row> = counted.collect();
    ratios
        .into_iter()
        .chain(costs)
        .chain(counted)
        .chain(limiters)
}

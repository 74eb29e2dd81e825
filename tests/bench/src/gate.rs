//! The gate beside nginx that only forwards, and beside nginx with Lua and Redis that does the same
//! work: the same service, the same answer, the same keys, the same connections.

pub mod process;
mod references;
mod revocation;
mod site;
mod startup;
mod workload;

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::load::Slice;
use crate::report::{Report, Row, Target};
use crate::rounds::{self, Rounds};
use site::Site;
use startup::Startup;
pub use workload::{BODY, PLAN, TARGET, contents, plan};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Scale {
    rounds: usize,
    slice: Slice,
    /// Requests under way where nothing else is said.
    connections: usize,
    /// Keys of the directory that most variants use.
    keys: usize,
    /// Keys of the small and the large directory that are compared.
    few: usize,
    many: usize,
    /// Keys that are revoked in each round.
    revocations: usize,
}

/// Some six minutes on two cores. The longer slices are, the fewer rounds fit: both calm the median.
const FULL: Scale = Scale {
    rounds: 7,
    slice: Slice {
        warm_up: Duration::from_millis(400),
        counted: Duration::from_secs(2),
    },
    connections: 64,
    keys: 1_000,
    few: 100,
    many: 1_000_000,
    revocations: 200,
};

/// For a profiler.
const LONG: Slice = Slice {
    warm_up: Duration::from_secs(2),
    counted: Duration::from_secs(30),
};

const SMOKE: Scale = Scale {
    rounds: 1,
    slice: Slice {
        warm_up: Duration::from_millis(50),
        counted: Duration::from_millis(100),
    },
    connections: 4,
    keys: 100,
    few: 10,
    many: 1_000,
    revocations: 3,
};

/// How the variants are called in rows.
mod name {
    pub const NGINX: &str = "nginx";
    pub const LUA: &str = "nginx + Lua + Redis";
    pub const GATE: &str = "gate";
    pub const ALONE: &str = "gate, Redis away";
    pub const UNKNOWN: &str = "gate, 401";
    pub const REFUSED: &str = "gate, remembered 429";
    pub const QUIET_NGINX: &str = "nginx, no log";
    pub const QUIET_LUA: &str = "nginx + Lua + Redis, no log";
    pub const QUIET_GATE: &str = "gate, no log";
    pub const FEW: &str = "gate, few keys";
    pub const MANY: &str = "gate, many keys";
    pub const ONE: &str = "gate, one connection";
    pub const ONE_NGINX: &str = "nginx, one connection";
}

/// Whose every request runs the limiter's script in Redis.
const COUNTED: [&str; 7] = [
    name::GATE,
    name::QUIET_GATE,
    name::LUA,
    name::QUIET_LUA,
    name::FEW,
    name::MANY,
    name::ONE,
];

/// Proves that every variant runs and answers right.
pub async fn smoke() -> Result<()> {
    let rows = compare(SMOKE).await?;
    let doubts: Vec<&str> = rows.iter().filter_map(Row::doubt).collect();
    ensure!(doubts.is_empty(), "{}", doubts.join("\n"));
    println!("everything that the gate is compared with runs and answers right");
    Ok(())
}

/// Measures everything.
pub async fn measure() -> Result<Report> {
    Report::new(compare(FULL).await?)
}

/// Sends one variant's load, for a profiler.
pub async fn profile(variant: &str) -> Result<()> {
    let site = Site::start(FULL).await?;
    let startup = Startup::measure(&site, 1).await?;
    let variants = site.variants(&startup.few, &startup.many);
    let names: Vec<_> = variants.iter().map(|variant| variant.name).collect();
    let found = variants.iter().find(|found| found.name == variant);
    let variant = found.with_context(|| format!("the variants are {}", names.join("; ")))?;
    eprintln!("process {}", variant.process);
    let sample = variant.load.send(variant.process, LONG).await?;
    println!("{} answers, {:.1} µs each", sample.answers, sample.cost());
    Ok(())
}

/// What fails on the way makes its own rows doubtful; the others are still told.
async fn compare(scale: Scale) -> Result<Vec<Row>> {
    let site = Site::start(scale).await?;
    let startup = Startup::measure(&site, scale.rounds).await?;
    let revocations = revocation::measure(&site, scale).await;
    let variants = site.variants(&startup.few, &startup.many);
    let limiter_runs = async || site.limiter_runs().await;
    let mut rounds = rounds::run(&variants, scale.rounds, scale.slice, limiter_runs).await;
    doubt_uncounted(&mut rounds);
    Ok(judged(&rounds)
        .chain(startup.rows)
        .chain(revocations)
        .chain(said(&rounds))
        .collect())
}

/// A gate that decides without Redis does less than what it is compared with.
fn doubt_uncounted(rounds: &mut Rounds) {
    for variant in COUNTED {
        let least = rounds.count(variant).spread.map(|counted| counted.min);
        if let Some(least) = least.filter(|least| *least < 1.0) {
            let reason = format!("only {least:.3} of a request's limits were counted in Redis");
            rounds.doubt(variant, reason);
        }
    }
}

/// The rows with targets.
fn judged(rounds: &Rounds) -> impl Iterator<Item = Row> {
    use Target::AtMost;
    let cpu = |name, variant, reference, target| {
        let ratio = rounds.ratio(variant, reference);
        Row::judged(name, "×", ratio, AtMost(target))
    };
    let (gate, nginx) = ([name::ONE, name::GATE], [name::ONE_NGINX, name::NGINX]);
    let waking = rounds.ratio_of_ratios(gate, nginx);
    [
        cpu("gate ÷ nginx", name::GATE, name::NGINX, 1.4),
        cpu("gate ÷ nginx + Lua + Redis", name::GATE, name::LUA, 0.45),
        // All but the question to Redis: authenticate and forward, and count in memory.
        cpu(
            "gate, limits counted in memory (Redis away) ÷ nginx",
            name::ALONE,
            name::NGINX,
            1.2,
        ),
        cpu("gate, 401 ÷ nginx", name::UNKNOWN, name::NGINX, 0.6),
        cpu(
            "gate, remembered 429 ÷ nginx",
            name::REFUSED,
            name::NGINX,
            0.6,
        ),
        Row::judged(
            "gate, remembered 429: questions to Redis",
            "a request",
            rounds.count(name::REFUSED),
            AtMost(0.0),
        ),
        cpu(
            "gate with 1 000 000 keys ÷ with 100",
            name::MANY,
            name::FEW,
            1.1,
        ),
        // With one connection each request wakes a sleeping process.
        Row::judged(
            "gate with 1 connection ÷ with 64, by nginx' own ratio",
            "×",
            waking,
            AtMost(1.5),
        ),
    ]
    .into_iter()
}

/// What explains them.
fn said(rounds: &Rounds) -> impl Iterator<Item = Row> {
    let cpu = |name, variant, reference| Row::said(name, "×", rounds.ratio(variant, reference));
    let cost = |name, variant| Row::said(name, "µs", rounds.cost(variant));
    [
        cpu("gate with 1 connection ÷ with 64", name::ONE, name::GATE),
        cpu(
            "nginx with 1 connection ÷ with 64",
            name::ONE_NGINX,
            name::NGINX,
        ),
        cpu(
            "gate ÷ nginx, no access logs",
            name::QUIET_GATE,
            name::QUIET_NGINX,
        ),
        cpu(
            "gate ÷ nginx + Lua + Redis, no access logs",
            name::QUIET_GATE,
            name::QUIET_LUA,
        ),
        cost("nginx, CPU of a request", name::NGINX),
        cost("nginx + Lua + Redis, CPU of a request", name::LUA),
        cost("gate, CPU of a request", name::GATE),
    ]
    .into_iter()
}

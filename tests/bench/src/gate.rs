//! The gate compared with nginx that only forwards, and with nginx, Lua and Redis that do the same work: the
//! same service, the same answer, the same keys, the same connections.

mod revocation;
mod site;
mod startup;

use anyhow::{Context, Result};

use crate::load::Slice;
use crate::report::{Report, Row};
use crate::rounds::{self, Rounds};
use site::Site;
use startup::Startup;

/// Sizes of a measurement.
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
    slice: Slice::millis(400, 2_000),
    connections: 64,
    keys: 1_000,
    few: 100,
    many: 1_000_000,
    revocations: 200,
};

const SMOKE: Scale = Scale {
    rounds: 1,
    slice: Slice::millis(50, 100),
    connections: 4,
    keys: 100,
    few: 10,
    many: 1_000,
    revocations: 3,
};

/// Slice for a profiler.
const LONG: Slice = Slice::millis(2_000, 30_000);

/// Names of the variants in rows.
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
use name::*;

/// Variants whose every request runs the limiter's script in Redis.
const COUNTED: [&str; 7] = [GATE, QUIET_GATE, LUA, QUIET_LUA, FEW, MANY, ONE];

/// Compares everything. A failure makes its own rows doubtful; the others are still reported.
pub async fn measure(smoke: bool) -> Result<Report> {
    let scale = if smoke { SMOKE } else { FULL };
    let site = Site::start(scale).await?;
    let startup = Startup::measure(&site, scale.rounds).await?;
    let revocations = revocation::measure(&site, scale).await;
    let variants = site.variants(&startup.few, &startup.many);
    // Nothing else asks for a list's length.
    let limiter_runs = async || site.store.calls("llen").await;
    let mut rounds = rounds::run(&variants, scale.rounds, scale.slice, limiter_runs).await;
    doubt_uncounted(&mut rounds);
    let rows = [
        judged(&rounds),
        startup.rows,
        revocations,
        explained(&rounds),
    ];
    Report::new(rows.into_iter().flatten().collect(), &[])
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

/// Rows with targets.
fn judged(rounds: &Rounds) -> Vec<Row> {
    let cpu = |row, variant, reference| Row::new(row, "×", rounds.ratio(variant, reference));
    let memory = "gate, limits counted in memory (Redis away) ÷ nginx";
    let questions = "gate, remembered 429: questions to Redis";
    // With one connection each request wakes a sleeping process.
    let waking = rounds.ratio_of_ratios([ONE, GATE], [ONE_NGINX, NGINX]);
    let waking_row = "gate with 1 connection ÷ with 64, by nginx' own ratio";
    vec![
        cpu("gate ÷ nginx", GATE, NGINX).at_most(1.4),
        cpu("gate ÷ nginx + Lua + Redis", GATE, LUA).at_most(0.45),
        // All but the question to Redis: authenticate and forward, and count in memory.
        cpu(memory, ALONE, NGINX).at_most(1.2),
        cpu("gate, 401 ÷ nginx", UNKNOWN, NGINX).at_most(0.6),
        cpu("gate, remembered 429 ÷ nginx", REFUSED, NGINX).at_most(0.6),
        Row::new(questions, "a request", rounds.count(REFUSED)).at_most(0.0),
        cpu("gate with 1 000 000 keys ÷ with 100", MANY, FEW).at_most(1.1),
        Row::new(waking_row, "×", waking).at_most(1.5),
    ]
}

/// Rows that explain them.
fn explained(rounds: &Rounds) -> Vec<Row> {
    let cpu = |row, variant, reference| Row::new(row, "×", rounds.ratio(variant, reference));
    let cost = |row, variant| Row::new(row, "µs", rounds.cost(variant));
    let quiet_lua = "gate ÷ nginx + Lua + Redis, no access logs";
    vec![
        cpu("gate with 1 connection ÷ with 64", ONE, GATE),
        cpu("nginx with 1 connection ÷ with 64", ONE_NGINX, NGINX),
        cpu("gate ÷ nginx, no access logs", QUIET_GATE, QUIET_NGINX),
        cpu(quiet_lua, QUIET_GATE, QUIET_LUA),
        cost("nginx, CPU of a request", NGINX),
        cost("nginx + Lua + Redis, CPU of a request", LUA),
        cost("gate, CPU of a request", GATE),
    ]
}

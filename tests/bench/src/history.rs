//! Pages of a history compared with pgbench, which asks the same question of the same PostgreSQL; and the walk
//! through a whole history compared with `psql \copy` of the same rows.

mod cores;
mod pgbench;
mod quantile;
mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep};

use crate::database::Database;
use crate::load::{Load, STRIDE, Slice};
use crate::programs::Server;
use crate::report::{Report, Row};
use crate::rounds::{self, Rounds, Turn, Variant, take_turns};
use crate::signed;
use cores::Apart;
use pgbench::Pgbench;
use walk::GatedService;

/// Sizes of a measurement.
#[derive(Clone, Copy, Debug)]
struct Scale {
    rounds: usize,
    slice: Slice,
    /// Time of a turn of pgbench, in which it connects too: whole seconds.
    pgbench: Duration,
    /// Requests under way.
    connections: usize,
    /// Rows of the large and of the small account.
    large: u64,
    small: u64,
    /// Deep offset in the large account.
    deep: u64,
}

const FULL: Scale = Scale {
    rounds: 7,
    slice: Slice::millis(500, 3_000),
    pgbench: Duration::from_secs(3),
    connections: 16,
    large: 1_000_000,
    small: 1_000,
    deep: 100_000,
};

const SMOKE: Scale = Scale {
    rounds: 1,
    slice: Slice::millis(100, 300),
    pgbench: Duration::from_secs(4),
    connections: 4,
    large: 5_000,
    small: 1_000,
    deep: 2_000,
};

/// Connections to PostgreSQL, of the service and of pgbench: the service's default.
const SESSIONS: &str = "8";

/// Accounts, which have keys of these numbers.
const LARGE: &str = "account-0";
const SMALL: &str = "account-1";
const LARGE_KEY: usize = 0;
const SMALL_KEY: usize = 1;
/// Records of a page where the client asks for no other size.
const LIMIT: u64 = 20;

/// Names of the variants in rows.
mod name {
    pub const PAGES: &str = "pages";
    pub const PGBENCH: &str = "pgbench";
    pub const FIRST: &str = "offset 0";
    pub const DEEP: &str = "offset 100 000";
    pub const SMALL: &str = "account of 1 000 rows";
    pub const LARGE: &str = "account of 1 000 000 rows";
    pub const SERVICE: &str = "the service";
}

/// Compares everything.
pub async fn measure(smoke: bool) -> Result<Report> {
    let site = Site::start(if smoke { SMOKE } else { FULL }).await?;
    let scale = site.scale;
    let shared = site.speed(&site.service).await?;
    let apart = site.speed_apart().await?;
    let variants = [
        site.variant(name::FIRST, LARGE, &[0])?,
        site.variant(name::DEEP, LARGE, &[scale.deep])?,
        site.variant(name::SMALL, SMALL, &offsets(scale.small))?,
        site.variant(name::LARGE, LARGE, &offsets(scale.small))?,
        Variant {
            process: site.service.id(),
            ..site.variant(name::SERVICE, LARGE, &offsets(scale.large))?
        },
    ];
    let nothing = async || Ok(0);
    let inside = rounds::run(&variants, scale.rounds, scale.slice, nothing).await;
    let gated = GatedService::start(&site.service).await?;
    let walks = walk::measure(&site, &gated).await;
    let beside = quantile::measure(&site, &gated).await?;
    let enterprise = walk::measure_under_enterprise(&site, &gated).await;
    let rows = [rows(&apart, &shared, &inside), walks, beside, enterprise];
    let versions = [("postgresql", site.database.version()?)];
    Report::new(rows.into_iter().flatten().collect(), &versions)
}

/// The service and its database, with both accounts.
struct Site {
    database: Database,
    service: Server,
    scale: Scale,
}

impl Site {
    async fn start(scale: Scale) -> Result<Self> {
        let database = Database::start().await?;
        eprintln!("loading {} rows", scale.large + scale.small);
        database.load_analyses(&[(LARGE, scale.large), (SMALL, scale.small)])?;
        let service = Server::history(&database.url("water_reader"), SESSIONS).await?;
        Ok(Self {
            database,
            service,
            scale,
        })
    }

    /// Pages a second where PostgreSQL has one core for itself, as it has a separate machine elsewhere: that
    /// compares how well both keep it busy, and not the cost of HTTP on the same cores.
    async fn speed_apart(&self) -> Result<Rounds> {
        let _apart = Apart::new(self.database.process())?;
        // Sessions of a new service are forked on that core.
        let service = Server::history(&self.database.url("water_reader"), SESSIONS).await?;
        self.speed(&service).await
    }

    /// Pages a second: the service's and pgbench's take turns.
    async fn speed(&self, service: &Server) -> Result<Rounds> {
        let pages = self.load(service, LARGE, &offsets(self.scale.large))?;
        // After one page the server can report the question.
        signed::get(service.address(), LARGE, &target(0)).await?;
        let pgbench = Pgbench::asking(&self.database, self.scale.large - LIMIT)?;
        let names = [name::PGBENCH, name::PAGES];
        let turn = async |index| {
            let cost = match index {
                0 => pgbench.turn(self.scale.pgbench)?,
                _ => self.wall(&pages).await?,
            };
            Ok(Turn { cost, counted: 0.0 })
        };
        Ok(take_turns(&names, self.scale.rounds, turn).await)
    }

    /// Time from one answer to the next, of all connections together, in microseconds.
    async fn wall(&self, load: &Load) -> Result<f64> {
        let answers = Arc::new(AtomicU64::new(0));
        let slice = self.scale.slice;
        let counting = async {
            sleep(slice.warm_up).await;
            let before = (Instant::now(), answers.load(Ordering::Relaxed));
            sleep(slice.counted).await;
            let count = answers.load(Ordering::Relaxed) - before.1;
            Ok(before.0.elapsed().as_secs_f64() * 1e6 / count as f64)
        };
        load.during(&answers, counting).await
    }

    /// Pages at these offsets in turn; PostgreSQL's CPU time counts.
    fn variant(&self, name: &'static str, account: &str, offsets: &[u64]) -> Result<Variant> {
        Ok(Variant {
            name,
            load: self.load(&self.service, account, offsets)?,
            process: self.database.process(),
        })
    }

    fn load(&self, service: &Server, account: &str, offsets: &[u64]) -> Result<Load> {
        Ok(Load {
            address: service.address(),
            connections: self.scale.connections,
            requests: signed::requests(account, offsets.iter().copied().map(target))?,
            status: 200,
            length: None,
            pace: None,
        })
    }
}

fn target(offset: u64) -> String {
    format!("/api/v1/hydrorisk?limit={LIMIT}&offset={offset}")
}

/// Offsets of whole pages, spread over an account of this many rows.
fn offsets(rows: u64) -> Vec<u64> {
    let places = rows - LIMIT;
    (0..1_000).map(|number| number * STRIDE % places).collect()
}

/// Rows with targets, and those that explain them.
fn rows(apart: &Rounds, shared: &Rounds, inside: &Rounds) -> Vec<Row> {
    let ratio = |row, figure| Row::new(row, "×", figure);
    let cost = |row, rounds: &Rounds, variant| Row::new(row, "µs", rounds.cost(variant));
    // Time a page of pgbench by that of the service is pages a second the other way round.
    let pages = |speed: &Rounds| speed.ratio(name::PGBENCH, name::PAGES);
    let together = "the same where PostgreSQL shares all cores with who asks";
    let deep = inside.ratio(name::DEEP, name::FIRST);
    let large = inside.ratio(name::LARGE, name::SMALL);
    let large_row = "account of 1 000 000 rows ÷ of 1 000, CPU of PostgreSQL";
    vec![
        ratio("history pages a second ÷ pgbench", pages(apart)).at_least(0.85),
        ratio(together, pages(shared)),
        ratio("offset 100 000 ÷ offset 0, CPU of PostgreSQL", deep).at_most(1.5),
        ratio(large_row, large).at_most(1.1),
        cost("history, time from page to page", apart, name::PAGES),
        cost("pgbench, time from page to page", apart, name::PGBENCH),
        cost("PostgreSQL, CPU of a page", inside, name::LARGE),
        cost("history, CPU of a page", inside, name::SERVICE),
    ]
}

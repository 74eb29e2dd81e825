//! Pages of a history beside pgbench, which asks the same question of the same PostgreSQL, and the
//! walk through a whole history beside `psql \copy` of the same rows.

mod gated;
mod pgbench;
mod quantile;
mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep};

use crate::cores::Apart;
use crate::database::{Database, analyses_file};
use crate::history::gated::Gated;
use crate::history::pgbench::Pgbench;
use crate::load::{Expected, Load, Slice};
use crate::product::{self, Service};
use crate::report::{Report, Row, Target};
use crate::rounds::{self, Rounds, Turn, Variant, take_turns};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Scale {
    rounds: usize,
    slice: Slice,
    /// Requests under way.
    connections: usize,
    /// Rows of the large and of the small account.
    large: u64,
    small: u64,
    /// A deep offset in the large account.
    deep: u64,
}

const FULL: Scale = Scale {
    rounds: 7,
    slice: Slice {
        warm_up: Duration::from_millis(500),
        counted: Duration::from_secs(3),
    },
    connections: 16,
    large: 1_000_000,
    small: 1_000,
    deep: 100_000,
};

const SMOKE: Scale = Scale {
    rounds: 1,
    slice: Slice {
        warm_up: Duration::from_millis(100),
        counted: Duration::from_secs(1),
    },
    connections: 4,
    large: 5_000,
    small: 1_000,
    deep: 2_000,
};

/// Connections to PostgreSQL, of the service and of pgbench: the service's default.
const SESSIONS: &str = "8";

/// The accounts, which have keys of these numbers.
const LARGE: &str = "account-0";
const SMALL: &str = "account-1";
const LARGE_KEY: usize = 0;
const SMALL_KEY: usize = 1;
/// Records of a page where the client asks for no other size.
const LIMIT: u64 = 20;

/// How the variants are called in rows.
mod name {
    pub const PAGES: &str = "pages";
    pub const PGBENCH: &str = "pgbench";
    pub const FIRST: &str = "offset 0";
    pub const DEEP: &str = "offset 100 000";
    pub const SMALL: &str = "account of 1 000 rows";
    pub const LARGE: &str = "account of 1 000 000 rows";
    pub const SERVICE: &str = "the service";
}

/// Proves that everything that is compared runs and answers right.
pub async fn smoke() -> Result<()> {
    let (rows, _) = compare(SMOKE).await?;
    let doubts: Vec<&str> = rows.iter().filter_map(Row::doubt).collect();
    ensure!(doubts.is_empty(), "{}", doubts.join("\n"));
    println!("the service and pgbench read the same pages");
    Ok(())
}

/// Measures everything.
pub async fn measure() -> Result<Report> {
    let (rows, postgres) = compare(FULL).await?;
    Ok(Report::new(rows)?.with_versions([("postgresql", postgres)].into()))
}

/// Measures only walks, or others' pages beside them. The rows are said and not recorded.
pub async fn profile(variant: &str) -> Result<()> {
    let variants = ["walk", "beside-a-walk"];
    let known = variants.contains(&variant);
    ensure!(known, "the variants are {}", variants.join(" and "));
    let site = Site::start(FULL).await?;
    let gated = Gated::before(&site.service).await?;
    let (service, gate) = (site.service.id(), gated.gate.id());
    eprintln!("process {service}, behind the gate {gate}");
    let rows = match variant {
        "walk" => {
            let walks = walk::measure(&site, &gated).await;
            let enterprise = walk::measure_under_enterprise(&site, &gated).await;
            let mut rows = walk::rows(&walks);
            rows.extend(walk::rows_under_enterprise(&enterprise));
            rows
        }
        _ => quantile::rows(&quantile::measure(&site, &gated).await?),
    };
    println!("{}", Report::new(rows)?);
    Ok(())
}

/// What is asked, and who answers.
struct Site {
    database: Database,
    service: Service,
    scale: Scale,
}

async fn compare(scale: Scale) -> Result<(Vec<Row>, String)> {
    let site = Site::start(scale).await?;
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
    let gated = Gated::before(&site.service).await?;
    let walks = walk::measure(&site, &gated).await;
    let beside = quantile::measure(&site, &gated).await?;
    let enterprise = walk::measure_under_enterprise(&site, &gated).await;
    let rows = rows(&apart, &shared, &inside)
        .into_iter()
        .chain(walk::rows(&walks))
        .chain(quantile::rows(&beside))
        .chain(walk::rows_under_enterprise(&enterprise))
        .collect();
    Ok((rows, site.database.version()?))
}

impl Site {
    async fn start(scale: Scale) -> Result<Self> {
        let database = Database::start().await?;
        eprintln!("loading {} rows", scale.large + scale.small);
        let file = analyses_file(&[(LARGE, scale.large), (SMALL, scale.small)])?;
        let file = file.to_str().context("the file's path is text")?;
        database
            .ingest(&["load", "analyses", file, "--as-of", "2026-01-01"])
            .await?;
        database.sql("VACUUM ANALYZE water.analyses")?;
        database.sql("CHECKPOINT")?;
        let service = service(&database).await?;
        Ok(Self {
            database,
            service,
            scale,
        })
    }

    /// The same where PostgreSQL has a core of its own, as it has a machine of its own elsewhere. What is
    /// compared is how well both keep it busy, and not what HTTP costs beside it.
    async fn speed_apart(&self) -> Result<Rounds> {
        let _apart = Apart::of(self.database.postgres.process().id())?;
        // Its sessions are forked on that core.
        self.speed(&service(&self.database).await?).await
    }

    /// Pages a second: the service's and pgbench's take turns.
    async fn speed(&self, service: &Service) -> Result<Rounds> {
        let pages = self.load(service, LARGE, &offsets(self.scale.large))?;
        // One page, after which the server can tell the question.
        service.get(LARGE, &target(0)).await?;
        let pgbench = Pgbench::asking(&self.database, self.scale.large - LIMIT)?;
        let names = [name::PGBENCH, name::PAGES];
        Ok(
            take_turns(&names, self.scale.rounds, async |index| match index {
                0 => pgbench.turn(self.scale.slice.counted),
                _ => self.wall(&pages).await,
            })
            .await,
        )
    }

    /// The time from one answer to the next, of all connections together, in microseconds.
    async fn wall(&self, load: &Load) -> Result<Turn> {
        let answers = Arc::new(AtomicU64::new(0));
        let slice = self.scale.slice;
        let counting = async {
            sleep(slice.warm_up).await;
            let before = (Instant::now(), answers.load(Ordering::Relaxed));
            sleep(slice.counted).await;
            let count = answers.load(Ordering::Relaxed) - before.1;
            Ok(before.0.elapsed().as_secs_f64() * 1e6 / count as f64)
        };
        let cost = load.beside(&answers, counting).await?;
        Ok(Turn { cost, counted: 0.0 })
    }

    /// Pages at these offsets in turn; PostgreSQL's CPU time counts.
    fn variant(&self, name: &'static str, account: &str, offsets: &[u64]) -> Result<Variant> {
        Ok(Variant {
            name,
            load: self.load(&self.service, account, offsets)?,
            process: self.database.postgres.process().id(),
        })
    }

    fn load(&self, service: &Service, account: &str, offsets: &[u64]) -> Result<Load> {
        let targets: Vec<String> = offsets.iter().copied().map(target).collect();
        Ok(Load {
            address: service.address(),
            connections: self.scale.connections,
            requests: product::requests(account, &targets)?,
            expected: Expected {
                status: 200,
                length: None,
            },
            pace: None,
        })
    }
}

async fn service(database: &Database) -> Result<Service> {
    let url = database.url("water_reader");
    let settings = [("WATER_POSTGRES_CONNECTIONS", SESSIONS)];
    Service::start("water-history", &url, &settings).await
}

fn target(offset: u64) -> String {
    format!("/api/v1/hydrorisk?limit={LIMIT}&offset={offset}")
}

/// Offsets of whole pages, spread over an account of this many rows.
fn offsets(rows: u64) -> Vec<u64> {
    const STRIDE: u64 = 7_368_787;
    let places = rows - LIMIT;
    (0..1_000).map(|number| number * STRIDE % places).collect()
}

/// The rows with targets, and those that explain them.
fn rows(apart: &Rounds, shared: &Rounds, inside: &Rounds) -> Vec<Row> {
    let at_most = |row, ratio, target| Row::judged(row, "×", ratio, Target::AtMost(target));
    // Time a page of pgbench by that of the service is pages a second the other way round.
    let pages = |speed: &Rounds| speed.ratio(name::PGBENCH, name::PAGES);
    vec![
        Row::judged(
            "history pages a second ÷ pgbench",
            "×",
            pages(apart),
            Target::AtLeast(0.85),
        ),
        Row::said(
            "the same where PostgreSQL shares all cores with who asks",
            "×",
            pages(shared),
        ),
        at_most(
            "offset 100 000 ÷ offset 0, CPU of PostgreSQL",
            inside.ratio(name::DEEP, name::FIRST),
            1.5,
        ),
        at_most(
            "account of 1 000 000 rows ÷ of 1 000, CPU of PostgreSQL",
            inside.ratio(name::LARGE, name::SMALL),
            1.1,
        ),
        Row::said(
            "history, time from page to page",
            "µs",
            apart.cost(name::PAGES),
        ),
        Row::said(
            "pgbench, time from page to page",
            "µs",
            apart.cost(name::PGBENCH),
        ),
        Row::said("PostgreSQL, CPU of a page", "µs", inside.cost(name::LARGE)),
        Row::said("history, CPU of a page", "µs", inside.cost(name::SERVICE)),
    ]
}

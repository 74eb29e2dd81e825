//! A whole history walked as CSV pages through a gate, by one client, compared with `psql \copy` of the same
//! rows in the same order; and the same walk under Enterprise, whose limits it meets.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::time::{Instant, sleep};
use water_harness::{Answer, HttpClient};
use water_keystore::Instance;

use super::{LARGE, LARGE_KEY, Site};
use crate::cpu;
use crate::keys::{Keys, PLAN, contents, plan};
use crate::programs::Server;
use crate::report::Row;
use crate::rounds::{Turn, take_turns};
use crate::store::Store;

const COPY: &str = "psql \\copy of one account";
const WALK: &str = "walk through the gate";
const ENTERPRISE: &str = "walk under Enterprise";

/// Number of the large account's other key, on the plan that the specification names, with its limits.
const ENTERPRISE_KEY: usize = 2;
const ENTERPRISE_LIMITS: (u32, u32) = (120, 50_000);

/// Refusals and failures after which a walk is given up.
const TOO_MANY: u64 = 1_000;

/// Largest page that may be asked for.
const FIRST: &str = "/api/v1/hydrorisk?limit=5000";
const LARGEST_PAGE: u64 = 5_000;

/// Gate before the service, with a key of each account on a plan whose limits nobody meets, and one on
/// Enterprise.
pub struct GatedService {
    pub gate: Server,
    pub keys: Keys,
    _store: Store,
}

impl GatedService {
    /// Starts a gate before this service.
    pub async fn start(service: &Server) -> Result<Self> {
        let instance = Instance::new("water", "history")?;
        let store = Store::start(&[&instance]).await?;
        let keys = Keys::new("account", 3);
        let mut known = contents(keys.entries(PLAN));
        known.plans.push(plan("Enterprise", ENTERPRISE_LIMITS));
        let record = &mut known.entries[ENTERPRISE_KEY].record;
        record.account = LARGE.parse()?;
        record.plan = "Enterprise".parse()?;
        store.publish(&instance, known).await?;
        let gate = Server::gate(&store, &instance, service.address(), &[]).await?;
        Ok(Self {
            gate,
            keys,
            _store: store,
        })
    }

    /// Client with the key of this number.
    pub fn walker(&self, key: usize) -> Walker {
        Walker {
            gate: self.gate.address(),
            bearer: format!("Bearer {}", self.keys.texts[key]),
        }
    }
}

/// Client that walks through the whole history of its account.
pub struct Walker {
    gate: SocketAddr,
    bearer: String,
}

/// Pages that a walk was refused with 429, and those that failed with 5xx.
#[derive(Default)]
struct Delays {
    refused: u64,
    failed: u64,
}

impl Walker {
    /// Asks for CSV, page after page on one connection, and returns the number of rows.
    pub async fn walk(&self) -> Result<u64> {
        let mut rows = 0;
        let count = |page: &Answer| {
            let lines = page.body.iter().filter(|&&byte| byte == b'\n').count() as u64;
            rows += lines.checked_sub(1).context("a page has a header")?;
            Ok(())
        };
        let Delays { refused, failed } = self.each_page(count).await?;
        ensure!(refused + failed == 0, "{refused} × 429, {failed} × 5xx");
        Ok(rows)
    }

    /// Walks through all pages, and waits for `Retry-After` where it gets none.
    async fn each_page(&self, mut read: impl FnMut(&Answer) -> Result<()>) -> Result<Delays> {
        let fields = [
            ("Authorization", self.bearer.as_str()),
            ("Accept", "text/csv"),
        ];
        let (mut delays, mut next) = (Delays::default(), Some(FIRST.to_owned()));
        let mut client = HttpClient::connect(self.gate).await?;
        while let Some(target) = &next {
            let page = client.request("GET", target, &fields).await?;
            match page.status {
                200 => {
                    read(&page)?;
                    next = page.header("link").and_then(following);
                    continue;
                }
                429 => delays.refused += 1,
                500..=599 => delays.failed += 1,
                _ => bail!("{page:?}"),
            }
            let enough = delays.refused + delays.failed < TOO_MANY;
            ensure!(enough, "the walk does not end");
            let wait = page.header("retry-after").context("no Retry-After")?;
            sleep(Duration::from_secs(wait.parse()?)).await;
            // The gate may have closed a connection that was idle so long.
            client = HttpClient::connect(self.gate).await?;
        }
        Ok(delays)
    }
}

/// Target of `rel="next"`, which comes first if there is one.
fn following(link: &str) -> Option<String> {
    let (target, rest) = link.strip_prefix('<')?.split_once('>')?;
    rest.starts_with("; rel=\"next\"")
        .then(|| target.to_owned())
}

/// Compares the walk with `psql \copy`, in microseconds a row; the service's memory in MB counts too.
pub async fn measure(site: &Site, gated: &GatedService) -> Vec<Row> {
    let rounds = take_turns(&[COPY, WALK], site.scale.rounds, async |index| {
        let began = Instant::now();
        let rows = match index {
            0 => copy(site)?,
            _ => gated.walker(LARGE_KEY).walk().await?,
        };
        let took = began.elapsed();
        let expected = site.scale.large;
        ensure!(rows == expected, "{rows} of {expected} rows came");
        let memory = cpu::peak_memory(site.service.id())?;
        Ok(Turn {
            cost: took.as_secs_f64() * 1e6 / rows as f64,
            counted: memory as f64 / 1e6,
        })
    })
    .await;
    // Time a row of \copy by that of the walk is rows a second the other way round.
    let speed = rounds.ratio(COPY, WALK);
    let speed_row =
        "1 000 000 rows of one account as CSV through the gate, rows a second ÷ psql \\copy";
    let cost = |variant| {
        Row::new(
            format!("{variant}, time of a row"),
            "µs",
            rounds.cost(variant),
        )
    };
    let memory = rounds.count(WALK);
    vec![
        Row::new(speed_row, "×", speed).at_least(0.3),
        cost(WALK),
        cost(COPY),
        Row::new("history, memory after walks (VmHWM)", "MB", memory).at_most(100.0),
    ]
}

/// Copies to where nothing is kept, as the walk's client keeps nothing, and returns the number of rows.
fn copy(site: &Site) -> Result<u64> {
    let answer = site.database.sql(&format!(
        "\\unset QUIET\n\
         \\copy (SELECT id, company_name, sector_code, dept_code, score, rating, created_at \
         FROM water.analyses WHERE account_id = '{LARGE}' ORDER BY id) TO '/dev/null' CSV HEADER"
    ))?;
    Ok(answer.trim_start_matches("COPY ").parse()?)
}

/// Walks once under Enterprise and heeds `Retry-After`. No record may come twice.
pub async fn measure_under_enterprise(site: &Site, gated: &GatedService) -> Vec<Row> {
    let rounds = take_turns(&[ENTERPRISE], 1, async |_| {
        let mut ids = HashSet::new();
        let collect = |page: &Answer| {
            for row in page.text()?.lines().skip(1) {
                let (id, _) = row.split_once(',').context("a row has cells")?;
                ensure!(ids.insert(id.to_owned()), "{id} came twice");
            }
            Ok(())
        };
        let delays = gated.walker(ENTERPRISE_KEY).each_page(collect).await?;
        let (rows, expected) = (ids.len() as u64, site.scale.large);
        ensure!(rows == expected, "{rows} of {expected} rows came");
        let in_a_minute = u64::from(ENTERPRISE_LIMITS.0) * LARGEST_PAGE;
        let met_the_limit = delays.refused > 0 || rows <= in_a_minute;
        ensure!(met_the_limit, "no page was refused");
        Ok(Turn {
            cost: delays.failed as f64,
            counted: delays.refused as f64,
        })
    })
    .await;
    let failed = "the same walk under Enterprise, heeding Retry-After, 5xx";
    let refused = "the same walk under Enterprise, 429";
    vec![
        Row::new(failed, "", rounds.cost(ENTERPRISE)).at_most(0.0),
        Row::new(refused, "", rounds.count(ENTERPRISE)),
    ]
}

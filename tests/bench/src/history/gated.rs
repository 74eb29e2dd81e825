//! A gate before the service, keys of its accounts on a plan whose limits nobody meets and one on
//! Enterprise, and clients that walk through a whole history.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::time::sleep;
use water_harness::HttpClient;
use water_keystore::Instance;

use super::LARGE;
use crate::gate::process::Gate;
use crate::gate::{PLAN, contents, plan};
use crate::keys::Keys;
use crate::product::Service;
use crate::store::Store;

/// One of each account, and the one on Enterprise.
const KEYS: usize = 3;

/// Another key of the large account, on the plan that the specification names, with its limits.
const ENTERPRISE_KEY: usize = 2;
const ENTERPRISE: (&str, (u32, u32)) = ("Enterprise", (120, 50_000));

/// Answers other than a page after which a walk is given up.
const TOO_MANY: u64 = 1_000;

/// The largest page that may be asked for.
const FIRST: &str = "/api/v1/hydrorisk?limit=5000";
const LARGEST_PAGE: u64 = 5_000;

/// The gate, and what it needs.
pub struct Gated {
    pub gate: Gate,
    pub keys: Keys,
    _store: Store,
}

impl Gated {
    /// A gate before this service.
    pub async fn before(service: &Service) -> Result<Self> {
        let instance = Instance::new("water", "history")?;
        let store = Store::start(&[&instance]).await?;
        let keys = Keys::new("account", KEYS);
        let mut known = contents(keys.entries(PLAN));
        let (name, limits) = ENTERPRISE;
        known.plans.push(plan(name, limits));
        let record = &mut known.entries[ENTERPRISE_KEY].record;
        record.account = LARGE.parse()?;
        record.plan = name.parse()?;
        store.publish(&instance, known).await?;
        let gate = Gate::start(&store, &instance, service.address(), &[]).await?;
        Ok(Self {
            gate,
            keys,
            _store: store,
        })
    }

    /// Walks through the large account's history as CSV under Enterprise, and waits as long as it is
    /// told where it gets no page. No record may come twice.
    pub async fn walk_under_enterprise(&self) -> Result<Walked> {
        let bearer = format!("Bearer {}", self.keys.texts[ENTERPRISE_KEY]);
        let fields = [("Authorization", bearer.as_str()), ("Accept", "text/csv")];
        let (mut refused, mut failed) = (0, 0);
        let (mut ids, mut next) = (HashSet::new(), Some(FIRST.to_owned()));
        let mut client = HttpClient::connect(self.gate.address()).await?;
        while let Some(target) = &next {
            let page = client.request("GET", target, &fields).await?;
            match page.status {
                200 => {
                    for row in page.text()?.lines().skip(1) {
                        let (id, _) = row.split_once(',').context("a row has cells")?;
                        ensure!(ids.insert(id.to_owned()), "{id} came twice");
                    }
                    next = page.header("link").and_then(following);
                    continue;
                }
                429 => refused += 1,
                500..=599 => failed += 1,
                _ => bail!("{page:?}"),
            }
            ensure!(refused + failed < TOO_MANY, "the walk does not end");
            let wait = page.header("retry-after").context("no Retry-After")?;
            sleep(Duration::from_secs(wait.parse()?)).await;
            // The gate may have closed a connection that was idle so long.
            client = HttpClient::connect(self.gate.address()).await?;
        }
        Ok(Walked {
            rows: ids.len() as u64,
            refused,
            failed,
        })
    }

    /// A client with this key.
    pub fn walker(&self, key: usize) -> Walker {
        Walker {
            gate: self.gate.address(),
            bearer: format!("Bearer {}", self.keys.texts[key]),
        }
    }
}

/// A client that walks through the whole history of its account.
pub struct Walker {
    gate: SocketAddr,
    bearer: String,
}

impl Walker {
    /// Asks for CSV, page after page on one connection, and counts the rows.
    pub async fn walk(&self) -> Result<u64> {
        let mut client = HttpClient::connect(self.gate).await?;
        let fields = [
            ("Authorization", self.bearer.as_str()),
            ("Accept", "text/csv"),
        ];
        let (mut next, mut rows) = (Some(FIRST.to_owned()), 0);
        while let Some(target) = next {
            let page = client.request("GET", &target, &fields).await?;
            ensure!(page.status == 200, "{page:?}");
            let lines = page.body.iter().filter(|&&byte| byte == b'\n').count() as u64;
            // The header's line.
            rows += lines.checked_sub(1).context("a page has a header")?;
            next = page.header("link").and_then(following);
        }
        Ok(rows)
    }
}

/// What came of a walk: its rows, and how often a page was refused with 429 or failed with 5xx.
pub struct Walked {
    pub rows: u64,
    pub refused: u64,
    pub failed: u64,
}

impl Walked {
    /// Whether it was refused, where it has more pages than Enterprise allows in a minute.
    pub fn met_the_limit(&self) -> bool {
        self.refused > 0 || self.rows <= u64::from(ENTERPRISE.1.0) * LARGEST_PAGE
    }
}

/// The target of `rel="next"`, which comes first if there is one.
fn following(link: &str) -> Option<String> {
    let (target, rest) = link.strip_prefix('<')?.split_once('>')?;
    rest.starts_with("; rel=\"next\"")
        .then(|| target.to_owned())
}

//! A gate before the service, keys of its accounts on a plan whose limits nobody meets, and a
//! client that walks through a whole history.

use anyhow::{Context, Result, ensure};
use water_harness::HttpClient;
use water_keystore::Instance;

use crate::gate::process::Gate;
use crate::gate::{PLAN, contents};
use crate::keys::Keys;
use crate::product::Service;
use crate::store::Store;

/// As many as there are accounts.
const KEYS: usize = 2;

/// The largest page that may be asked for.
const FIRST: &str = "/api/v1/hydrorisk?limit=5000";

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
        let entries = contents(keys.entries(PLAN));
        store.publish(&instance, entries).await?;
        let gate = Gate::start(&store, &instance, service.address(), &[]).await?;
        Ok(Self {
            gate,
            keys,
            _store: store,
        })
    }

    /// Walks through the history of a key's account as CSV, page after page on one connection, and
    /// counts the rows.
    pub async fn walk(&self, key: usize) -> Result<u64> {
        let mut client = HttpClient::connect(self.gate.address()).await?;
        let bearer = format!("Bearer {}", self.keys.texts[key]);
        let fields = [("Authorization", bearer.as_str()), ("Accept", "text/csv")];
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

/// The target of `rel="next"`, which comes first if there is one.
fn following(link: &str) -> Option<String> {
    let (target, rest) = link.strip_prefix('<')?.split_once('>')?;
    rest.starts_with("; rel=\"next\"")
        .then(|| target.to_owned())
}

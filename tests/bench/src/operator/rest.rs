//! The operator while nobody changes anything.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use water_harness::wait_until;

use super::Scale;
use super::audit::{Request, summary};
use super::issuance::name;
use super::process::Operator;
use super::samples::usable;
use super::site::Site;
use crate::gate::process::Gate;

/// A gate tells uses every 15 s, the operator asks for them once a minute.
const SHOWN_WITHIN: Duration = Duration::from_secs(150);
/// What was under way before comes to its end.
const SETTLED_WITHIN: Duration = Duration::from_secs(300);

/// One value for each window.
#[derive(Default)]
pub struct Rest {
    /// The operator's requests to the API server, a minute.
    pub requests: Vec<f64>,
    /// Those that etcd was written for, its Lease included.
    pub writes: Vec<f64>,
    /// Its CPU time, in cores.
    pub cpu: Vec<f64>,
    /// Its memory, in MiB.
    pub memory: Vec<f64>,
    /// Its peak memory since its start, in MiB: also while ApiKeys were made and deleted.
    pub peak: f64,
}

/// Uses some keys, waits until that is shown and nothing is written any more, and watches.
pub async fn measure(
    site: &Site,
    gates: &[Gate],
    operator: &Operator,
    scale: Scale,
) -> Result<Rest> {
    use_keys(site, gates, scale.used).await?;
    let mut audit = site.audit()?;
    audit.until_quiet(SETTLED_WITHIN).await?;
    let mut rest = Rest::default();
    for _ in 0..scale.windows {
        audit.next()?;
        let (began, cpu) = (Instant::now(), operator.cpu_time()?);
        sleep(scale.rest).await;
        let requests = audit.next()?;
        let seconds = began.elapsed().as_secs_f64();
        eprintln!("at rest: {}", summary(&requests));
        let a_minute = |count: usize| count as f64 * 60.0 / seconds;
        rest.requests.push(a_minute(requests.len()));
        let writes = requests.iter().filter(|request| Request::is_write(request));
        rest.writes.push(a_minute(writes.count()));
        let used = (operator.cpu_time()? - cpu).as_secs_f64();
        rest.cpu.push(used / seconds);
        rest.memory.push(operator.memory()?);
    }
    rest.peak = operator.peak_memory()?;
    Ok(rest)
}

/// Uses the first `count` keys, and waits until their statuses show that.
async fn use_keys(site: &Site, gates: &[Gate], count: usize) -> Result<()> {
    let mut session = site.api.session().await?;
    for number in 0..count {
        usable(&mut session, &name(number), &gates[..1]).await?;
    }
    wait_until("last uses in statuses", SHOWN_WITHIN, async || {
        for number in 0..count {
            let name = name(number);
            let is_shown = session.shows_use(&name).await?;
            ensure!(is_shown, "the status of {name} shows no use");
        }
        Ok(())
    })
    .await
}

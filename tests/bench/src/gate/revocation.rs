//! Time for which a revoked key is still accepted, by three gates under a steady load of many accounts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio::try_join;
use water_keystore::{Declaration, Entry};

use super::Scale;
use super::site::{STEADY_ACCOUNTS, Site};
use crate::keys::PLAN;
use crate::load::{Connection, Load, Requests};
use crate::programs::Server;
use crate::report::Row;
use crate::rounds::Figure;

/// Requests a second of the steady load, over all gates.
const RATE: f64 = 1_000.0;
/// Connections to each gate that carry it.
const CONNECTIONS: usize = 10;
const GATES: usize = 3;
/// Time between two requests with a key that is about to be revoked.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// Revocations of one round, in milliseconds from the write to the last acceptance.
struct Round {
    median: f64,
    late: f64,
    latest: f64,
    /// Requests of the steady load that were accepted in a second.
    rate: f64,
}

/// Revokes the keys that come after those of the load, one after the other. A failure is reported in the rows.
pub async fn measure(site: &Site, scale: Scale) -> Vec<Row> {
    let rounds = under_load(site, scale).await;
    let row = |name: &str, unit, value: fn(&Round) -> f64| {
        let figure = match &rounds {
            Ok(rounds) => Figure::new(rounds.iter().map(value)),
            Err(error) => Figure::failed(error),
        };
        Row::new(format!("revocation, three gates: {name}"), unit, figure)
    };
    let accepted = "last accepted after the write in Redis";
    let late = row(&format!("{accepted}, p99"), "ms", |round| round.late);
    vec![
        late.at_most(250.0),
        row(&format!("{accepted}, p50"), "ms", |round| round.median),
        row(&format!("{accepted}, latest"), "ms", |round| round.latest),
        row("requests accepted beside it", "a second", |round| {
            round.rate
        }),
    ]
}

async fn under_load(site: &Site, scale: Scale) -> Result<Vec<Round>> {
    let directory = &site.revocation;
    let gates = [
        site.gate_of(directory).await?,
        site.gate_of(directory).await?,
        site.gate_of(directory).await?,
    ];
    let [one, two, three] = gates.each_ref().map(|gate| Load {
        address: gate.address(),
        connections: CONNECTIONS,
        requests: Requests::with_keys(&directory.keys.texts[..STEADY_ACCOUNTS].into()),
        status: 200,
        length: None,
        pace: Some(Duration::from_secs_f64((GATES * CONNECTIONS) as f64 / RATE)),
    });
    let accepted = Arc::default();
    let work = rounds(site, &gates, scale, &accepted);
    let work = three.during(&accepted, work);
    one.during(&accepted, two.during(&accepted, work)).await
}

async fn rounds(
    site: &Site,
    gates: &[Server; GATES],
    scale: Scale,
    accepted: &AtomicU64,
) -> Result<Vec<Round>> {
    let [one, two, three] = gates.each_ref().map(Server::address);
    let mut probes = [
        Connection::open(one).await?,
        Connection::open(two).await?,
        Connection::open(three).await?,
    ];
    let keys = &site.revocation.keys;
    let mut doomed = keys.entries(PLAN).zip(&*keys.texts).skip(STEADY_ACCOUNTS);
    let mut rounds = Vec::new();
    for round in 1..=scale.rounds {
        eprintln!("revocations {round} of {}", scale.rounds);
        let (began, before) = (Instant::now(), accepted.load(Ordering::Relaxed));
        let mut millis = Vec::new();
        for (entry, text) in doomed.by_ref().take(scale.revocations) {
            let accepted = revoke(site, entry, text, &mut probes).await?;
            millis.push(accepted.as_secs_f64() * 1e3);
        }
        let answers = accepted.load(Ordering::Relaxed) - before;
        millis.sort_by(f64::total_cmp);
        let at = |part: usize| millis[(millis.len() * part).div_ceil(100) - 1];
        rounds.push(Round {
            median: at(50),
            late: at(99),
            latest: at(100),
            rate: answers as f64 / began.elapsed().as_secs_f64(),
        });
    }
    Ok(rounds)
}

/// Revokes a key, and returns the time from just before the write to the last answer of any gate that accepted
/// the key: an upper bound, which the answer's own way is in.
async fn revoke(
    site: &Site,
    entry: Entry,
    text: &str,
    probes: &mut [Connection; GATES],
) -> Result<Duration> {
    for probe in &mut *probes {
        let status = probe.status(text).await?;
        ensure!(status == 200, "{}", probe.answer_text());
    }
    let Entry { owner, origin, .. } = entry;
    let directory = site.store.directory(&site.revocation.instance)?;
    let snapshot = directory.owner_snapshot(&owner.uid, &origin, &[]).await?;
    // The owner holds this key only: a key that is not declared is revoked.
    let nothing = Declaration {
        owner,
        number: snapshot.number,
        records: BTreeMap::new(),
        withdrawn: BTreeSet::new(),
        revoked: BTreeSet::new(),
        reinstated: BTreeMap::new(),
        origin,
        is_last: false,
    };
    let written = Instant::now();
    let declared = async { Ok(site.revocation_writer.declare(&nothing).await?) };
    let [one, two, three] = probes.each_mut().map(|probe| last_accepted(probe, text));
    let (_, one, two, three) = try_join!(declared, one, two, three)?;
    let last = [one, two, three].into_iter().flatten().max();
    Ok(last.map_or(Duration::ZERO, |last| last.duration_since(written)))
}

/// Asks until the key is refused; `None`: it was not accepted at all.
async fn last_accepted(probe: &mut Connection, key: &str) -> Result<Option<Instant>> {
    let mut last = None;
    let mut pace = interval(ASK_EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        match probe.status(key).await? {
            200 => last = Some(Instant::now()),
            // 429: one wrong key of many from this client.
            401 | 429 => return Ok(last),
            _ => bail!("{}", probe.answer_text()),
        }
    }
}

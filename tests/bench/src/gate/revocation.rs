//! How long a revoked key is still accepted, by three gates beside a steady load of many accounts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio::try_join;
use water_keystore::{Declaration, Entry};

use super::Scale;
use super::process::Gate;
use super::site::{Directory, STEADY_ACCOUNTS, Site};
use super::workload::{PLAN, TARGET};
use crate::load::{Connection, Expected, Load, Requests};
use crate::report::{Row, Target};
use crate::rounds::Figure;
use crate::spread::Spread;

/// Requests a second of the steady load, over all gates.
const RATE: f64 = 1_000.0;
/// Connections to each gate that carry it.
const CONNECTIONS: usize = 10;
const GATES: usize = 3;
/// Between two requests with a key that is about to be revoked.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// What one round's revocations showed, in milliseconds from the write to the last acceptance.
struct Round {
    median: f64,
    late: f64,
    latest: f64,
    /// Requests of the steady load that were accepted in a second.
    rate: f64,
}

/// Revokes the keys that come after those of the load, one after the other. What fails is told in the
/// rows.
pub async fn measure(site: &Site, scale: Scale) -> Vec<Row> {
    let rounds = under_load(site, scale).await;
    let figure = |value: fn(&Round) -> f64| match &rounds {
        Ok(rounds) => Figure::from(Spread::of(rounds.iter().map(value))),
        Err(error) => Figure::failed(error),
    };
    vec![
        Row::judged(
            "revocation, three gates: last accepted after the write in Redis, p99",
            "ms",
            figure(|round| round.late),
            Target::AtMost(250.0),
        ),
        Row::said(
            "revocation, three gates: last accepted after the write in Redis, p50",
            "ms",
            figure(|round| round.median),
        ),
        Row::said(
            "revocation, three gates: last accepted after the write in Redis, latest",
            "ms",
            figure(|round| round.latest),
        ),
        Row::said(
            "revocation, three gates: requests accepted beside it",
            "a second",
            figure(|round| round.rate),
        ),
    ]
}

async fn under_load(site: &Site, scale: Scale) -> Result<Vec<Round>> {
    let directory = &site.revocation;
    let gates = [
        site.gate_of(directory).await?,
        site.gate_of(directory).await?,
        site.gate_of(directory).await?,
    ];
    let [one, two, three] = gates.each_ref().map(|gate| steady(gate, directory));
    let accepted = Arc::default();
    let work = rounds(site, &gates, scale, &accepted);
    let work = one.beside(
        &accepted,
        two.beside(&accepted, three.beside(&accepted, work)),
    );
    work.await
}

/// One gate's part of the load.
fn steady(gate: &Gate, directory: &Directory) -> Load {
    let keys = directory.keys.texts[..STEADY_ACCOUNTS].into();
    Load {
        address: gate.address(),
        connections: CONNECTIONS,
        requests: Arc::new(Requests::new(TARGET, keys)),
        expected: Expected {
            status: 200,
            length: None,
        },
        pace: Some(Duration::from_secs_f64((GATES * CONNECTIONS) as f64 / RATE)),
    }
}

async fn rounds(
    site: &Site,
    gates: &[Gate; GATES],
    scale: Scale,
    accepted: &AtomicU64,
) -> Result<Vec<Round>> {
    let [one, two, three] = gates.each_ref().map(Gate::address);
    let mut probes = [
        Connection::open(one).await?,
        Connection::open(two).await?,
        Connection::open(three).await?,
    ];
    let directory = &site.revocation;
    let keys = directory.keys.entries(PLAN).zip(&*directory.keys.texts);
    let mut doomed = keys.skip(STEADY_ACCOUNTS);
    let mut rounds = Vec::new();
    for round in 1..=scale.rounds {
        eprintln!("revocations {round} of {}", scale.rounds);
        let (began, before) = (Instant::now(), accepted.load(Ordering::Relaxed));
        let mut millis = Vec::new();
        for (entry, text) in doomed.by_ref().take(scale.revocations) {
            millis.push(
                revoked_after(site, entry, text, &mut probes)
                    .await?
                    .as_secs_f64()
                    * 1e3,
            );
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

/// From just before the write to the last answer of any gate that accepted the key. An upper bound:
/// the answer's own way is in it.
async fn revoked_after(
    site: &Site,
    entry: Entry,
    text: &str,
    probes: &mut [Connection; GATES],
) -> Result<Duration> {
    let requests = Requests::new(TARGET, Arc::new([text.into()]));
    for probe in &mut *probes {
        let answer = probe.exchange(&requests).await?;
        ensure!(answer.status == 200, "{}", probe.answer_text());
    }
    let Entry { owner, origin, .. } = entry;
    let directory = site.store.directory(&site.revocation.instance)?;
    let snapshot = directory.owner_snapshot(&owner.uid, &origin, &[]).await?;
    // The owner holds this key only: what is not declared is revoked.
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
    let revoke = async { Ok(site.revocation_writer.declare(&nothing).await?) };
    let [one, two, three] = probes
        .each_mut()
        .map(|probe| last_accepted(probe, &requests));
    let (_, one, two, three) = try_join!(revoke, one, two, three)?;
    let last = [one, two, three].into_iter().flatten().max();
    Ok(last.map_or(Duration::ZERO, |last| last.duration_since(written)))
}

/// Asks until the key is refused; `None`: it was not accepted at all.
async fn last_accepted(probe: &mut Connection, requests: &Requests) -> Result<Option<Instant>> {
    let mut last = None;
    let mut pace = interval(ASK_EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        match probe.exchange(requests).await?.status {
            200 => last = Some(Instant::now()),
            // 429: one wrong key of many from this client.
            401 | 429 => return Ok(last),
            _ => bail!("{}", probe.answer_text()),
        }
    }
}

//! How long pages of JSON take at most, 99 of 100, while another account walks through its whole
//! history, beside the same without that walk.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::gated::Gated;
use super::{LARGE_KEY, LIMIT, SMALL_KEY, Scale, Site, target};
use crate::load::{Connection, Requests};
use crate::report::{Row, Target};
use crate::rounds::{Rounds, Turn, take_turns};

const ALONE: &str = "pages of JSON, p99";
const BESIDE: &str = "pages of JSON beside a walk, p99";

/// Each connection's pace. All together ask for a small part of what the service can answer: its
/// own queue is not what is measured.
const PACE: Duration = Duration::from_millis(40);

/// Compares both, in microseconds.
pub async fn measure(site: &Site, gated: &Gated) -> Result<Rounds> {
    let key = &gated.keys.texts[SMALL_KEY];
    let texts = (0..site.scale.small - LIMIT).step_by(7).map(|offset| {
        format!(
            "GET {} HTTP/1.1\r\nHost: water.example\r\nAuthorization: Bearer {key}\r\n\r\n",
            target(offset)
        )
    });
    let requests = Arc::new(Requests::whole(texts.collect()));
    let address = gated.gate.address();
    let asking = || p99(site.scale, address, &requests);
    let rounds = take_turns(&[ALONE, BESIDE], site.scale.rounds, async |index| {
        let cost = match index {
            0 => asking().await?,
            _ => tokio::select! {
                cost = asking() => cost?,
                ended = walk_on(gated) => match ended? {},
            },
        };
        Ok(Turn { cost, counted: 0.0 })
    })
    .await;
    Ok(rounds)
}

/// Walks again and again.
async fn walk_on(gated: &Gated) -> Result<Infallible> {
    loop {
        gated.walk(LARGE_KEY).await?;
    }
}

/// Asks for a slice, and returns the time that 99 of 100 answers took at most.
async fn p99(scale: Scale, address: SocketAddr, requests: &Arc<Requests>) -> Result<f64> {
    let (begin, slice) = (Instant::now(), scale.slice);
    let mut connections = JoinSet::new();
    for number in 0..scale.connections {
        let requests = Arc::clone(requests);
        // Each connection's turn comes at another time.
        let first = begin + PACE.mul_f64(number as f64 / scale.connections as f64);
        connections.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let mut turns = interval_at(first, PACE);
            turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut times = Vec::new();
            while begin.elapsed() < slice.warm_up + slice.counted {
                turns.tick().await;
                let asked = Instant::now();
                let answer = connection.exchange(&requests).await?;
                ensure!(answer.status == 200, "{}", connection.answer_text());
                if asked - begin >= slice.warm_up {
                    times.push(asked.elapsed());
                }
            }
            Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(asked) = connections.join_next().await {
        times.extend(asked??);
    }
    times.sort_unstable();
    let place = times.len().saturating_sub(1) * 99 / 100;
    let time = times.get(place).context("no page was answered")?;
    Ok(time.as_secs_f64() * 1e6)
}

/// The target, and what explains it.
pub fn rows(rounds: &Rounds) -> Vec<Row> {
    vec![
        Row::judged(
            "p99 of JSON of one account beside another one's walk ÷ without it",
            "×",
            rounds.ratio(BESIDE, ALONE),
            Target::AtMost(2.0),
        ),
        Row::said(ALONE, "µs", rounds.cost(ALONE)),
        Row::said(BESIDE, "µs", rounds.cost(BESIDE)),
    ]
}

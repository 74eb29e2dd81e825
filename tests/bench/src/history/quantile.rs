//! Time that 99 of 100 pages of JSON take at most, while another account walks through its whole history,
//! compared with the same without that walk.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::walk::{GatedService, Walker};
use super::{LARGE_KEY, LIMIT, SMALL_KEY, Site, target};
use crate::load::{Connection, Requests, Slice};
use crate::report::Row;
use crate::rounds::{Turn, take_turns};

const ALONE: &str = "pages of JSON, p99";
const BESIDE: &str = "pages of JSON beside a walk, p99";

/// Time from one request of a connection to its next. All together ask for a small part of what the server can
/// answer: its own queue is not measured.
const PACE: Duration = Duration::from_millis(40);

/// Compares both, in microseconds.
pub async fn measure(site: &Site, gated: &GatedService) -> Result<Vec<Row>> {
    let key = &gated.keys.texts[SMALL_KEY];
    let texts = (0..site.scale.small - LIMIT).step_by(7).map(|offset| {
        let target = target(offset);
        format!(
            "GET {target} HTTP/1.1\r\nHost: water.example\r\nAuthorization: Bearer {key}\r\n\r\n"
        )
    });
    let requests = Requests::whole(texts.collect());
    let rounds = take_turns(&[ALONE, BESIDE], site.scale.rounds, async |index| {
        let walking = match index {
            0 => None,
            _ => Some(EndlessWalk::begin(gated.walker(LARGE_KEY))?),
        };
        let late = p99(site, gated, &requests).await?;
        walking.map_or(Ok(()), EndlessWalk::end)?;
        Ok(Turn {
            cost: late.as_secs_f64() * 1e6,
            counted: 0.0,
        })
    })
    .await;
    let ratio = rounds.ratio(BESIDE, ALONE);
    let ratio_row = "p99 of JSON of one account beside another one's walk ÷ without it";
    Ok(vec![
        Row::new(ratio_row, "×", ratio).at_most(2.0),
        Row::new(ALONE, "µs", rounds.cost(ALONE)),
        Row::new(BESIDE, "µs", rounds.cost(BESIDE)),
    ])
}

/// Client that walks again and again, on a separate thread: its work on a page must not delay the requests
/// that are timed.
struct EndlessWalk {
    enough: oneshot::Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl EndlessWalk {
    fn begin(walker: Walker) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (enough, asked_to_end) = oneshot::channel();
        let walking = async move {
            loop {
                walker.walk().await?;
            }
        };
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    failed = walking => failed,
                    _ = asked_to_end => Ok(()),
                }
            })
        });
        Ok(Self { enough, thread })
    }

    /// Fails if a walk has failed.
    fn end(self) -> Result<()> {
        // Nobody hears it where a walk has failed.
        let _ = self.enough.send(());
        self.thread.join().expect("a walk does not panic")
    }
}

/// Asks for a slice, and returns the time that 99 of 100 answers took at most.
async fn p99(site: &Site, gated: &GatedService, requests: &Requests) -> Result<Duration> {
    let (begin, count) = (Instant::now(), site.scale.connections);
    let askers = (0..count).map(async |number| {
        let connection = Connection::open(gated.gate.address()).await?;
        // Connections have their turns at different times.
        let first = begin + PACE.mul_f64(number as f64 / count as f64);
        keep_asking(connection, requests, begin, first, site.scale.slice).await
    });
    let mut times = try_join_all(askers).await?.concat();
    times.sort_unstable();
    let place = times.len().saturating_sub(1) * 99 / 100;
    times.get(place).copied().context("nothing was answered")
}

async fn keep_asking(
    mut connection: Connection,
    requests: &Requests,
    begin: Instant,
    first: Instant,
    slice: Slice,
) -> Result<Vec<Duration>> {
    let mut turns = interval_at(first, PACE);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut times = Vec::new();
    while begin.elapsed() < slice.warm_up + slice.counted {
        turns.tick().await;
        let asked = Instant::now();
        let (status, _) = connection.exchange(requests).await?;
        ensure!(status == 200, "{}", connection.answer_text());
        if asked - begin >= slice.warm_up {
            times.push(asked.elapsed());
        }
    }
    Ok(times)
}

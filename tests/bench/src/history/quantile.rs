//! How long pages of JSON take at most, 99 of 100, while another account walks through its whole
//! history, beside the same without that walk.

use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::gated::{Gated, Walker};
use super::{LARGE_KEY, LIMIT, SMALL_KEY, Scale, Site, target};
use crate::load::{Connection, Requests};
use crate::paced;
use crate::report::{Row, Target};
use crate::rounds::{Rounds, Turn, take_turns};

const ALONE: &str = "pages of JSON, p99";
const BESIDE: &str = "pages of JSON beside a walk, p99";

/// Compares both, in microseconds.
pub async fn measure(site: &Site, gated: &Gated) -> Result<Rounds> {
    let key = &gated.keys.texts[SMALL_KEY];
    let texts = (0..site.scale.small - LIMIT).step_by(7).map(|offset| {
        format!(
            "GET {} HTTP/1.1\r\nHost: water.example\r\nAuthorization: Bearer {key}\r\n\r\n",
            target(offset)
        )
    });
    let requests = Requests::whole(texts.collect());
    let address = gated.gate.address();
    let asking = || p99(site.scale, address, &requests);
    let rounds = take_turns(&[ALONE, BESIDE], site.scale.rounds, async |index| {
        let cost = match index {
            0 => asking().await?,
            _ => {
                let walking = Walking::begin(gated.walker(LARGE_KEY))?;
                let cost = asking().await?;
                walking.end()?;
                cost
            }
        };
        Ok(Turn { cost, counted: 0.0 })
    })
    .await;
    Ok(rounds)
}

/// A client that walks again and again, on a thread of its own: its work on a page must not delay
/// the requests that are timed.
struct Walking {
    enough: oneshot::Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl Walking {
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

/// Asks for as long as a slice lasts, and returns the time that 99 of 100 answers took at most.
async fn p99(scale: Scale, address: SocketAddr, requests: &Requests) -> Result<f64> {
    let opened = (0..scale.connections).map(|_| Connection::open(address));
    let askers = try_join_all(opened).await?.into_iter().map(|mut opened| {
        async move || {
            let answer = opened.exchange(requests).await?;
            ensure!(answer.status == 200, "{}", opened.answer_text());
            Ok(())
        }
    });
    Ok(paced::p99(askers, scale.slice).await?.as_secs_f64() * 1e6)
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

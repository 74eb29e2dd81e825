//! Both services on one PostgreSQL, and readers that send requests all the time.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use tokio::process::{Child, Command};
use tokio::sync::{Barrier, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use water_database::writer::History;
use water_harness::{Answer, Postgres, wait_until};
use water_kit::{Database, Running, SOON, is_all_asked_for, problem, rows, stress};

use crate::{ANALYSES, start, until_status};

/// A list answered from memory.
const LIST: &str = "/api/v1/stress";

/// Number of readers of each service.
const EACH: usize = 2;

/// The gate waits 5 s for a service; the machine may add as much.
const GATES_PATIENCE: Duration = Duration::from_secs(10);

/// The service waits at least as long, for a connection or for a statement, before it refuses a page of a server that
/// works.
const SERVICES_PATIENCE: Duration = Duration::from_secs(2);

/// Longest time until everything works again (fault 28).
const RECOVERY: Duration = Duration::from_secs(5);

/// Returns the time that is allowed for what is promised: no such time can be judged beside other tests.
fn allowed(promised: Duration) -> Duration {
    if is_all_asked_for() { promised } else { SOON }
}

pub struct Site {
    pub database: Database,
    history: Arc<Running>,
    departements: Arc<Running>,
    page: Bytes,
    list: Bytes,
}

/// Readers of both services.
pub struct Readers {
    stop: watch::Sender<bool>,
    pages: JoinSet<Seen>,
    lists: JoinSet<Seen>,
}

/// Answers to readers.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    right: u32,
    refused: u32,
    /// Refusals that came before [`SERVICES_PATIENCE`], which no busy machine explains.
    refused_early: u32,
    slowest: Duration,
}

/// Answers to the readers of each service.
#[derive(Debug)]
pub struct Both {
    pages: Seen,
    lists: Seen,
}

impl Site {
    pub async fn on(postgres: Postgres) -> Self {
        Self::through(postgres, None).await
    }

    /// Starts the services, which reach the server through this address.
    pub async fn through(postgres: Postgres, way: Option<SocketAddr>) -> Self {
        let database = Database::on(postgres).await;
        let mut loader = database.writer().await;
        loader.history(History::Analyses, &rows(30)).await;
        loader.stress(1, &[stress("34", 3.0)]).await;
        drop(loader);
        // The harness' server commits without waiting for the disk: with a checkpoint this survives a kill.
        database.sql("CHECKPOINT");
        let url = database.url_through(way.unwrap_or(database.address()), "water_reader");
        let history = start(&url).ready().await;
        let departements = Running::start(&url, water_departements::start);
        let departements = departements.ready().await;
        let (page, list) = (history.get(ANALYSES).await, departements.get(LIST).await);
        assert_eq!((page.status, list.status), (200, 200));
        Self {
            database,
            history: history.into(),
            departements: departements.into(),
            page: page.body,
            list: list.body,
        }
    }

    /// Starts readers, and returns once each was answered.
    pub async fn readers(&self) -> Readers {
        let stop = watch::Sender::new(false);
        let served = Arc::new(Barrier::new(1 + 2 * EACH));
        let (mut pages, mut lists) = (JoinSet::new(), JoinSet::new());
        let ask = |service: &Arc<Running>, target, right: &Bytes| {
            let (service, served) = (Arc::clone(service), Arc::clone(&served));
            let (right, stop) = (right.clone(), stop.subscribe());
            async move {
                let answer = service.get(target).await;
                assert_eq!(answer.body, right);
                served.wait().await;
                read(service, target, right, stop).await
            }
        };
        for _ in 0..EACH {
            pages.spawn(ask(&self.history, ANALYSES, &self.page));
            lists.spawn(ask(&self.departements, LIST, &self.list));
        }
        served.wait().await;
        Readers { stop, pages, lists }
    }

    /// Waits until pages are refused, which makes no pod unready.
    pub async fn until_refused(&self) {
        until_status(&self.history, ANALYSES, 503).await;
        assert_eq!(self.history.admin("/ready").await.status, 200);
    }

    /// Waits until the page is served, but not longer than a recovery may take.
    pub async fn until_served(&self) {
        let served = async || {
            let answer = self.history.get(ANALYSES).await;
            ensure!(answer.body == self.page, "{answer:?}");
            Ok(())
        };
        let over = Instant::now();
        wait_until("the page", allowed(RECOVERY), served)
            .await
            .unwrap();
        // The report of faults reads this.
        println!("converged after {:.3} s", over.elapsed().as_secs_f64());
    }

    /// Ends the services' sessions and has others replace them until pages are refused.
    pub async fn until_crowded_out(&self, hogs: &mut Hogs) {
        let ended =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'water_reader'";
        let crowded = async || {
            for _ in 0..5 {
                hogs.add(&self.database)?;
            }
            self.database.server.sql(self.database.name(), ended)?;
            let answer = self.history.get(ANALYSES).await;
            ensure!(answer.status == 503, "{answer:?}");
            Ok(())
        };
        wait_until("the server to have no connection left", SOON, crowded)
            .await
            .unwrap();
    }
}

async fn read(
    service: Arc<Running>,
    target: &'static str,
    right: Bytes,
    stop: watch::Receiver<bool>,
) -> Seen {
    let mut seen = Seen::default();
    while !*stop.borrow() {
        let asked = Instant::now();
        let answer = service.get(target).await;
        let taken = asked.elapsed();
        seen.slowest = seen.slowest.max(taken);
        match answer.status {
            200 => {
                assert_eq!(answer.body, right);
                seen.right += 1;
            }
            _ => {
                unavailable(&answer);
                seen.refused += 1;
                seen.refused_early += u32::from(taken < SERVICES_PATIENCE);
            }
        }
    }
    seen
}

fn unavailable(answer: &Answer) {
    let (status, code, _) = problem(answer);
    assert_eq!((status, code), (503, "dependency_unavailable".into()));
}

impl Readers {
    /// Stops the readers.
    pub async fn stop(self) -> Both {
        self.stop.send_replace(true);
        Both {
            pages: all(self.pages.join_all().await),
            lists: all(self.lists.join_all().await),
        }
    }
}

fn all(seen: Vec<Seen>) -> Seen {
    seen.into_iter().fold(Seen::default(), |all, one| Seen {
        right: all.right + one.right,
        refused: all.refused + one.refused,
        refused_early: all.refused_early + one.refused_early,
        slowest: all.slowest.max(one.slowest),
    })
}

impl Both {
    /// Checks that every page was served or refused in time, where nothing runs beside them.
    pub fn assert_in_time(self) {
        println!("{self:?}");
        let is_in_time = self.pages.slowest < GATES_PATIENCE;
        assert!(is_in_time || !is_all_asked_for(), "{self:?}");
        self.assert_lists();
    }

    /// Checks that pages were served all the time. Beside other tests the service may wait in vain for a few.
    pub fn assert_uninterrupted(self) {
        println!("{self:?}");
        let pages = self.pages;
        let most = if is_all_asked_for() {
            0
        } else {
            pages.right / 20
        };
        assert!(pages.right > 0 && pages.refused <= most, "{self:?}");
        assert_eq!(pages.refused_early, 0, "{self:?}");
        self.assert_lists();
    }

    fn assert_lists(&self) {
        let Seen { right, refused, .. } = self.lists;
        assert!(right > 0 && refused == 0, "départements noticed: {self:?}");
    }
}

/// Idle sessions.
#[derive(Default)]
pub struct Hogs(Vec<Child>);

impl Hogs {
    /// Adds a session, if there is room.
    fn add(&mut self, database: &Database) -> Result<()> {
        let mut session = database.server.command("psql");
        session
            .args(["-X", "-q", "-d", &database.url_as("water_writer")])
            .stdin(Stdio::piped())
            .stderr(Stdio::null());
        self.0
            .push(Command::from(session).kill_on_drop(true).spawn()?);
        Ok(())
    }
}

//! Histories from a streaming replica: reads, and answers while it lags or is down. Départements are read from the
//! primary.

use anyhow::ensure;
use serde_json::Value;
use water_database::writer::History;
use water_harness::{Postgres, wait_until};
use water_kit::{Database, Loader, Running, SOON, problem, row, rows};

use crate::{ANALYSES, bulk, link, start, token, until_status};

const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_reader'";

/// A primary and its replica.
pub struct Site {
    pub database: Database,
    pub replica: Postgres,
    pub loader: Loader,
}

impl Site {
    /// Starts a primary and a replica with three analyses.
    pub async fn start() -> Self {
        let database = Database::alone().await;
        let mut loader = database.writer().await;
        loader.history(History::Analyses, &rows(3)).await;
        let site = Self {
            replica: database.server.replica().await.unwrap(),
            database,
            loader,
        };
        site.caught_up().await;
        site
    }

    /// Starts the service with these servers in `replica-url`, of which it uses the first that answers.
    async fn service_on(&self, servers: &[&Postgres]) -> Running {
        let servers = servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port()));
        let servers = servers.collect::<Vec<_>>().join(",");
        let name = self.database.name();
        start(&format!("postgres://water_reader@{servers}/{name}"))
            .ready()
            .await
    }

    /// Waits until the replica has everything that the primary has.
    pub async fn caught_up(&self) {
        // The harness' server commits without writing its log at once.
        self.database.sql("CHECKPOINT");
        let end = self.database.sql("SELECT pg_current_wal_flush_lsn()");
        let has = format!("SELECT pg_last_wal_replay_lsn() >= '{end}'::pg_lsn");
        wait_until("the replica", SOON, async || {
            ensure!(self.replica.sql("postgres", &has)? == "t", "behind {end}");
            Ok(())
        })
        .await
        .unwrap();
    }

    /// Lets the replica go on receiving, and show nothing of it.
    fn lag(&self) {
        self.replica
            .sql("postgres", "SELECT pg_wal_replay_pause()")
            .unwrap();
    }

    async fn catch_up(&self) {
        self.replica
            .sql("postgres", "SELECT pg_wal_replay_resume()")
            .unwrap();
        self.caught_up().await;
    }
}

/// `total` and the ids of a page of JSON.
async fn page(service: &Running) -> (u64, Vec<String>) {
    let answer = service.get(ANALYSES).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json().unwrap();
    let data = body["data"].as_array().unwrap();
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    (
        body["total"].as_u64().unwrap(),
        data.iter().map(id).collect(),
    )
}

fn ids(ids: &[&str]) -> (u64, Vec<String>) {
    (
        ids.len() as u64,
        ids.iter().copied().map(str::to_owned).collect(),
    )
}

#[tokio::test]
async fn histories_are_read_from_the_replica_even_while_the_primary_is_away() {
    let site = Site::start().await;
    let service = site.service_on(&[&site.replica]).await;
    assert_eq!(page(&service).await, ids(&["r0002", "r0001", "r0000"]));
    let sessions = |server: &Postgres| server.sql("postgres", SESSIONS).unwrap();
    assert_eq!(sessions(&site.database.server), "0");
    assert_ne!(sessions(&site.replica), "0");
    site.database.server.kill().await.unwrap();
    assert_eq!(page(&service).await, ids(&["r0002", "r0001", "r0000"]));
    assert_eq!(bulk(&service, ANALYSES, "csv").await.status, 200);
    assert_eq!(service.get("/api/v1/sources").await.status, 200);
}

#[tokio::test]
async fn a_replica_that_lags_shows_a_load_later_and_whole() {
    let mut site = Site::start().await;
    let service = site.service_on(&[&site.replica]).await;
    site.lag();
    let newer = [row("r0001", 9_000), row("r0003", 8_000)];
    site.loader.history(History::Analyses, &newer).await;
    assert_eq!(page(&service).await, ids(&["r0002", "r0001", "r0000"]));
    site.catch_up().await;
    assert_eq!(
        page(&service).await,
        ids(&["r0001", "r0003", "r0002", "r0000"])
    );
}

#[tokio::test]
async fn a_replica_that_is_behind_a_token_or_cursor_is_503_until_it_has_caught_up() {
    let mut site = Site::start().await;
    let lagging = site.service_on(&[&site.replica]).await;
    let current = site.service_on(&[&site.database.server]).await;
    site.lag();
    site.loader
        .history(History::Analyses, &[row("r0003", 8_000)])
        .await;
    let begun = bulk(&current, &format!("{ANALYSES}?limit=2"), "csv").await;
    let asked = [
        format!("{ANALYSES}?changedSince={}", token(&begun)),
        link(&begun, "next").unwrap(),
    ];
    for target in &asked {
        let answer = bulk(&lagging, target, "csv").await;
        let (status, code, _) = problem(&answer);
        assert_eq!((status, code), (503, "dependency_unavailable".into()));
        assert!(answer.header("retry-after").is_some());
    }
    // The replica answers from the state that it has: a new walk, and changes since a state that it has reached.
    let known = token(&bulk(&lagging, ANALYSES, "csv").await);
    site.catch_up().await;
    for target in &asked {
        assert_eq!(bulk(&lagging, target, "csv").await.status, 200);
    }
    let news = bulk(&lagging, &format!("{ANALYSES}?changedSince={known}"), "csv").await;
    assert!(news.text().unwrap().contains("\r\nr0003,"), "{news:?}");
}

#[tokio::test]
async fn a_replica_that_is_away_is_503_and_touches_no_departement_and_is_read_again_when_it_is_back()
 {
    let site = Site::start().await;
    let service = site.service_on(&[&site.replica]).await;
    let reader = site.database.reader_url();
    let departements = Running::start(&reader, water_departements::start);
    let departements = departements.ready().await;
    site.replica.kill().await.unwrap();
    let answer = until_status(&service, ANALYSES, 503).await;
    assert_eq!(problem(&answer).1, "dependency_unavailable");
    // Nothing is loaded: the primary answers 404.
    assert_eq!(departements.get("/api/v1/stress").await.status, 404);
    assert_eq!(service.admin("/ready").await.status, 200);

    site.replica.start_again().await.unwrap();
    until_status(&service, ANALYSES, 200).await;
    assert_eq!(page(&service).await, ids(&["r0002", "r0001", "r0000"]));
}

#[tokio::test]
async fn a_url_that_names_the_primary_second_is_served_by_it_while_the_replica_is_away() {
    let site = Site::start().await;
    let service = site
        .service_on(&[&site.replica, &site.database.server])
        .await;
    assert_eq!(site.database.sql(SESSIONS), "0");
    site.replica.kill().await.unwrap();
    let served = async || {
        let answer = service.get(ANALYSES).await;
        ensure!(answer.status == 200, "{answer:?}");
        ensure!(site.database.sql(SESSIONS) != "0", "not by the primary");
        Ok(())
    };
    wait_until("the history", SOON, served).await.unwrap();
    assert_eq!(page(&service).await, ids(&["r0002", "r0001", "r0000"]));
}

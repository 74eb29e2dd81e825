//! The service on a database of the test's own, and rows to load.

use std::sync::Arc;

use anyhow::ensure;
use water_database::Writer;
use water_database::writer::{Batch, History, HistoryRow};
use water_domain::{Number, Timestamp};
use water_harness::{Answer, Postgres, wait_until};

pub use water_kit::{Running, SOON, Signature, migrated, problem, writer};

/// The service, in this process, on a database that may be away.
pub fn start(postgres_url: &str) -> Running {
    Running::start(postgres_url, water_history::start)
}

/// The service on an empty database of a shared server, and a writer for it.
pub async fn empty() -> (Running, Writer) {
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let service = start(&database.url_as("water_reader")).ready().await;
    (service, writer(&database).await)
}

/// A page of `acme` in a form that the gate names.
pub async fn bulk(service: &Running, target: &str, form: &str) -> Answer {
    let headers = [("X-Water-Format", form)];
    service.request("GET", target, &headers).await
}

/// The target of one relation of the `Link` header.
pub fn link(answer: &Answer, relation: &str) -> Option<String> {
    let links = answer.header("link").unwrap_or_default().to_owned();
    let link = links
        .split(", ")
        .find(|link| link.ends_with(&format!("; rel=\"{relation}\"")))?;
    Some(link[1..link.find('>').unwrap()].to_owned())
}

/// The token of a walk's first page.
pub fn token(answer: &Answer) -> String {
    answer.header("x-changes-token").unwrap().to_owned()
}

/// A row of a history: what matters to its place, and a score.
#[derive(Clone, Debug)]
pub struct Row {
    pub account: &'static str,
    pub id: String,
    /// Milliseconds after the beginning of 2026.
    pub at: i64,
    pub score: f64,
    pub company: &'static str,
}

/// A row of `acme`.
pub fn row(id: impl ToString, at: i64) -> Row {
    Row {
        account: "acme",
        id: id.to_string(),
        at,
        score: 61.5,
        company: "Eaux de l'Hérault",
    }
}

/// `acme`'s rows `r0000`, `r0001` … a second apart; the last is the newest.
pub fn rows(count: i64) -> Vec<Row> {
    (0..count)
        .map(|number| row(format!("r{number:04}"), number * 1000))
        .collect()
}

/// Loads rows into a history.
pub async fn load(writer: &mut Writer, history: History, rows: &[Row]) {
    let mut batch = Batch::default();
    for (line, row) in (2..).zip(rows) {
        batch.push(&HistoryRow {
            line,
            account_id: row.account,
            id: &row.id,
            company_name: row.company,
            sector_code: "36.00Z",
            dept_code: "34",
            score: Number::try_from(row.score).unwrap(),
            rating: "B+",
            created_at: Timestamp::from_millis(1_767_225_600_000 + row.at).unwrap(),
        });
    }
    let mut staging = writer.stage(history).await.unwrap();
    staging.push(batch).await.unwrap();
    let as_of = Timestamp::parse("2026-07-01T00:00:00Z").unwrap();
    staging.finish(as_of, &water_kit::load()).await.unwrap();
}

/// Locks the analyses, so that each question about them waits.
pub async fn lock_analyses(postgres: &Arc<Postgres>, name: &str) {
    const LOCK: &str = "BEGIN; LOCK water.analyses IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)";
    const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted \
                         AND relation = 'water.analyses'::regclass";
    let (holder, held) = (Arc::clone(postgres), name.to_owned());
    std::thread::spawn(move || holder.sql(&held, LOCK));
    let locked = async || {
        ensure!(postgres.sql(name, LOCKS)? == "1", "not locked");
        Ok(())
    };
    wait_until("the lock", SOON, locked).await.unwrap();
}

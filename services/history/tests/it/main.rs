//! The service over real HTTP, on a real PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod answers;
mod binary;
mod bulk;
mod bulk_refusals;
mod changes;
mod connections;
mod leaving;
mod outages;
mod pages;
mod pooler;
mod replica;
mod restores;
mod server_faults;
mod slow_pages;
mod sources;
mod turns;

use std::sync::Arc;

use anyhow::ensure;
use water_harness::{Answer, wait_until};
use water_kit::{Database, Loader, Running, SOON};

/// Analyses of `acme`, and its audits.
const ANALYSES: &str = "/api/v1/hydrorisk";
const AUDITS: &str = "/api/v1/conformite";

/// Starts the service in this process, on a database that may be down.
fn start(url: &str) -> Running {
    Running::start(url, water_history::start)
}

/// Starts the service on an empty database of a shared server, and a loader for it.
async fn empty() -> (Running, Loader) {
    let database = Database::new().await;
    let service = start(&database.reader_url()).ready().await;
    (service, database.writer().await)
}

/// Requests a page of `acme` in a form that the gate names.
async fn bulk(service: &Running, target: &str, form: &str) -> Answer {
    let headers = [("X-Water-Format", form)];
    service.request("GET", target, &headers).await
}

/// The target of one relation of the `Link` header.
fn link(answer: &Answer, relation: &str) -> Option<String> {
    let links = answer.header("link").unwrap_or_default().to_owned();
    let link = links
        .split(", ")
        .find(|link| link.ends_with(&format!("; rel=\"{relation}\"")))?;
    Some(link[1..link.find('>').unwrap()].to_owned())
}

/// The token of a page.
fn token(answer: &Answer) -> String {
    answer.header("x-changes-token").unwrap().to_owned()
}

/// Waits until an answer has this status.
async fn until_status(service: &Running, target: &str, status: u16) -> Answer {
    let answered = async || {
        let answer = service.get(target).await;
        ensure!(answer.status == status, "{answer:?}");
        Ok(answer)
    };
    let what = format!("{status} of {target}");
    wait_until(&what, SOON, answered).await.unwrap()
}

/// A lock on the analyses, held until its end, so that each query of them waits.
struct Lock(Database);

impl Lock {
    async fn analyses(database: &Database) -> Self {
        const LOCK: &str =
            "BEGIN; LOCK water.analyses IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)";
        let (server, name) = (Arc::clone(&database.server), database.name().to_owned());
        // The statement ends with an error, when the lock is released.
        std::thread::spawn(move || server.sql(&name, LOCK));
        let lock = Self(database.clone());
        lock.has("granted", "1").await;
        lock
    }

    /// Waits until this many locks are `granted`, or `NOT granted`.
    async fn has(&self, which: &str, count: &str) {
        let sql = format!(
            "SELECT count(*) FROM pg_locks WHERE {which} AND relation = 'water.analyses'::regclass \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        );
        let locks = async || {
            let locks = self.0.sql(&sql);
            ensure!(locks == count, "{locks} are {which}");
            Ok(())
        };
        wait_until("the locks", SOON, locks).await.unwrap();
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE granted \
             AND mode = 'AccessExclusiveLock' AND relation = 'water.analyses'::regclass \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        // A test that has failed may have ended the server before.
        let _ = self.0.server.sql(self.0.name(), END);
    }
}

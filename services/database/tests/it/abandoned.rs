//! A query whose client left while it waited for a lock.

use anyhow::{bail, ensure};
use water_database::{Database, history};
use water_harness::wait_until;

use crate::SOON;
use crate::fixture::{Fixture, account, page};

/// The reader's queries that the server works on.
const UNDER_WAY: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_reader' \
                         AND datname = current_database() AND state = 'active'";

/// The process of the session that waits for the lock.
const WAITING: &str = "SELECT pid FROM pg_locks WHERE NOT granted \
                       AND relation = 'water.analyses_accounts'::regclass \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Asks for a page that must wait for a lock, and leaves. Fails unless the server ends the query while the lock is
/// still held, and before the statement's timeout.
pub async fn abandon(fixture: &Fixture, reader: &Database) {
    let _lock = fixture.hold("LOCK TABLE water.analyses_accounts").await;
    let acme = account("acme");
    let log = || fixture.postgres.process().log();
    // On a busy machine the timeout of 2 s may come first: another query is abandoned then.
    let cancelled = async || {
        let known = log().lines().count();
        let waiting = async || match fixture.sql(WAITING) {
            session if session.is_empty() => bail!("no query waits"),
            session => Ok(format!("[{session}]")),
        };
        let session = tokio::select! {
            answer = history::analyses(reader, &acme, page(20, 0)) => bail!("{answer:?}"),
            session = wait_until("the query to wait", SOON, waiting) => session?,
        };
        let ended = async || match fixture.sql(UNDER_WAY).as_str() {
            "0" => Ok(()),
            count => bail!("{count} queries"),
        };
        wait_until("the end of the query", SOON, ended).await?;
        let log = log();
        let mut said = log.lines().skip(known);
        let overdue =
            said.find(|line| line.contains(&session) && line.contains("statement timeout"));
        ensure!(overdue.is_none(), "{overdue:?}");
        Ok(())
    };
    wait_until("a query to be cancelled", SOON, cancelled)
        .await
        .unwrap();
}

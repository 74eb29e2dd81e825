//! A query whose client left while it waited for a lock.

use std::time::Duration;

use tokio::time::timeout;
use water_database::{Database, history};
use water_harness::wait_until;

use crate::fixture::{Fixture, account, page};

/// The reader's queries that the server works on.
const UNDER_WAY: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_reader' \
                         AND datname = current_database() AND state = 'active'";

/// Asks for a page that must wait for a lock, and leaves. Fails unless the server ends the query
/// `within` this time, while the lock is still held.
pub async fn abandon(fixture: &Fixture, reader: &Database, within: Duration) {
    let _lock = fixture.hold("LOCK TABLE water.analyses_accounts").await;
    let acme = account("acme");
    let asked = history::analyses(reader, &acme, page(20, 0));
    assert!(timeout(Duration::from_millis(200), asked).await.is_err());
    let ended = async || match fixture.sql(UNDER_WAY).as_str() {
        "0" => Ok(()),
        count => anyhow::bail!("{count} queries"),
    };
    wait_until("the end of the query", within, ended)
        .await
        .unwrap();
}

//! A history's tables, while the dataset's lock is held.

use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::error::{Attempt, Error};
use crate::writer::load::History;

/// Adapts SQL written for `water.history` to this history's tables, which have the same shapes.
pub(super) fn named(history: History, sql: &str) -> String {
    sql.replace("water.history", &format!("water.{history}"))
}

/// Runs SQL written for `water.history` and counts the rows.
pub(super) async fn execute(
    transaction: &Transaction<'_>,
    history: History,
    attempt: &'static str,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<u64, Error> {
    let sql = named(history, sql);
    let executed = transaction.execute(&sql, parameters).await;
    executed.attempting(attempt)
}

/// Returns the version that the dataset has once this transaction has changed it.
pub(super) async fn next_version(
    transaction: &Transaction<'_>,
    history: History,
) -> Result<i64, Error> {
    let next = "SELECT version + 1 FROM water.datasets WHERE name = $1";
    let row = transaction.query_one(next, &[&history.as_str()]).await;
    Ok(row.attempting("reading the dataset's version")?.get(0))
}

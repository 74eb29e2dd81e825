//! Deletes single rows. The list of deletions is kept: followers of changes read it, and no file as old brings a row back.

use std::collections::BTreeSet;

use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use water_domain::{AccountId, Timestamp};

use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::Writer;
use crate::writer::history::{places, sources, table};
use crate::writer::load::{History, Load, LoadError, Outcome};
use crate::writer::state::{self, Input};

/// Result of a deletion or of its dry run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeletionOutcome {
    /// Rows that were removed.
    pub removed: u64,
    /// Ids that the account does not have, in byte order.
    pub unknown: Vec<String>,
}

const ATTEMPT: &str = "deleting rows";

impl Writer {
    /// Deletes the account's rows with these ids from a history, all in one transaction; an id
    /// that is not there is no error. The deletion describes the moment `as_of`: a file of a later one that has such
    /// a row brings it back. The load's digest and source are those of the list.
    pub async fn delete(
        &mut self,
        history: History,
        account: &AccountId,
        ids: &[String],
        as_of: Timestamp,
        load: &Load,
    ) -> Result<DeletionOutcome, LoadError> {
        let input = Input::history(history);
        let transaction = self.begin_load(input.dataset, load).await?;
        let deleted = compare(&transaction, history, account, ids).await?;
        if load.dry_run {
            return Ok(deleted);
        }
        let parameters: [&(dyn ToSql + Sync); 3] = [&account.as_str(), &ids, &Moment(as_of)];
        table::execute(&transaction, history, ATTEMPT, DEFER, &parameters).await?;
        if deleted.removed == 0 {
            state::commit(transaction).await?;
            return Ok(deleted);
        }
        remove(&transaction, history, account, ids, as_of).await?;
        places::correct(&transaction, history).await?;
        sources::forget_gone(&transaction, history, account).await?;
        let outcome = Outcome {
            rows: ids.len() as u64,
            removed: deleted.removed,
            ..Outcome::default()
        };
        state::finish(transaction, input, None, load, &outcome).await?;
        Ok(deleted)
    }
}

async fn compare(
    transaction: &Transaction<'_>,
    history: History,
    account: &AccountId,
    ids: &[String],
) -> Result<DeletionOutcome, Error> {
    let sql = table::named(history, STORED);
    let rows = transaction.query(&sql, &[&account.as_str(), &ids]).await;
    let rows = rows.attempting(ATTEMPT)?;
    let stored: BTreeSet<&str> = rows.iter().map(|row| row.get("id")).collect();
    let asked: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    Ok(DeletionOutcome {
        removed: stored.len() as u64,
        unknown: asked
            .difference(&stored)
            .map(|id| (*id).to_owned())
            .collect(),
    })
}

/// Moves the rows' keys to the list of deletions, and names the account in `moved`.
async fn remove(
    transaction: &Transaction<'_>,
    history: History,
    account: &AccountId,
    ids: &[String],
    as_of: Timestamp,
) -> Result<(), Error> {
    let version = table::next_version(transaction, history).await?;
    table::execute(transaction, history, ATTEMPT, MOVED, &[]).await?;
    let parameters: &[&(dyn ToSql + Sync)] = &[&account.as_str(), &ids, &version, &Moment(as_of)];
    table::execute(transaction, history, ATTEMPT, REMOVE, parameters).await?;
    Ok(())
}

const STORED: &str = "SELECT id FROM water.history WHERE account_id = $1 AND id = ANY($2)";

/// Rows that are deleted already may come back later only.
const DEFER: &str = "UPDATE water.history_deletions SET as_of = $3 \
    WHERE account_id = $1 AND id = ANY($2) AND as_of < $3";

const MOVED: &str = "CREATE TEMPORARY TABLE moved \
    (account_id text COLLATE \"C\" NOT NULL, since timestamptz NOT NULL, added bigint NOT NULL) ON COMMIT DROP";

/// Deletes rows and records their keys. An id that was deleted before and came back has an entry already. The time is
/// the clock's, not the transaction's, which may have waited for the lock since.
const REMOVE: &str = "WITH gone AS ( \
        DELETE FROM water.history WHERE account_id = $1 AND id = ANY($2) RETURNING account_id, id, created_at \
    ), noted AS ( \
        INSERT INTO water.history_deletions AS known (account_id, id, version, deleted_at, as_of) \
        SELECT account_id, id, $3, clock_timestamp(), $4 FROM gone \
        ON CONFLICT (account_id, id) DO UPDATE SET version = excluded.version, deleted_at = excluded.deleted_at, \
            as_of = greatest(known.as_of, excluded.as_of) \
    ) \
    INSERT INTO moved SELECT account_id, min(created_at), -count(*) FROM gone GROUP BY account_id";

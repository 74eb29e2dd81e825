//! Deleting single rows. Followers of changes hear of them for 90 days.

use std::collections::BTreeSet;

use tokio_postgres::Transaction;
use water_domain::AccountId;

use crate::error::{Attempt, Error};
use crate::writer::Writer;
use crate::writer::history::{places, table};
use crate::writer::load::{History, Load, LoadError, Outcome};
use crate::writer::state::{self, Input};

/// What a deletion did, or would have done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deleted {
    /// Rows that are gone.
    pub removed: u64,
    /// Ids that the account does not have, in byte order.
    pub unknown: Vec<String>,
}

const ATTEMPT: &str = "deleting rows";

impl Writer {
    /// Deletes the account's rows with these ids from a history, all in one transaction; an id
    /// that is not there is no error. A later file that has such a row brings it back. The load's
    /// digest and source are those of the list.
    pub async fn delete(
        &mut self,
        history: History,
        account: &AccountId,
        ids: &[String],
        load: &Load,
    ) -> Result<Deleted, LoadError> {
        let input = Input::history(history);
        let transaction = self.begin_load(input.dataset, load).await?;
        let deleted = compare(&transaction, history, account, ids).await?;
        if load.dry_run || deleted.removed == 0 {
            return Ok(deleted);
        }
        remove(&transaction, history, account, ids).await?;
        places::correct(&transaction, history).await?;
        trim(&transaction, history).await?;
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
) -> Result<Deleted, Error> {
    let sql = table::named(history, STORED);
    let rows = transaction.query(&sql, &[&account.as_str(), &ids]).await;
    let rows = rows.attempting(ATTEMPT)?;
    let stored: BTreeSet<&str> = rows.iter().map(|row| row.get("id")).collect();
    let asked: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    Ok(Deleted {
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
) -> Result<(), Error> {
    let version = table::next_version(transaction, history).await?;
    table::execute(transaction, history, ATTEMPT, MOVED, &[]).await?;
    let parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&account.as_str(), &ids, &version];
    table::execute(transaction, history, ATTEMPT, REMOVE, parameters).await?;
    Ok(())
}

/// Forgets deletions that no token is old enough to ask for: tokens are good for 90 days.
pub(super) async fn trim(transaction: &Transaction<'_>, history: History) -> Result<(), Error> {
    const ATTEMPT: &str = "forgetting old deletions";
    table::execute(transaction, history, ATTEMPT, TRIM, &[]).await?;
    Ok(())
}

const STORED: &str = "SELECT id FROM water.history WHERE account_id = $1 AND id = ANY($2)";

const MOVED: &str = "CREATE TEMPORARY TABLE moved \
    (account_id text COLLATE \"C\" NOT NULL, since timestamptz NOT NULL, added bigint NOT NULL) ON COMMIT DROP";

/// An id that was deleted before and came back has its entry already. The clock and not the
/// transaction's time: the transaction may have waited for the lock since.
const REMOVE: &str = "WITH gone AS ( \
        DELETE FROM water.history WHERE account_id = $1 AND id = ANY($2) RETURNING account_id, id, created_at \
    ), noted AS ( \
        INSERT INTO water.history_deletions (account_id, id, version, deleted_at) \
        SELECT account_id, id, $3, clock_timestamp() FROM gone \
        ON CONFLICT (account_id, id) DO UPDATE SET version = excluded.version, deleted_at = excluded.deleted_at \
    ) \
    INSERT INTO moved SELECT account_id, min(created_at), -count(*) FROM gone GROUP BY account_id";

/// One day more than tokens live, for a clock that was set back.
const TRIM: &str =
    "DELETE FROM water.history_deletions WHERE deleted_at < clock_timestamp() - interval '91 days'";

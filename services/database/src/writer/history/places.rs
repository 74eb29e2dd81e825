//! Totals and anchors of the accounts in which rows were added, moved or removed.
//!
//! The temporary table `moved` names them: `account_id`, `since` (the earliest `created_at` that a row left or took)
//! and `added` (rows added less rows removed).

use tokio_postgres::Transaction;

use crate::error::Error;
use crate::writer::history::table;
use crate::writer::load::History;

/// Corrects totals and anchors.
pub(super) async fn correct(transaction: &Transaction<'_>, history: History) -> Result<(), Error> {
    for (attempt, sql) in [
        ("counting the accounts' rows", TOTALS),
        ("dropping anchors", BASE),
        ("dropping anchors", DROP_ANCHORS),
        ("setting anchors", SET_ANCHORS),
    ] {
        table::execute(transaction, history, attempt, sql, &[]).await?;
    }
    Ok(())
}

const TOTALS: &str = "INSERT INTO water.history_accounts AS account (account_id, total) \
    SELECT account_id, added FROM moved WHERE added <> 0 \
    ON CONFLICT (account_id) DO UPDATE SET total = account.total + excluded.total";

/// Finds the last anchor of each such account before the oldest row that moved, which is still right.
const BASE: &str = "CREATE TEMPORARY TABLE base ON COMMIT DROP AS \
    SELECT moved.account_id, coalesce(anchor.ordinal, 0) AS ordinal, \
           coalesce(anchor.created_at, '-infinity') AS created_at, coalesce(anchor.id, '') AS id, \
           anchor.ordinal IS NOT NULL AS stays \
    FROM moved LEFT JOIN LATERAL ( \
        SELECT ordinal, created_at, id FROM water.history_anchors AS anchor \
        WHERE anchor.account_id = moved.account_id AND anchor.created_at < moved.since \
        ORDER BY ordinal DESC LIMIT 1 \
    ) AS anchor ON true";

const DROP_ANCHORS: &str = "DELETE FROM water.history_anchors AS anchor USING base \
    WHERE anchor.account_id = base.account_id AND (anchor.ordinal > base.ordinal OR NOT base.stays)";

/// Counts from that anchor, and keeps every 64th row.
const SET_ANCHORS: &str = "INSERT INTO water.history_anchors (account_id, ordinal, created_at, id) \
    SELECT base.account_id, row.ordinal, row.created_at, row.id \
    FROM base CROSS JOIN LATERAL ( \
        SELECT record.created_at, record.id, \
               base.ordinal + row_number() OVER (ORDER BY record.created_at, record.id) - 1 AS ordinal \
        FROM water.history AS record \
        WHERE record.account_id = base.account_id \
          AND (record.created_at, record.id) >= (base.created_at, base.id) \
    ) AS row \
    WHERE row.ordinal % 64 = 0 AND (row.ordinal > base.ordinal OR NOT base.stays)";

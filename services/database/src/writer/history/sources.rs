//! Sources of each account's rows: the newest file that had some of them.

use tokio_postgres::Transaction;
use water_domain::{AccountId, Timestamp};

use crate::error::Error;
use crate::moment::Moment;
use crate::writer::history::table;
use crate::writer::load::{History, Load};

/// Notes the load for the accounts whose rows it brought or confirmed, after the merge; if it `is_again` the last one, for
/// those only that have no source yet.
pub(super) async fn note(
    transaction: &Transaction<'_>,
    history: History,
    as_of: Timestamp,
    load: &Load,
    is_again: bool,
) -> Result<(), Error> {
    let attempt = "noting the sources of the accounts' rows";
    let is_shown = load.licence.is_some() || load.source_url.is_some();
    let source = is_shown.then_some(&load.source);
    table::execute(
        transaction,
        history,
        attempt,
        NOTE,
        &[
            &Moment(as_of),
            &source,
            &load.source_url,
            &load.licence,
            &load.synthetic,
            &is_again,
            &history.as_str(),
        ],
    )
    .await?;
    Ok(())
}

/// Forgets the source of an account of which it has no row any more, after a deletion. Files of the same date are not
/// told apart.
pub(super) async fn forget_gone(
    transaction: &Transaction<'_>,
    history: History,
    account: &AccountId,
) -> Result<(), Error> {
    let attempt = "forgetting a file whose rows were deleted";
    table::execute(transaction, history, attempt, FORGET, &[&account.as_str()]).await?;
    Ok(())
}

/// The date becomes that of the newest row, so that no older file than the row's becomes the source.
const FORGET: &str = "UPDATE water.history_accounts AS account \
    SET as_of = (SELECT max(stored.as_of) FROM water.history AS stored WHERE stored.account_id = $1), \
        loaded_at = NULL, source = NULL, source_url = NULL, licence = NULL \
    WHERE account.account_id = $1 AND account.as_of IS NOT NULL AND NOT EXISTS ( \
        SELECT FROM water.history AS stored WHERE stored.account_id = $1 AND stored.as_of = account.as_of)";

/// Rows that a later file had are not this one's. A label is stored beside a licence or a link only: without `--source`
/// it is the file's name, which readers of the table must not see. A measured file makes an account's rows measured once
/// it has all of them. Rows whose file is not known may be of any that the history had.
const NOTE: &str = "UPDATE water.history_accounts AS account \
    SET as_of = CASE WHEN account.as_of > $1 THEN account.as_of ELSE $1 END, \
        loaded_at = CASE WHEN account.as_of > $1 THEN loaded_at ELSE now() END, \
        source = CASE WHEN account.as_of > $1 THEN source ELSE $2 END, \
        source_url = CASE WHEN account.as_of > $1 THEN source_url ELSE $3 END, \
        licence = CASE WHEN account.as_of > $1 THEN licence ELSE $4 END, \
        synthetic = $5 OR confirmed < total AND coalesce(account.synthetic, EXISTS ( \
            SELECT FROM water.loads WHERE loads.dataset = $7 AND loads.synthetic)) \
    FROM (SELECT account_id, sum(rows) AS confirmed FROM ( \
              SELECT account_id, count(*) AS rows FROM staged GROUP BY account_id \
              UNION ALL \
              SELECT account_id, -count(*) FROM found WHERE older GROUP BY account_id \
          ) AS part GROUP BY account_id HAVING sum(rows) > 0) AS file \
    WHERE account.account_id = file.account_id AND (loaded_at IS NULL OR NOT $6)";

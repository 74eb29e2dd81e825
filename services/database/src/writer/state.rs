//! The frame of every load: take the dataset's lock, check its date, and at the end raise its
//! version, note the load and wake the readers.

use tokio_postgres::Transaction;
use water_domain::Timestamp;

use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::load::{History, Load, LoadError, Outcome, Refusal};

/// An input: where its date is kept, and which dataset it changes. They differ for `vigieau` only,
/// whose levels become part of the stress records.
#[derive(Clone, Copy)]
pub(crate) struct Input {
    pub(crate) name: &'static str,
    pub(crate) dataset: &'static str,
    /// Whether a file has all of it, so that its date is the dataset's.
    pub(crate) whole: bool,
}

impl Input {
    /// A dataset that each file replaces.
    pub(crate) const fn whole(name: &'static str) -> Self {
        Self {
            name,
            dataset: name,
            whole: true,
        }
    }

    /// A history, which each file adds to.
    pub(crate) const fn history(history: History) -> Self {
        Self {
            name: history.as_str(),
            dataset: history.as_str(),
            whole: false,
        }
    }
}

/// What a load would replace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    /// Nothing, or generated data.
    Nothing,
    /// Measured data.
    Measured,
}

/// Takes the dataset's lock, the transaction's own. Where another load has it, `waiting` is told,
/// and after ten minutes it is given up.
pub(crate) async fn lock(
    transaction: &Transaction<'_>,
    dataset: &str,
    waiting: fn(&str),
) -> Result<(), Error> {
    const ATTEMPT: &str = "waiting for another load of the dataset";
    let free = "SELECT pg_try_advisory_xact_lock(hashtext('water.' || $1))";
    let free = transaction.query_one(free, &[&dataset]).await;
    if free.attempting(ATTEMPT)?.get(0) {
        return Ok(());
    }
    waiting(dataset);
    transaction
        .batch_execute("SET LOCAL lock_timeout = '10min'")
        .await
        .attempting(ATTEMPT)?;
    transaction
        .execute(
            "SELECT pg_advisory_xact_lock(hashtext('water.' || $1))",
            &[&dataset],
        )
        .await
        .attempting(ATTEMPT)?;
    transaction
        .batch_execute("SET LOCAL lock_timeout = 0")
        .await
        .attempting(ATTEMPT)
}

/// Refuses an as-of date older than the stored one and generated data over measured, unless it is
/// forced.
pub(crate) async fn check(
    transaction: &Transaction<'_>,
    input: Input,
    as_of: Timestamp,
    load: &Load,
) -> Result<Over, LoadError> {
    let stored = "SELECT as_of, (SELECT NOT synthetic FROM water.loads \
                                 WHERE dataset = name ORDER BY id DESC LIMIT 1) AS measured \
                  FROM water.datasets WHERE name = $1";
    let row = transaction
        .query_one(stored, &[&input.name])
        .await
        .attempting("reading the dataset's date")?;
    let dataset = input.name;
    match row.get("as_of") {
        Some(Moment(stored)) if as_of < stored && !load.force => Err(Refusal::Older {
            dataset,
            given: as_of,
            stored,
        })?,
        _ => {}
    }
    let measured: Option<bool> = row.get("measured");
    over(measured.unwrap_or(false), input, load)
}

/// The same for a history: any measured load left rows that a generated one would change.
pub(crate) async fn check_history(
    transaction: &Transaction<'_>,
    input: Input,
    load: &Load,
) -> Result<Over, LoadError> {
    let measured = "SELECT EXISTS (SELECT FROM water.loads WHERE dataset = $1 AND NOT synthetic \
                    AND inserted + updated > 0)";
    let measured = transaction
        .query_one(measured, &[&input.name])
        .await
        .attempting("reading the dataset's provenance")?;
    over(measured.get(0), input, load)
}

fn over(measured: bool, input: Input, load: &Load) -> Result<Over, LoadError> {
    match measured {
        true if load.synthetic && !load.force => Err(Refusal::Measured {
            dataset: input.name,
        })?,
        true => Ok(Over::Measured),
        false => Ok(Over::Nothing),
    }
}

/// Ends a load. Content that did not change keeps its version and its date. A deletion describes
/// no moment.
pub(crate) async fn finish(
    transaction: Transaction<'_>,
    input: Input,
    as_of: impl Into<Option<Timestamp>>,
    load: &Load,
    outcome: &Outcome,
) -> Result<(), LoadError> {
    const ATTEMPT: &str = "ending the load";
    let as_of = as_of.into().map(Moment);
    let confirmed = match input.whole {
        true => {
            "UPDATE water.datasets SET as_of = $2 WHERE name = $1 AND as_of IS DISTINCT FROM $2"
        }
        // Rows of different dates stand side by side.
        false => "UPDATE water.datasets SET as_of = greatest(as_of, $2) WHERE name = $1",
    };
    transaction
        .execute(confirmed, &[&input.name, &as_of])
        .await
        .attempting(ATTEMPT)?;
    if outcome.changed() {
        let raise = "UPDATE water.datasets SET version = version + 1, updated_at = greatest(updated_at, $2) \
                     WHERE name = $1";
        transaction
            .execute(raise, &[&input.dataset, &as_of])
            .await
            .attempting(ATTEMPT)?;
        // Only makes readers look sooner: they also ask every second.
        transaction
            .execute("SELECT pg_notify('water_datasets', $1)", &[&input.dataset])
            .await
            .attempting(ATTEMPT)?;
    }
    note(&transaction, input, as_of, load, outcome)
        .await
        .attempting("noting the load's provenance")?;
    commit(transaction).await
}

/// Commits. Where the connection ends before the answer, nobody knows whether the server did.
pub(crate) async fn commit(transaction: Transaction<'_>) -> Result<(), LoadError> {
    match transaction.commit().await.attempting("committing") {
        Err(error) if error.is_end_of_connection() => Err(LoadError::Uncertain(error)),
        committed => Ok(committed?),
    }
}

/// Adds the load to the provenance, unless it repeats the last one and changed nothing.
async fn note(
    transaction: &Transaction<'_>,
    input: Input,
    as_of: Option<Moment>,
    load: &Load,
    outcome: &Outcome,
) -> Result<(), tokio_postgres::Error> {
    let counts = [
        outcome.rows,
        outcome.inserted,
        outcome.updated,
        outcome.removed,
    ]
    .map(|n| n as i64);
    let sql = "INSERT INTO water.loads (dataset, as_of, sha256, source, synthetic, loaded_by, \
                                        rows, inserted, updated, removed, derived, licence, source_url) \
               SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $13, $14 \
               WHERE $12 OR NOT EXISTS ( \
                   SELECT FROM (SELECT as_of, sha256 FROM water.loads WHERE dataset = $1 ORDER BY id DESC LIMIT 1) \
                       AS last \
                   WHERE last.as_of IS NOT DISTINCT FROM $2 AND last.sha256 = $3)";
    transaction
        .execute(
            sql,
            &[
                &input.name,
                &as_of,
                &load.sha256.as_slice(),
                &load.source,
                &load.synthetic,
                &load.loaded_by,
                &counts[0],
                &counts[1],
                &counts[2],
                &counts[3],
                &outcome.derived,
                &outcome.changed(),
                &load.licence,
                &load.source_url,
            ],
        )
        .await?;
    Ok(())
}

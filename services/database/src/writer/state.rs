//! The frame of every load: take the dataset's lock, check its date, and at the end raise its
//! version, note the load and wake the readers.

use tokio_postgres::Transaction;
use water_domain::Timestamp;

use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::load::{Load, LoadError, Outcome, Refusal};

/// An input: where its date is kept, and which dataset it changes. They differ for `vigieau` only,
/// whose levels become part of the stress records.
#[derive(Clone, Copy)]
pub(crate) struct Input {
    pub(crate) name: &'static str,
    pub(crate) dataset: &'static str,
}

impl Input {
    pub(crate) const fn of(name: &'static str) -> Self {
        Self {
            name,
            dataset: name,
        }
    }
}

/// Waits until no other load changes the dataset; the lock is the transaction's.
pub(crate) async fn lock(transaction: &Transaction<'_>, dataset: &str) -> Result<(), Error> {
    transaction
        .execute(
            "SELECT pg_advisory_xact_lock(hashtext('water.' || $1))",
            &[&dataset],
        )
        .await
        .attempting("waiting for another load of the dataset")?;
    Ok(())
}

/// Refuses an as-of date older than the stored one and generated data over measured, unless it is
/// forced.
pub(crate) async fn check(
    transaction: &Transaction<'_>,
    input: Input,
    as_of: Timestamp,
    load: &Load,
) -> Result<(), LoadError> {
    let stored = "SELECT as_of, (SELECT NOT synthetic FROM water.loads \
                                 WHERE dataset = name ORDER BY id DESC LIMIT 1) AS measured \
                  FROM water.datasets WHERE name = $1";
    let row = transaction
        .query_one(stored, &[&input.name])
        .await
        .attempting("reading the dataset's date")?;
    if load.force {
        return Ok(());
    }
    let dataset = input.name;
    let measured: Option<bool> = row.get("measured");
    match row.get("as_of") {
        Some(Moment(stored)) if as_of < stored => Err(Refusal::Older {
            dataset,
            given: as_of,
            stored,
        })?,
        _ if load.synthetic && measured == Some(true) => Err(Refusal::Measured { dataset })?,
        _ => Ok(()),
    }
}

/// Ends a load. Content that did not change keeps its version and its date;
/// histories have no date.
pub(crate) async fn finish(
    transaction: Transaction<'_>,
    input: Input,
    as_of: Option<Timestamp>,
    load: &Load,
    outcome: &Outcome,
) -> Result<(), Error> {
    const ATTEMPT: &str = "ending the load";
    if load.dry_run {
        return transaction.rollback().await.attempting(ATTEMPT);
    }
    let as_of = as_of.map(Moment);
    if let Some(as_of) = as_of {
        let newer =
            "UPDATE water.datasets SET as_of = $2 WHERE name = $1 AND as_of IS DISTINCT FROM $2";
        transaction
            .execute(newer, &[&input.name, &as_of])
            .await
            .attempting(ATTEMPT)?;
    }
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
    transaction.commit().await.attempting(ATTEMPT)
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
                                        rows, inserted, updated, removed, derived) \
               SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 \
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
            ],
        )
        .await?;
    Ok(())
}

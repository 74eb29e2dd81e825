//! Frame of every load: takes the dataset's lock, checks its date, and at the end raises its version, records the
//! load and notifies the readers.

use tokio_postgres::Transaction;
use water_domain::Timestamp;

use crate::error::{Attempt, Error};
use crate::moment::Moment;
use crate::writer::load::{History, Load, LoadError, Outcome, Refusal};

/// An input: the name under which its date is kept, and the dataset that it changes. They differ for `vigieau` only,
/// whose levels become part of the stress records.
#[derive(Clone, Copy)]
pub(crate) struct Input {
    pub(crate) name: &'static str,
    pub(crate) dataset: &'static str,
    /// Whether a file has the whole dataset, so that its date is the dataset's.
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

/// Data that a load would replace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    /// Nothing, or generated data.
    Nothing,
    /// Measured data.
    Measured,
}

/// Takes the dataset's lock for the transaction. If another load has it, calls `waiting`, and gives up after ten
/// minutes.
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

/// Refuses an as-of date older than the stored one and generated data over measured, unless the load is forced.
pub(crate) async fn check(
    transaction: &Transaction<'_>,
    input: Input,
    as_of: Timestamp,
    load: &Load,
) -> Result<Over, LoadError> {
    let stored = "SELECT as_of, coalesce((SELECT NOT synthetic FROM water.loads \
                                          WHERE dataset = name ORDER BY id DESC LIMIT 1), \
                                         as_of IS NOT NULL) AS measured \
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
    over(row.get("measured"), input, load)
}

/// Refuses generated data for a history with any measured load, whose rows it would change.
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

/// Ends a load and commits it; returns whether it was added to the provenance.
pub(crate) async fn finish(
    transaction: Transaction<'_>,
    input: Input,
    as_of: impl Into<Option<Timestamp>>,
    load: &Load,
    outcome: &Outcome,
) -> Result<bool, LoadError> {
    let is_noted = end(&transaction, input, as_of, load, outcome).await?;
    commit(transaction).await?;
    Ok(is_noted)
}

/// Ends a load; returns whether it was added to the provenance. Content that did not change keeps its date. A deletion
/// leaves the date of the data as it is.
pub(crate) async fn end(
    transaction: &Transaction<'_>,
    input: Input,
    as_of: impl Into<Option<Timestamp>>,
    load: &Load,
    outcome: &Outcome,
) -> Result<bool, LoadError> {
    const ATTEMPT: &str = "ending the load";
    let as_of = as_of.into().map(Moment);
    let confirmed = if input.whole {
        "UPDATE water.datasets SET as_of = $2 WHERE name = $1 AND as_of IS DISTINCT FROM $2"
    } else {
        // A history has rows of different dates.
        "UPDATE water.datasets SET as_of = greatest(as_of, $2) WHERE name = $1"
    };
    transaction
        .execute(confirmed, &[&input.name, &as_of])
        .await
        .attempting(ATTEMPT)?;
    let is_noted = note(transaction, input, as_of, load, outcome)
        .await
        .attempting("noting the load's provenance")?;
    // Readers show the date of each level, a derived one's too, which moves though the level stays.
    let is_restated = outcome.restated > 0 || input.dataset == "stress" && is_noted;
    if outcome.changed() || is_restated {
        let raise = "UPDATE water.datasets SET version = version + 1, \
                            updated_at = CASE WHEN $3 THEN greatest(updated_at, $2) ELSE updated_at END \
                     WHERE name = $1 AND ($3 OR updated_at IS NOT NULL)";
        transaction
            .execute(raise, &[&input.dataset, &as_of, &outcome.changed()])
            .await
            .attempting(ATTEMPT)?;
        // Only makes readers check sooner: they also poll every second.
        transaction
            .execute("SELECT pg_notify('water_datasets', $1)", &[&input.dataset])
            .await
            .attempting(ATTEMPT)?;
    }
    Ok(is_noted)
}

/// Commits. If the connection ends before the answer, it is unknown whether the server committed.
pub(crate) async fn commit(transaction: Transaction<'_>) -> Result<(), LoadError> {
    match transaction.commit().await.attempting("committing") {
        Err(error) if error.is_loss() => Err(LoadError::Uncertain(error)),
        committed => Ok(committed?),
    }
}

/// Adds the load to the provenance, unless it changed nothing, and its bytes, all that was said of them and the levels that
/// it kept are those of the last one. Returns whether it was added.
async fn note(
    transaction: &Transaction<'_>,
    input: Input,
    as_of: Option<Moment>,
    load: &Load,
    outcome: &Outcome,
) -> Result<bool, tokio_postgres::Error> {
    let counts = [
        outcome.rows,
        outcome.inserted,
        outcome.updated,
        outcome.removed,
    ]
    .map(|n| n as i64);
    let sql = "INSERT INTO water.loads (dataset, as_of, sha256, source, synthetic, loaded_by, \
                                        rows, inserted, updated, removed, derived, licence, source_url, \
                                        kept_levels) \
               SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $13, $14, $15 \
               WHERE $12 OR NOT EXISTS ( \
                   SELECT FROM (SELECT * FROM water.loads WHERE dataset = $1 ORDER BY id DESC LIMIT 1) AS last \
                   WHERE (last.as_of, last.sha256, last.source, last.synthetic, last.licence, last.source_url, \
                          last.kept_levels) \
                       IS NOT DISTINCT FROM ($2, $3, $4, $5, $13, $14, $15))";
    let added = transaction
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
                &outcome.not_given,
            ],
        )
        .await?;
    Ok(added > 0)
}

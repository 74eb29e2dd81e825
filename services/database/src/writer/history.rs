//! Loads of history files, merged by (account, id): staged by COPY, then upserted in one transaction.

mod deletion;
mod merge;
mod places;
mod sources;
mod table;

use std::pin::pin;

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::Statement;
use water_domain::Timestamp;

use crate::error::{Attempt, Error};
use crate::writer::Writer;
use crate::writer::batch::{Batch, COLUMNS, HEADER, TRAILER};
use crate::writer::history::merge::Merge;
use crate::writer::load::{History, Load, LoadError, Outcome};
use crate::writer::state::{self, Input};

pub use deletion::DeletionOutcome;

/// A load in progress: batches are added, then it is finished, or dropped without a trace.
pub struct Staging<'a> {
    writer: &'a mut Writer,
    copy: Statement,
    history: History,
    rows: u64,
}

impl Writer {
    /// Begins a load of a history. Nothing of it is visible before [`Staging::finish`].
    pub async fn stage(&mut self, history: History) -> Result<Staging<'_>, Error> {
        self.client
            .batch_execute(STAGED)
            .await
            .attempting(STAGING)?;
        let copy = format!("COPY staged ({COLUMNS}) FROM STDIN (FORMAT binary)");
        let copy = self.client.prepare(&copy).await.attempting(STAGING)?;
        Ok(Staging {
            writer: self,
            copy,
            history,
            rows: 0,
        })
    }
}

impl Staging<'_> {
    /// Adds rows. Each batch is a separate COPY: a statement that waits for a slow file would keep its snapshot, and
    /// no table of the server could be vacuumed meanwhile.
    pub async fn push(&mut self, batch: Batch) -> Result<(), Error> {
        let (bytes, rows) = batch.into_parts();
        if rows == 0 {
            return Ok(());
        }
        self.rows += rows;
        self.copy(bytes).await.attempting(STAGING)
    }

    async fn copy(&self, bytes: Bytes) -> Result<(), tokio_postgres::Error> {
        let mut sink = pin!(self.writer.client.copy_in(&self.copy).await?);
        sink.feed(Bytes::from_static(HEADER)).await?;
        sink.feed(bytes).await?;
        sink.feed(Bytes::from_static(TRAILER)).await?;
        sink.finish().await.map(drop)
    }

    /// Merges the staged rows, which describe the moment `as_of`.
    pub async fn finish(self, as_of: Timestamp, load: &Load) -> Result<Outcome, LoadError> {
        let input = Input::history(self.history);
        let mut transaction = self.writer.begin_load(input.dataset, load).await?;
        transaction
            .batch_execute(MEMORY)
            .await
            .attempting(STAGING)?;
        state::check_history(&transaction, input, load).await?;
        let mut merge = Merge::prepare(&mut transaction, self.history, as_of).await?;
        let merged = if load.dry_run {
            merge.compare().await?
        } else {
            merge.run().await?
        };
        let mut outcome = Outcome {
            rows: self.rows,
            ..merged
        };
        if !load.dry_run {
            outcome.is_noted = state::end(&transaction, input, as_of, load, &outcome).await?;
            let is_again = !outcome.is_noted;
            sources::note(&transaction, self.history, as_of, load, is_again).await?;
            state::commit(transaction).await?;
        }
        Ok(outcome)
    }
}

const STAGING: &str = "staging the rows of a history";

/// Temporary table of the staged rows.
const STAGED: &str = "DROP TABLE IF EXISTS pg_temp.staged; \
    CREATE TEMPORARY TABLE staged ( \
        line bigint NOT NULL, account_id text COLLATE \"C\" NOT NULL, id text COLLATE \"C\" NOT NULL, \
        created_at timestamptz NOT NULL, score double precision NOT NULL, company_name text NOT NULL, \
        sector_code text NOT NULL, dept_code text NOT NULL, rating text NOT NULL \
    )";

/// Memory of the merge, which sorts all rows at once: with less PostgreSQL sorts a million on disk, which takes twice
/// as long. Hash tables get no more than a sort, so that a small server survives.
const MEMORY: &str = "SET LOCAL work_mem = '128MB'; SET LOCAL hash_mem_multiplier = 1";

//! A history file is merged by (account, id): staged by COPY, then upserted in one transaction.

mod merge;

use std::pin::Pin;

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::{CopyInSink, Transaction};

use crate::error::{Attempt, Error};
use crate::writer::Writer;
use crate::writer::batch::{Batch, COLUMNS, HEADER, TRAILER};
use crate::writer::load::{History, Load, LoadError, Outcome};
use crate::writer::state::{self, Input};

/// A row that repeats an earlier one's account and id with different content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// Its line.
    pub line: u64,
    /// The line of the record's first row.
    pub first_line: u64,
}

/// A load under way: batches go in, then it is finished or dropped, which takes it back.
pub struct Staging<'a> {
    transaction: Transaction<'a>,
    sink: Pin<Box<CopyInSink<Bytes>>>,
    history: History,
    rows: u64,
}

impl Writer {
    /// Begins a load of a history. Nothing of it is visible before [`Staging::finish`].
    pub async fn stage(&mut self, history: History) -> Result<Staging<'_>, Error> {
        const ATTEMPT: &str = "staging the rows of a history";
        let transaction = self.begin().await?;
        transaction
            .batch_execute(STAGED)
            .await
            .attempting(ATTEMPT)?;
        let copy = format!("COPY staged ({COLUMNS}) FROM STDIN (FORMAT binary)");
        let mut sink = Box::pin(transaction.copy_in(&copy).await.attempting(ATTEMPT)?);
        sink.feed(Bytes::from_static(HEADER))
            .await
            .attempting(ATTEMPT)?;
        Ok(Staging {
            transaction,
            sink,
            history,
            rows: 0,
        })
    }
}

impl Staging<'_> {
    /// Adds rows.
    pub async fn push(&mut self, batch: Batch) -> Result<(), Error> {
        let (bytes, rows) = batch.into_parts();
        self.rows += rows;
        self.sink
            .send(bytes)
            .await
            .attempting("staging the rows of a history")
    }

    /// Merges what was staged.
    pub async fn finish(mut self, load: &Load) -> Result<Outcome, LoadError> {
        const ATTEMPT: &str = "staging the rows of a history";
        self.sink
            .feed(Bytes::from_static(TRAILER))
            .await
            .attempting(ATTEMPT)?;
        self.sink.as_mut().finish().await.attempting(ATTEMPT)?;
        let input = Input::of(self.history.as_str());
        state::lock(&self.transaction, input.dataset).await?;
        let mut outcome = merge::run(&mut self.transaction, self.history).await?;
        outcome.rows = self.rows;
        state::finish(self.transaction, input, None, load, &outcome).await?;
        Ok(outcome)
    }
}

/// Rows wait in a table of the transaction's own. The merge sorts all of them at once: with less
/// memory than this PostgreSQL sorts a million rows on disk, which takes twice as long.
const STAGED: &str = "SET LOCAL work_mem = '128MB'; \
    CREATE TEMPORARY TABLE staged ( \
        line bigint NOT NULL, account_id text COLLATE \"C\" NOT NULL, id text COLLATE \"C\" NOT NULL, \
        created_at timestamptz NOT NULL, score double precision NOT NULL, company_name text NOT NULL, \
        sector_code text NOT NULL, dept_code text NOT NULL, rating text NOT NULL \
    ) ON COMMIT DROP";

//! Expires all tokens and cursors of the histories.

use crate::error::Attempt;
use crate::writer::load::{History, LoadError};
use crate::writer::{Writer, state};

impl Writer {
    /// Gives both histories a version that continues no earlier one, and returns the two. The numbers are higher, so
    /// that a replica that does not have them yet counts as behind.
    pub async fn begin_epoch(&mut self) -> Result<[i64; 2], LoadError> {
        const ATTEMPT: &str = "expiring tokens and cursors";
        let waiting = self.waiting;
        let transaction = self.begin().await?;
        let mut begun = [0; 2];
        for (history, version) in [History::Analyses, History::Audits]
            .into_iter()
            .zip(&mut begun)
        {
            state::lock(&transaction, history.as_str(), waiting).await?;
            let raise = "UPDATE water.datasets SET version = version + 1 WHERE name = $1 \
                         RETURNING version";
            let raised = transaction.query_one(raise, &[&history.as_str()]).await;
            *version = raised.attempting(ATTEMPT)?.get(0);
            let forget = "DELETE FROM water.versions WHERE dataset = $1 AND version < $2";
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
                [&history.as_str(), version];
            let forgotten = transaction.execute(forget, &parameters).await;
            forgotten.attempting(ATTEMPT)?;
        }
        state::commit(transaction).await?;
        Ok(begun)
    }
}

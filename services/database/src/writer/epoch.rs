//! New versions of all datasets, for rows that changed without a load.

use tokio_postgres::types::ToSql;

use crate::error::Attempt;
use crate::writer::load::{History, LoadError};
use crate::writer::{Writer, state};

/// Datasets that readers follow by their versions.
const DATASETS: [&str; 4] = [
    "stress",
    "risk",
    History::Analyses.as_str(),
    History::Audits.as_str(),
];

impl Writer {
    /// Gives each dataset a version that continues no earlier one, and returns the names with these versions. All
    /// tokens and cursors of the histories expire, and the records of the départements are read again. The numbers are
    /// higher, so that a replica that does not have them yet counts as behind.
    pub async fn begin_epoch(&mut self) -> Result<[(&'static str, i64); 4], LoadError> {
        const ATTEMPT: &str = "giving the datasets new versions";
        let waiting = self.waiting;
        let transaction = self.begin().await?;
        let mut begun = DATASETS.map(|dataset| (dataset, 0));
        for (dataset, version) in &mut begun {
            state::lock(&transaction, dataset, waiting).await?;
            let raise = "UPDATE water.datasets SET version = version + 1 WHERE name = $1 \
                         RETURNING version";
            let raised = transaction.query_one(raise, &[dataset]).await;
            *version = raised.attempting(ATTEMPT)?.get(0);
            let forget = "DELETE FROM water.versions WHERE dataset = $1 AND version < $2";
            let parameters: [&(dyn ToSql + Sync); 2] = [dataset, version];
            let forgotten = transaction.execute(forget, &parameters).await;
            forgotten.attempting(ATTEMPT)?;
        }
        state::commit(transaction).await?;
        Ok(begun)
    }
}

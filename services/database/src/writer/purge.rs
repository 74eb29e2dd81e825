//! Removing a customer: every row of an account, in one transaction.

use water_domain::AccountId;

use crate::error::{Attempt, Error};
use crate::writer::Writer;
use crate::writer::load::History;
use crate::writer::state;

/// How many rows went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Purged {
    /// Risk analyses.
    pub analyses: u64,
    /// Compliance audits.
    pub audits: u64,
}

impl Writer {
    /// Removes all rows of the account; one that has none is no error. A dry run only counts.
    pub async fn purge(&mut self, account: &AccountId, dry_run: bool) -> Result<Purged, Error> {
        const ATTEMPT: &str = "removing an account's rows";
        let transaction = self.begin().await?;
        let mut removed = [0; 2];
        for (history, removed) in [History::Analyses, History::Audits]
            .into_iter()
            .zip(&mut removed)
        {
            state::lock(&transaction, history.as_str()).await?;
            for table in ["_anchors", "_accounts", ""] {
                let sql = format!("DELETE FROM water.{history}{table} WHERE account_id = $1");
                *removed = transaction
                    .execute(&sql, &[&account.as_str()])
                    .await
                    .attempting(ATTEMPT)?;
            }
        }
        let ended = if dry_run {
            transaction.rollback().await
        } else {
            transaction.commit().await
        };
        ended.attempting(ATTEMPT)?;
        Ok(Purged {
            analyses: removed[0],
            audits: removed[1],
        })
    }
}

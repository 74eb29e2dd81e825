//! Removes a customer: every row of an account, in one transaction.

use water_domain::AccountId;

use crate::error::{Attempt, Error};
use crate::writer::Writer;
use crate::writer::load::{History, LoadError};
use crate::writer::state;

/// Numbers of removed rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PurgeCounts {
    /// Risk analyses.
    pub analyses: u64,
    /// Compliance audits.
    pub audits: u64,
}

impl Writer {
    /// Removes all rows of the account; one without rows is no error. Later files do not bring it back before
    /// [`Writer::lift_purge`]. A dry run only counts.
    pub async fn purge(
        &mut self,
        account: &AccountId,
        purged_by: &str,
        dry_run: bool,
    ) -> Result<PurgeCounts, LoadError> {
        if dry_run {
            return Ok(self.rows_of(account).await?);
        }
        const ATTEMPT: &str = "removing an account's rows";
        let waiting = self.waiting;
        let transaction = self.begin().await?;
        let mut removed = [0; 2];
        for (history, removed) in [History::Analyses, History::Audits]
            .into_iter()
            .zip(&mut removed)
        {
            state::lock(&transaction, history.as_str(), waiting).await?;
            for table in ["_anchors", "_accounts", ""] {
                let sql = format!("DELETE FROM water.{history}{table} WHERE account_id = $1");
                *removed = transaction
                    .execute(&sql, &[&account.as_str()])
                    .await
                    .attempting(ATTEMPT)?;
            }
        }
        let [analyses, audits] = removed;
        let counts = [analyses, audits].map(|count| count as i64);
        let note = "INSERT INTO water.purges (account_sha256, purged_by, analyses, audits) \
                    VALUES (sha256(convert_to($1, 'UTF8')), $2, $3, $4)";
        transaction
            .execute(
                note,
                &[&account.as_str(), &purged_by, &counts[0], &counts[1]],
            )
            .await
            .attempting("noting the purge")?;
        state::commit(transaction).await?;
        Ok(PurgeCounts { analyses, audits })
    }

    /// Lets later files bring a purged account back; returns whether it was purged.
    pub async fn lift_purge(&mut self, account: &AccountId) -> Result<bool, Error> {
        let lift = "UPDATE water.purges SET lifted_at = now() \
                    WHERE account_sha256 = sha256(convert_to($1, 'UTF8')) AND lifted_at IS NULL";
        let lifted = self.client.execute(lift, &[&account.as_str()]).await;
        Ok(lifted.attempting("lifting a purge")? > 0)
    }

    async fn rows_of(&self, account: &AccountId) -> Result<PurgeCounts, Error> {
        let count = "SELECT (SELECT count(*) FROM water.analyses WHERE account_id = $1), \
                            (SELECT count(*) FROM water.audits WHERE account_id = $1)";
        let row = self.client.query_one(count, &[&account.as_str()]).await;
        let row = row.attempting("counting an account's rows")?;
        let count = |column| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
        Ok(PurgeCounts {
            analyses: count(0),
            audits: count(1),
        })
    }
}

//! Verification of the counts, anchors and copies that a load keeps for its rows: computed again and compared, after
//! a restore or by schedule.

use serde::Serialize;
use tokio_postgres::{IsolationLevel, Row, Transaction};
use water_domain::Level;

use crate::error::{Attempt, Error};
use crate::writer::Writer;
use crate::writer::load::History;

/// Result of a comparison.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Check {
    /// Name of the check, such as `analyses: totals of accounts`.
    pub check: String,
    /// Number of compared values.
    pub compared: u64,
    /// Number of wrong values.
    pub wrong: u64,
}

impl Writer {
    /// Compares everything, as it is at one moment; loads go on meanwhile. The result names no account.
    pub async fn verify(&mut self) -> Result<Vec<Check>, Error> {
        let transaction = self.client.build_transaction().read_only(true);
        let transaction = transaction.isolation_level(IsolationLevel::RepeatableRead);
        let transaction = transaction
            .start()
            .await
            .attempting("beginning to verify")?;
        let mut checks = Vec::new();
        for history in [History::Analyses, History::Audits] {
            for (what, sql) in HISTORY {
                let sql = sql.replace("water.history", &format!("water.{history}"));
                let row = transaction.query_one(&sql, &[]).await;
                let row = row.attempting("verifying a history")?;
                checks.push(check(
                    format!("{history}: {what}"),
                    count(&row, 0),
                    count(&row, 1),
                ));
            }
        }
        checks.push(levels(&transaction).await?);
        Ok(checks)
    }
}

fn check(check: String, compared: u64, wrong: u64) -> Check {
    Check {
        check,
        compared,
        wrong,
    }
}

fn count(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or(0)
}

/// Compares the level of each stress record with the legal one, of which it is a copy, or without one with the index.
async fn levels(transaction: &Transaction<'_>) -> Result<Check, Error> {
    let sql = "SELECT stress.stress_index, stress.level, stress.level_derived, legal.level AS legal \
               FROM water.stress LEFT JOIN water.levels AS legal USING (dept)";
    let rows = transaction.query(sql, &[]).await;
    let rows = rows.attempting("verifying the alert levels")?;
    let wrong = rows.iter().filter(|row| {
        let derived: bool = row.get("level_derived");
        let wanted = match row.get::<_, Option<&str>>("legal") {
            Some(legal) => (legal, false),
            None => {
                let level = Level::from_stress_index(row.get("stress_index"));
                (level.as_str(), true)
            }
        };
        (row.get::<_, &str>("level"), derived) != wanted
    });
    let what = "stress: copies of alert levels".to_owned();
    Ok(check(what, rows.len() as u64, wrong.count() as u64))
}

/// Names of a history's checks, and the statements that count compared and wrong values.
const HISTORY: [(&str, &str); 5] = [
    ("totals of accounts", TOTALS),
    ("anchors of pages", ANCHORS),
    ("versions of rows", VERSIONS),
    ("deletions of rows", DELETIONS),
    ("accounts without a purge in force", PURGES),
];

/// Compares totals; an account without rows may have one of 0, or none.
const TOTALS: &str = "SELECT count(*), count(*) FILTER ( \
        WHERE coalesce(counted.total, 0) <> coalesce(kept.total, 0) \
    ) \
    FROM (SELECT account_id, count(*) AS total FROM water.history GROUP BY account_id) AS counted \
    FULL JOIN water.history_accounts AS kept USING (account_id)";

/// Compares anchors with every 64th row of an account, counted from its oldest.
const ANCHORS: &str = "SELECT count(*), count(*) FILTER ( \
        WHERE (row.created_at, row.id) IS DISTINCT FROM (kept.created_at, kept.id) \
    ) \
    FROM ( \
        SELECT * FROM ( \
            SELECT account_id, created_at, id, \
                   row_number() OVER (PARTITION BY account_id ORDER BY created_at, id) - 1 AS ordinal \
            FROM water.history \
        ) AS numbered WHERE ordinal % 64 = 0 \
    ) AS row \
    FULL JOIN water.history_anchors AS kept USING (account_id, ordinal)";

/// Finds rows whose version is yet to come, which a follower of changes would never receive.
const VERSIONS: &str = "SELECT count(*), count(*) FILTER (WHERE record.version > dataset.version) \
    FROM water.history AS record \
    JOIN water.datasets AS dataset ON dataset.name = split_part('water.history', '.', 2)";

/// Finds deletions that are not older than the row that came back.
const DELETIONS: &str = "SELECT count(*), count(*) FILTER (WHERE deletion.version >= record.version) \
    FROM water.history_deletions AS deletion LEFT JOIN water.history AS record USING (account_id, id)";

/// Finds accounts whose rows came back without `water-ingest`, by a restore from before the purge for example.
const PURGES: &str = "SELECT count(*), count(*) FILTER (WHERE sha256(convert_to(account_id, 'UTF8')) IN \
        (SELECT account_sha256 FROM water.purges WHERE lifted_at IS NULL)) \
    FROM (SELECT DISTINCT account_id FROM water.history) AS account";

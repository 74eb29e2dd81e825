//! Where each dataset comes from, as an account sees it.

use tokio_postgres::Row;
use water_domain::{AccountId, SourceRecord};

use crate::database::{Database, answer};
use crate::error::Error;
use crate::moment::Moment;

const SOURCES: &str = "SELECT dataset, source, source_url, licence, as_of, loaded_at, synthetic, derived_levels, \
           coalesce(records, \
                    CASE dataset \
                        WHEN 'analyses' THEN (SELECT total FROM water.analyses_accounts WHERE account_id = $1) \
                        WHEN 'audits' THEN (SELECT total FROM water.audits_accounts WHERE account_id = $1) \
                    END, 0) AS records \
    FROM water.sources \
    ORDER BY array_position(ARRAY['stress', 'risk', 'vigieau', 'analyses', 'audits'], dataset)";

/// The datasets that were ever loaded, with the counts of the account's own history: all of one
/// moment.
pub async fn sources(database: &Database, account: &AccountId) -> Result<Vec<SourceRecord>, Error> {
    let connection = database.connection().await?;
    let rows = answer("reading the sources of the data", async {
        let statement = connection.prepare_cached(SOURCES).await?;
        connection.query(&statement, &[&account.as_str()]).await
    })
    .await;
    Ok(connection.answered(rows)?.iter().map(source).collect())
}

fn source(row: &Row) -> SourceRecord {
    SourceRecord {
        dataset: row.get("dataset"),
        source: row.get("source"),
        source_url: row.get("source_url"),
        licence: row.get("licence"),
        as_of: row.get::<_, Option<Moment>>("as_of").map(|moment| moment.0),
        loaded_at: row.get::<_, Moment>("loaded_at").0,
        records: u64::try_from(row.get::<_, i64>("records")).unwrap_or(0),
        synthetic: row.get("synthetic"),
        derived_levels: row.get("derived_levels"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::assert_kept;

    #[test]
    fn its_statement_is_kept_for_later_migrations() {
        assert_kept("sources", SOURCES);
    }
}

//! Origin of each dataset, as an account sees it.

use tokio_postgres::Row;
use water_domain::{AccountId, SourceRecord};

use crate::database::{Connection, Database};
use crate::error::Error;
use crate::moment::Moment;

const SOURCES: &str = "SELECT dataset, source, source_url, licence, as_of, loaded_at, synthetic, derived_levels, records, \
           CASE dataset WHEN 'vigieau' THEN ARRAY(SELECT dept FROM water.kept_levels ORDER BY dept) \
           ELSE '{}' END AS kept_levels \
    FROM (SELECT dataset, source, source_url, licence, as_of, loaded_at, synthetic, derived_levels, records \
          FROM water.sources WHERE dataset IN ('stress', 'risk', 'vigieau') \
          UNION ALL \
          SELECT 'analyses', source, source_url, licence, as_of, loaded_at, synthetic, '{}', total \
          FROM water.analyses_accounts WHERE account_id = $1 AND total > 0 AND loaded_at IS NOT NULL \
          UNION ALL \
          SELECT 'audits', source, source_url, licence, as_of, loaded_at, synthetic, '{}', total \
          FROM water.audits_accounts WHERE account_id = $1 AND total > 0 AND loaded_at IS NOT NULL) AS source \
    ORDER BY array_position(ARRAY['stress', 'risk', 'vigieau', 'analyses', 'audits'], dataset)";

/// Reads the sources of the datasets that were ever loaded, and of the account's own rows, all of one moment.
pub async fn sources(database: &Database, account: &AccountId) -> Result<Vec<SourceRecord>, Error> {
    let rows = |connection: Connection| async move {
        let rows = connection.rows(SOURCES, &[&account.as_str()]).await;
        (connection, rows)
    };
    let rows = database
        .ask("reading the sources of the data", rows)
        .await?;
    Ok(rows.iter().map(source).collect())
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
        kept_levels: row.get("kept_levels"),
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

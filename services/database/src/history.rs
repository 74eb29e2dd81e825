//! Pages of an account's history. Every query takes an [`AccountId`]: rows are read in no other way.

use std::error::Error as StdError;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use water_domain::{AccountId, ComplianceAudit, Number, Page, RiskAnalysis, Timestamp};

use crate::database::{Connection, Database};
use crate::error::Error;
use crate::moment::Moment;

/// A page of a history; `total` and `rows` are of the same moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Slice<R> {
    /// Number of the account's rows.
    pub total: u64,
    /// The page's rows, newest first; empty when the offset is beyond the total.
    pub rows: Vec<R>,
}

/// The query for a page: $1 the account, $2 the limit, $3 the offset from the newest row.
///
/// Anchors keep the key of every 64th row, counted from the oldest. A page starts at the anchor
/// just before it and skips at most 63 rows, whatever its offset; without such an anchor it starts
/// at the newest row. One statement is one snapshot, so `total` and rows agree.
macro_rules! page_of {
    ($table:literal) => {
        concat!(
            "SELECT account.total, page.* ",
            "FROM water.", $table, "_accounts AS account ",
            "LEFT JOIN LATERAL (",
            "  SELECT ordinal, created_at, id FROM water.", $table, "_anchors ",
            "  WHERE account_id = $1 AND ordinal >= account.total - 1 - $3 ORDER BY ordinal LIMIT 1",
            ") AS anchor ON true ",
            "LEFT JOIN LATERAL (",
            "  SELECT id, company_name, sector_code, dept_code, score, rating, created_at ",
            "  FROM water.", $table, " AS record ",
            "  WHERE record.account_id = $1 AND (record.created_at, record.id) ",
            "    <= (coalesce(anchor.created_at, 'infinity'), coalesce(anchor.id, '')) ",
            "  ORDER BY record.created_at DESC, record.id DESC ",
            "  LIMIT $2 OFFSET coalesce(anchor.ordinal - (account.total - 1 - $3), $3)",
            ") AS page ON $3 < account.total ",
            "WHERE account.account_id = $1 ",
            "ORDER BY page.created_at DESC, page.id DESC",
        )
    };
}

/// Reads a page of the account's risk analyses. Codes and ratings are returned as stored: leaving out a row whose
/// code is new would shift every page after it.
pub async fn analyses(
    database: &Database,
    account: &AccountId,
    page: Page,
) -> Result<Slice<RiskAnalysis>, Error> {
    const ATTEMPT: &str = "reading a page of risk analyses";
    slice(
        ATTEMPT,
        &rows(ATTEMPT, database, page_of!("analyses"), account, page).await?,
        |row| {
            Ok(RiskAnalysis {
                id: row.get(column::ID),
                company_name: row.get(column::COMPANY_NAME),
                sector_code: row.get(column::SECTOR_CODE),
                dept_code: row.get(column::DEPT_CODE),
                global_score: Number::try_from(row.get::<_, f64>(column::SCORE))?,
                rating: row.get(column::RATING),
                created_at: created_at(row),
            })
        },
    )
}

/// Reads a page of the account's compliance audits.
pub async fn audits(
    database: &Database,
    account: &AccountId,
    page: Page,
) -> Result<Slice<ComplianceAudit>, Error> {
    const ATTEMPT: &str = "reading a page of compliance audits";
    slice(
        ATTEMPT,
        &rows(ATTEMPT, database, page_of!("audits"), account, page).await?,
        |row| {
            Ok(ComplianceAudit {
                id: row.get(column::ID),
                company_name: row.get(column::COMPANY_NAME),
                sector_code: row.get(column::SECTOR_CODE),
                dept_code: row.get(column::DEPT_CODE),
                score: Number::try_from(row.get::<_, f64>(column::SCORE))?,
                global_rating: row.get(column::RATING),
                created_at: created_at(row),
            })
        },
    )
}

/// Positions of the columns of [`page_of`]; names would be looked up again for each row.
mod column {
    pub const TOTAL: usize = 0;
    pub const ID: usize = 1;
    pub const COMPANY_NAME: usize = 2;
    pub const SECTOR_CODE: usize = 3;
    pub const DEPT_CODE: usize = 4;
    pub const SCORE: usize = 5;
    pub const RATING: usize = 6;
    pub const CREATED_AT: usize = 7;
}

type Invalid = Box<dyn StdError + Send + Sync>;

async fn rows(
    attempt: &'static str,
    database: &Database,
    query: &str,
    account: &AccountId,
    page: Page,
) -> Result<Vec<Row>, Error> {
    let limit = i64::from(page.limit);
    let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
    let rows = |connection: Connection| async move {
        let parameters: [&(dyn ToSql + Sync); 3] = [&account.as_str(), &limit, &offset];
        let rows = connection.rows(query, &parameters).await;
        (connection, rows)
    };
    database.ask(attempt, rows).await
}

/// Builds a page. No row: the account is unknown. One row without a record: the offset is beyond the total.
fn slice<R>(
    attempt: &'static str,
    rows: &[Row],
    record: impl Fn(&Row) -> Result<R, Invalid>,
) -> Result<Slice<R>, Error> {
    let total = rows
        .first()
        .map_or(0, |row| row.get::<_, i64>(column::TOTAL));
    let records = rows
        .iter()
        .filter(|row| row.get::<_, Option<&str>>(column::ID).is_some());
    Ok(Slice {
        total: u64::try_from(total).unwrap_or(0),
        rows: records
            .map(record)
            .collect::<Result<_, _>>()
            .map_err(|why| Error::stored(attempt, why))?,
    })
}

fn created_at(row: &Row) -> Timestamp {
    row.get::<_, Moment>(column::CREATED_AT).0
}

#[cfg(test)]
mod tests {
    use crate::kept::assert_kept;

    #[test]
    fn its_statements_are_kept_for_later_migrations() {
        assert_kept("analyses", page_of!("analyses"));
        assert_kept("audits", page_of!("audits"));
    }
}

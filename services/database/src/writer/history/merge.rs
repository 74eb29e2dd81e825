//! The merge of staged rows into a history, in SQL: each step and why.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Row, Transaction};

use crate::error::{Attempt, Error};
use crate::writer::history::Conflict;
use crate::writer::load::{History, LoadError, Outcome};

/// How many conflicts are named; the rest is counted.
const NAMED_CONFLICTS: i64 = 50;

/// Merges what is staged; the dataset's lock is held.
pub(super) async fn run(
    transaction: &mut Transaction<'_>,
    history: History,
) -> Result<Outcome, LoadError> {
    Merge {
        transaction,
        history,
    }
    .run()
    .await
}

/// The steps of a merge, in the order in which they run.
struct Merge<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    history: History,
}

impl Merge<'_, '_> {
    async fn run(mut self) -> Result<Outcome, LoadError> {
        self.execute("finding the rows that exist", FOUND).await?;
        let repeated = self
            .execute("looking for repeated rows", FOUND_REPEATED)
            .await?
            > 0;
        let inserted = match repeated {
            true => None,
            false => self.insert().await?,
        };
        let inserted = match inserted {
            Some(inserted) => inserted,
            None => {
                self.drop_repeated().await?;
                self.execute("inserting rows", INSERT).await?
            }
        };
        let updated = self.execute("updating rows", UPDATE).await?;
        self.execute("finding the accounts that changed", MOVED)
            .await?;
        self.execute("counting the accounts' rows", TOTALS).await?;
        self.execute("dropping anchors", BASE).await?;
        self.execute("dropping anchors", DROP_ANCHORS).await?;
        self.execute("setting anchors", SET_ANCHORS).await?;
        Ok(Outcome {
            inserted,
            updated,
            ..Outcome::default()
        })
    }

    /// Inserts the rows that are new; `None` when the file repeats one of them, which is rare and
    /// costs less to find out in this way than to look for before each load.
    async fn insert(&mut self) -> Result<Option<u64>, Error> {
        const ATTEMPT: &str = "inserting rows";
        let sql = statement(INSERT, self.history);
        let savepoint = self
            .transaction
            .savepoint("insert")
            .await
            .attempting(ATTEMPT)?;
        match savepoint.execute(&sql, &[]).await {
            Ok(inserted) => {
                savepoint.commit().await.attempting(ATTEMPT)?;
                Ok(Some(inserted))
            }
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                savepoint.rollback().await.attempting(ATTEMPT)?;
                Ok(None)
            }
            Err(error) => Err(error).attempting(ATTEMPT),
        }
    }

    /// Keeps the first of rows that are equal, and refuses rows that are not.
    async fn drop_repeated(&mut self) -> Result<(), LoadError> {
        let rows = self
            .transaction
            .query(CONFLICTS, &[&NAMED_CONFLICTS])
            .await
            .attempting("looking for repeated rows")?;
        if let Some(row) = rows.first() {
            let number = |value: i64| u64::try_from(value).unwrap_or(0);
            let total = number(row.get("total"));
            let conflict = |row: &Row| Conflict {
                line: number(row.get("line")),
                first_line: number(row.get("first_line")),
            };
            return Err(LoadError::Conflicts {
                first: rows.iter().map(conflict).collect(),
                total,
            });
        }
        self.execute("dropping repeated rows", DROP_REPEATED)
            .await?;
        self.execute("dropping repeated rows", DROP_FOUND_REPEATED)
            .await?;
        Ok(())
    }

    async fn execute(&self, attempt: &'static str, sql: &str) -> Result<u64, Error> {
        self.transaction
            .execute(&statement(sql, self.history), &[])
            .await
            .attempting(attempt)
    }
}

/// The SQL is written for one table; the other has the same shape.
fn statement(sql: &str, history: History) -> String {
    sql.replace("water.history", &format!("water.{history}"))
}

/// The staged rows whose account and id are stored: where they stood, and whether they differ.
const FOUND: &str = "CREATE TEMPORARY TABLE found ON COMMIT DROP AS \
    SELECT staged.line, staged.account_id, staged.id, staged.created_at, \
           record.created_at AS old_created_at, \
           (staged.created_at, staged.score, staged.company_name, staged.sector_code, staged.dept_code, staged.rating) \
           IS DISTINCT FROM \
           (record.created_at, record.score, record.company_name, record.sector_code, record.dept_code, record.rating) \
           AS differs \
    FROM staged JOIN water.history AS record USING (account_id, id)";

const FOUND_REPEATED: &str =
    "SELECT FROM found GROUP BY account_id, id HAVING count(*) > 1 LIMIT 1";

/// New rows, in the order of the index that pages are read by: neighbours on a page are neighbours
/// on disk.
const INSERT: &str = "INSERT INTO water.history \
        (account_id, id, created_at, score, company_name, sector_code, dept_code, rating) \
    SELECT account_id, id, created_at, score, company_name, sector_code, dept_code, rating FROM staged \
    WHERE NOT EXISTS (SELECT FROM found WHERE found.line = staged.line) \
    ORDER BY account_id, created_at DESC, id DESC";

const UPDATE: &str = "UPDATE water.history AS record \
    SET created_at = staged.created_at, score = staged.score, company_name = staged.company_name, \
        sector_code = staged.sector_code, dept_code = staged.dept_code, rating = staged.rating \
    FROM found JOIN staged USING (line) \
    WHERE found.differs AND (record.account_id, record.id) = (found.account_id, found.id)";

/// Rows that repeat an earlier one with different content; `$1` of them and their number.
const CONFLICTS: &str = "SELECT staged.line, repeated.first_line, count(*) OVER () AS total \
    FROM (SELECT account_id, id, min(line) AS first_line FROM staged GROUP BY account_id, id HAVING count(*) > 1) \
        AS repeated \
    JOIN staged USING (account_id, id) \
    JOIN staged AS first ON first.line = repeated.first_line \
    WHERE (staged.created_at, staged.score, staged.company_name, staged.sector_code, staged.dept_code, staged.rating) \
        IS DISTINCT FROM \
        (first.created_at, first.score, first.company_name, first.sector_code, first.dept_code, first.rating) \
    ORDER BY staged.line LIMIT $1";

const DROP_REPEATED: &str = "DELETE FROM staged AS later USING staged AS first \
    WHERE (later.account_id, later.id) = (first.account_id, first.id) AND later.line > first.line";

const DROP_FOUND_REPEATED: &str = "DELETE FROM found AS later USING found AS first \
    WHERE (later.account_id, later.id) = (first.account_id, first.id) AND later.line > first.line";

/// The accounts in which rows moved: since when, and how many were added.
const MOVED: &str = "CREATE TEMPORARY TABLE moved ON COMMIT DROP AS \
    SELECT account_id, min(created_at) AS since, sum(added) AS added FROM ( \
        SELECT account_id, created_at, 1 AS added FROM staged \
        WHERE NOT EXISTS (SELECT FROM found WHERE found.line = staged.line) \
        UNION ALL \
        SELECT account_id, least(created_at, old_created_at), 0 FROM found WHERE created_at <> old_created_at \
    ) AS row GROUP BY account_id";

const TOTALS: &str = "INSERT INTO water.history_accounts AS account (account_id, total) \
    SELECT account_id, added FROM moved WHERE added > 0 \
    ON CONFLICT (account_id) DO UPDATE SET total = account.total + excluded.total";

/// Of each such account the last anchor before the oldest row that moved: it is still right.
const BASE: &str = "CREATE TEMPORARY TABLE base ON COMMIT DROP AS \
    SELECT moved.account_id, coalesce(anchor.ordinal, 0) AS ordinal, \
           coalesce(anchor.created_at, '-infinity') AS created_at, coalesce(anchor.id, '') AS id, \
           anchor.ordinal IS NOT NULL AS stays \
    FROM moved LEFT JOIN LATERAL ( \
        SELECT ordinal, created_at, id FROM water.history_anchors AS anchor \
        WHERE anchor.account_id = moved.account_id AND anchor.created_at < moved.since \
        ORDER BY ordinal DESC LIMIT 1 \
    ) AS anchor ON true";

const DROP_ANCHORS: &str = "DELETE FROM water.history_anchors AS anchor USING base \
    WHERE anchor.account_id = base.account_id AND (anchor.ordinal > base.ordinal OR NOT base.stays)";

/// Counts on from there, and keeps every 64th row.
const SET_ANCHORS: &str = "INSERT INTO water.history_anchors (account_id, ordinal, created_at, id) \
    SELECT base.account_id, row.ordinal, row.created_at, row.id \
    FROM base CROSS JOIN LATERAL ( \
        SELECT record.created_at, record.id, \
               base.ordinal + row_number() OVER (ORDER BY record.created_at, record.id) - 1 AS ordinal \
        FROM water.history AS record \
        WHERE record.account_id = base.account_id \
          AND (record.created_at, record.id) >= (base.created_at, base.id) \
    ) AS row \
    WHERE row.ordinal % 64 = 0 AND (row.ordinal > base.ordinal OR NOT base.stays)";

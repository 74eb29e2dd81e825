//! Merges staged rows into a history, in SQL: each step and why.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Row, Transaction};
use water_domain::{Number, Timestamp};

use crate::error::{Attempt, Error};
use crate::writer::difference::{self, Difference, Value};
use crate::writer::history::{places, table};
use crate::writer::load::{Conflict, History, LoadError, Outcome};

/// Number of conflicts named; the rest is counted.
const NAMED_CONFLICTS: i64 = 50;

/// Numbers of rows that a file has and a merge leaves out.
struct LeftOut {
    /// Rows of accounts that were purged.
    purged: u64,
    /// Rows that were deleted as of the file's moment or a later one.
    deleted: u64,
}

/// The steps of a merge, in the order in which they run.
pub(super) struct Merge<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    history: History,
    as_of: Timestamp,
    /// The dataset's next version, which new and changed rows carry.
    version: i64,
}

impl<'a, 'b> Merge<'a, 'b> {
    /// Prepares a merge of the staged rows, which describe the moment `as_of`.
    pub(super) async fn prepare(
        transaction: &'a mut Transaction<'b>,
        history: History,
        as_of: Timestamp,
    ) -> Result<Self, Error> {
        let version = table::next_version(transaction, history).await?;
        Ok(Self {
            transaction,
            history,
            as_of,
            version,
        })
    }

    /// Merges; the dataset's lock is held.
    pub(super) async fn run(&mut self) -> Result<Outcome, LoadError> {
        let (left_out, repeated) = self.find().await?;
        let inserted = if repeated { None } else { self.insert().await? };
        let inserted = match inserted {
            Some(inserted) => inserted,
            None => {
                self.drop_repeated().await?;
                self.execute("inserting rows", INSERT).await?
            }
        };
        let updated = self.execute("updating rows", UPDATE).await?;
        self.execute("confirming rows", CONFIRM).await?;
        let older = self.count("counting older rows", OLDER).await?;
        self.execute("finding the accounts that changed", MOVED)
            .await?;
        places::correct(self.transaction, self.history).await?;
        Ok(Outcome {
            inserted,
            updated,
            older: left_out.deleted + older,
            purged: left_out.purged,
            ..Outcome::default()
        })
    }

    /// Returns the outcome that [`Merge::run`] would have, from the session's tables and the stored data.
    pub(super) async fn compare(&mut self) -> Result<Outcome, LoadError> {
        let (left_out, _) = self.find().await?;
        self.drop_repeated().await?;
        Ok(Outcome {
            inserted: self.count("counting new rows", NEW).await?,
            updated: self.count("counting changed rows", CHANGED).await?,
            older: left_out.deleted + self.count("counting older rows", OLDER).await?,
            purged: left_out.purged,
            largest: self.largest().await?,
            ..Outcome::default()
        })
    }

    /// Returns the scores that would change most, by the line of the file, which names no account.
    async fn largest(&self) -> Result<Vec<Difference>, Error> {
        let rows = self.transaction.query(&self.statement(LARGEST), &[]).await;
        let rows = rows.attempting("comparing scores")?;
        let column = match self.history {
            History::Analyses => "globalScore",
            History::Audits => "score",
        };
        let differences = rows.iter().filter_map(|row| {
            let line: i64 = row.get("line");
            let score = |name| Number::try_from(row.get::<_, f64>(name)).map(Value::Score);
            let sides = [score("old").ok()?, score("new").ok()?];
            Some(Difference::new(format!("line {line}"), column, sides))
        });
        Ok(difference::largest(differences))
    }

    /// Leaves out purged accounts and deleted rows, and finds the rows that exist. Returns the numbers left out, and
    /// whether the file repeats an existing row.
    async fn find(&mut self) -> Result<(LeftOut, bool), Error> {
        let left_out = LeftOut {
            purged: self
                .execute("leaving out purged accounts", DROP_PURGED)
                .await?,
            deleted: self
                .execute("leaving out deleted rows", DROP_DELETED)
                .await?,
        };
        self.execute("finding the rows that exist", FOUND).await?;
        let repeated = self
            .execute("looking for repeated rows", FOUND_REPEATED)
            .await?;
        Ok((left_out, repeated > 0))
    }

    /// Inserts the new rows; `None` when the file repeats one of them, which is rare and costs less to find this way
    /// than to check before each load.
    async fn insert(&mut self) -> Result<Option<u64>, Error> {
        const ATTEMPT: &str = "inserting rows";
        let sql = self.statement(INSERT);
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
            .execute(&self.statement(sql), &[])
            .await
            .attempting(attempt)
    }

    async fn count(&self, attempt: &'static str, sql: &str) -> Result<u64, Error> {
        let row = self.transaction.query_one(&self.statement(sql), &[]).await;
        let count: i64 = row.attempting(attempt)?.get(0);
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Writes date and version into the statement, because `CREATE TABLE AS` takes no parameters.
    fn statement(&self, sql: &str) -> String {
        table::named(self.history, sql)
            .replace("load_as_of", &format!("timestamptz '{}'", self.as_of))
            .replace("load_version", &self.version.to_string())
    }
}

/// Drops rows of accounts that were removed and may not come back.
const DROP_PURGED: &str = "DELETE FROM staged WHERE account_id IN ( \
        SELECT account_id FROM (SELECT DISTINCT account_id FROM staged) AS account \
        WHERE sha256(convert_to(account_id, 'UTF8')) IN \
              (SELECT account_sha256 FROM water.purges WHERE lifted_at IS NULL)) \
    AND EXISTS (SELECT FROM water.purges WHERE lifted_at IS NULL)";

/// Rows that were deleted later than the file describes, or as of the same moment: it may not know of that.
const DROP_DELETED: &str = "DELETE FROM staged USING water.history_deletions AS deletion \
    WHERE (staged.account_id, staged.id) = (deletion.account_id, deletion.id) AND deletion.as_of >= load_as_of";

/// Finds the staged rows whose account and id are stored: the stored date, whether a file of a later date had the
/// row, and if not, whether it differs.
const FOUND: &str = "CREATE TEMPORARY TABLE found ON COMMIT DROP AS \
    SELECT staged.line, staged.account_id, staged.id, staged.created_at, \
           record.created_at AS old_created_at, \
           coalesce(record.as_of > load_as_of, false) AS older, \
           coalesce(record.as_of <= load_as_of, true) AND \
           (staged.created_at, staged.score, staged.company_name, staged.sector_code, staged.dept_code, staged.rating) \
           IS DISTINCT FROM \
           (record.created_at, record.score, record.company_name, record.sector_code, record.dept_code, record.rating) \
           AS differs \
    FROM staged JOIN water.history AS record USING (account_id, id)";

const FOUND_REPEATED: &str =
    "SELECT FROM found GROUP BY account_id, id HAVING count(*) > 1 LIMIT 1";

/// Inserts the new rows in the order of the index by which pages are read: neighbours on a page are neighbours on
/// disk.
const INSERT: &str = "INSERT INTO water.history \
        (account_id, id, created_at, score, company_name, sector_code, dept_code, rating, as_of, \
         version) \
    SELECT account_id, id, created_at, score, company_name, sector_code, dept_code, rating, load_as_of, \
           load_version \
    FROM staged \
    WHERE NOT EXISTS (SELECT FROM found WHERE found.line = staged.line) \
    ORDER BY account_id, created_at DESC, id DESC";

const UPDATE: &str = "UPDATE water.history AS record \
    SET created_at = staged.created_at, score = staged.score, company_name = staged.company_name, \
        sector_code = staged.sector_code, dept_code = staged.dept_code, rating = staged.rating, \
        as_of = load_as_of, version = load_version \
    FROM found JOIN staged USING (line) \
    WHERE found.differs AND (record.account_id, record.id) = (found.account_id, found.id)";

/// Dates the rows that a later file repeats, so that an older file cannot revert them.
const CONFIRM: &str = "UPDATE water.history AS record SET as_of = load_as_of FROM found \
    WHERE NOT found.differs AND NOT found.older AND record.as_of IS DISTINCT FROM load_as_of \
      AND (record.account_id, record.id) = (found.account_id, found.id)";

const NEW: &str = "SELECT count(*) FROM staged \
    WHERE NOT EXISTS (SELECT FROM found WHERE found.line = staged.line)";
const CHANGED: &str = "SELECT count(*) FROM found WHERE differs";
const LARGEST: &str = "SELECT found.line, record.score AS old, staged.score AS new \
    FROM found JOIN staged USING (line) JOIN water.history AS record \
        ON (record.account_id, record.id) = (found.account_id, found.id) \
    WHERE found.differs ORDER BY abs(staged.score::numeric - record.score::numeric) DESC LIMIT 5";
const OLDER: &str = "SELECT count(*) FROM found WHERE older";

/// Finds rows that repeat an earlier one with different content; `$1` of them and their number.
const CONFLICTS: &str = "SELECT staged.line, repeated.first_line, count(*) OVER () AS total \
    FROM (SELECT account_id, id, min(line) AS first_line FROM staged GROUP BY account_id, id HAVING count(*) > 1) \
        AS repeated \
    JOIN staged USING (account_id, id) \
    JOIN staged AS first ON first.line = repeated.first_line \
    WHERE (staged.created_at, staged.score, staged.company_name, staged.sector_code, staged.dept_code, staged.rating) \
        IS DISTINCT FROM \
        (first.created_at, first.score, first.company_name, first.sector_code, first.dept_code, first.rating) \
    ORDER BY staged.line LIMIT $1";

/// Drops repeated rows by number, not by a join with themselves: a row repeated 100 000 times has 5 billion pairs.
const DROP_REPEATED: &str = "DELETE FROM staged USING ( \
        SELECT line, row_number() OVER (PARTITION BY account_id, id ORDER BY line) AS number FROM staged \
    ) AS numbered \
    WHERE staged.line = numbered.line AND numbered.number > 1";

const DROP_FOUND_REPEATED: &str = "DELETE FROM found \
    WHERE NOT EXISTS (SELECT FROM staged WHERE staged.line = found.line)";

/// Lists the accounts in which rows were added or moved: the earliest date, and the number added.
const MOVED: &str = "CREATE TEMPORARY TABLE moved ON COMMIT DROP AS \
    SELECT account_id, min(created_at) AS since, sum(added) AS added FROM ( \
        SELECT account_id, created_at, 1 AS added FROM staged \
        WHERE NOT EXISTS (SELECT FROM found WHERE found.line = staged.line) \
        UNION ALL \
        SELECT account_id, least(created_at, old_created_at), 0 FROM found \
        WHERE NOT older AND created_at <> old_created_at \
    ) AS row GROUP BY account_id";

//! The merge of staged rows into a history, in SQL: each step and why.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Row, Transaction};
use water_domain::{Number, Timestamp};

use crate::error::{Attempt, Error};
use crate::writer::difference::{self, Difference, Value};
use crate::writer::history::{deletion, places, table};
use crate::writer::load::{Conflict, History, LoadError, Outcome};

/// How many conflicts are named; the rest is counted.
const NAMED_CONFLICTS: i64 = 50;

/// The steps of a merge, in the order in which they run.
pub(super) struct Merge<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    history: History,
    as_of: Timestamp,
    /// What the dataset's version will be, which rows that are new or changed carry.
    version: i64,
}

impl<'a, 'b> Merge<'a, 'b> {
    /// A merge of what is staged, which describes the moment `as_of`.
    pub(super) async fn of(
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
        let (purged, repeated) = self.find().await?;
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
        self.execute("confirming rows", CONFIRM).await?;
        let older = self.count("counting older rows", OLDER).await?;
        self.execute("finding the accounts that changed", MOVED)
            .await?;
        places::correct(self.transaction, self.history).await?;
        deletion::trim(self.transaction, self.history).await?;
        Ok(Outcome {
            inserted,
            updated,
            older,
            purged,
            ..Outcome::default()
        })
    }

    /// Says what [`Merge::run`] would do, from the session's own tables and what is stored.
    pub(super) async fn compare(&mut self) -> Result<Outcome, LoadError> {
        let (purged, _) = self.find().await?;
        self.drop_repeated().await?;
        Ok(Outcome {
            inserted: self.count("counting new rows", NEW).await?,
            updated: self.count("counting changed rows", CHANGED).await?,
            older: self.count("counting older rows", OLDER).await?,
            purged,
            largest: self.largest().await?,
            ..Outcome::default()
        })
    }

    /// The scores that would change most, by the line of the file: it names no account.
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
            Some(Difference::of(format!("line {line}"), column, sides))
        });
        Ok(difference::largest(differences))
    }

    /// Leaves out purged accounts and finds the rows that exist: how many were left out, and
    /// whether an existing one is there twice.
    async fn find(&mut self) -> Result<(u64, bool), Error> {
        let purged = self
            .execute("leaving out purged accounts", DROP_PURGED)
            .await?;
        self.execute("finding the rows that exist", FOUND).await?;
        let repeated = self
            .execute("looking for repeated rows", FOUND_REPEATED)
            .await?;
        Ok((purged, repeated > 0))
    }

    /// Inserts the rows that are new; `None` when the file repeats one of them, which is rare and
    /// costs less to find out in this way than to look for before each load.
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

    /// Date and version are written out, because `CREATE TABLE AS` takes no parameters.
    fn statement(&self, sql: &str) -> String {
        table::named(self.history, sql)
            .replace("load_as_of", &format!("timestamptz '{}'", self.as_of))
            .replace("load_version", &self.version.to_string())
    }
}

/// Rows of accounts that were removed and may not come back.
const DROP_PURGED: &str = "DELETE FROM staged WHERE account_id IN ( \
        SELECT account_id FROM (SELECT DISTINCT account_id FROM staged) AS account \
        WHERE sha256(convert_to(account_id, 'UTF8')) IN \
              (SELECT account_sha256 FROM water.purges WHERE lifted_at IS NULL)) \
    AND EXISTS (SELECT FROM water.purges WHERE lifted_at IS NULL)";

/// The staged rows whose account and id are stored: where they stood, whether a file of a later
/// date had them, and if not, whether they differ.
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

/// New rows, in the order of the index that pages are read by: neighbours on a page are neighbours
/// on disk.
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

/// Rows that a file of a later date has again stay so: an older file cannot revert them.
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

/// Numbered and not joined with themselves: a row that is there 100 000 times has 5 billion pairs.
const DROP_REPEATED: &str = "DELETE FROM staged USING ( \
        SELECT line, row_number() OVER (PARTITION BY account_id, id ORDER BY line) AS number FROM staged \
    ) AS numbered \
    WHERE staged.line = numbered.line AND numbered.number > 1";

const DROP_FOUND_REPEATED: &str = "DELETE FROM found \
    WHERE NOT EXISTS (SELECT FROM staged WHERE staged.line = found.line)";

/// The accounts in which rows moved: since when, and how many were added.
const MOVED: &str = "CREATE TEMPORARY TABLE moved ON COMMIT DROP AS \
    SELECT account_id, min(created_at) AS since, sum(added) AS added FROM ( \
        SELECT account_id, created_at, 1 AS added FROM staged \
        WHERE NOT EXISTS (SELECT FROM found WHERE found.line = staged.line) \
        UNION ALL \
        SELECT account_id, least(created_at, old_created_at), 0 FROM found \
        WHERE NOT older AND created_at <> old_created_at \
    ) AS row GROUP BY account_id";

//! Entries of a walk, and the two queries that read them.

use tokio_postgres::Row;
use water_domain::{Number, Timestamp};

use crate::error::Error;
use crate::moment::Moment;
use crate::walk::cursor::Place;
use crate::writer::History;

/// Rows by id: $1 the account, $2 the id before, $3 the limit.
macro_rules! rows {
    ($table:literal) => {
        concat!(
            "SELECT 0::bigint, id, company_name, sector_code, dept_code, score, rating, created_at ",
            "FROM water.", $table, " ",
            "WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3",
        )
    };
}

/// Changes by version and id: $1 the account, $2 and $3 the change before, $4 the last version,
/// $5 the limit. A deleted id that came back is a row again and no deletion.
macro_rules! changes {
    ($table:literal) => {
        concat!(
            "(SELECT version, id, company_name, sector_code, dept_code, score, rating, created_at ",
            " FROM water.", $table, " ",
            " WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4 ",
            " ORDER BY version, id LIMIT $5) ",
            "UNION ALL ",
            "(SELECT version, id, NULL::text, NULL::text, NULL::text, NULL::double precision, NULL::text, ",
            "        NULL::timestamptz ",
            " FROM water.", $table, "_deletions AS gone ",
            " WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4 AND NOT EXISTS ( ",
            "   SELECT FROM water.", $table, " AS record ",
            "   WHERE record.account_id = gone.account_id AND record.id = gone.id) ",
            " ORDER BY version, id LIMIT $5) ",
            "ORDER BY version, id LIMIT $5",
        )
    };
}

pub(super) fn rows_of(history: History) -> &'static str {
    match history {
        History::Analyses => rows!("analyses"),
        History::Audits => rows!("audits"),
    }
}

pub(super) fn changes_of(history: History) -> &'static str {
    match history {
        History::Analyses => changes!("analyses"),
        History::Audits => changes!("audits"),
    }
}

/// Positions of the columns.
mod column {
    pub const VERSION: usize = 0;
    pub const ID: usize = 1;
    pub const COMPANY_NAME: usize = 2;
    pub const SECTOR_CODE: usize = 3;
    pub const DEPT_CODE: usize = 4;
    pub const SCORE: usize = 5;
    pub const RATING: usize = 6;
    pub const CREATED_AT: usize = 7;
}

/// An entry of a walk.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Entry<'a> {
    /// A row that is stored.
    Row(Record<'a>),
    /// The id of a row that was deleted; the client may never have seen it.
    Deleted(&'a str),
}

/// A row of either history, as it is stored.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record<'a> {
    /// Unique within the account.
    pub id: &'a str,
    /// The company.
    pub company_name: &'a str,
    /// Code of the sector.
    pub sector_code: &'a str,
    /// Code of the département.
    pub dept_code: &'a str,
    /// `globalScore` of an analysis, `score` of an audit.
    pub score: Number,
    /// `rating` of an analysis, `globalRating` of an audit.
    pub rating: &'a str,
    /// Date of the analysis or audit.
    pub created_at: Timestamp,
}

/// Entries that were read together.
pub struct Portion {
    rows: Vec<Row>,
    more: bool,
}

impl Portion {
    /// Keeps at most `limit` of the rows; one more means that entries follow.
    pub(super) fn new(mut rows: Vec<Row>, limit: usize) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        Self { rows, more }
    }

    /// Whether the walk goes on after the last entry.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the portion is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The entries in the walk's order.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'_>, Error>> {
        self.rows.iter().map(entry)
    }

    /// Returns the place of the last of the first `count` entries.
    pub fn place_before(&self, count: usize) -> Option<Place> {
        let row = self.rows.get(count.checked_sub(1)?)?;
        Some(Place {
            version: row.get(column::VERSION),
            id: row.get(column::ID),
        })
    }
}

fn entry(row: &Row) -> Result<Entry<'_>, Error> {
    let id = row.get(column::ID);
    let Some(company_name) = row.get(column::COMPANY_NAME) else {
        return Ok(Entry::Deleted(id));
    };
    Ok(Entry::Row(Record {
        id,
        company_name,
        sector_code: row.get(column::SECTOR_CODE),
        dept_code: row.get(column::DEPT_CODE),
        score: Number::try_from(row.get::<_, f64>(column::SCORE))
            .map_err(|why| Error::stored("reading a portion of a history", why))?,
        rating: row.get(column::RATING),
        created_at: row.get::<_, Moment>(column::CREATED_AT).0,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::assert_kept;

    #[test]
    fn its_statements_are_kept_for_later_migrations() {
        assert_kept("rows_of_analyses", rows_of(History::Analyses));
        assert_kept("rows_of_audits", rows_of(History::Audits));
        assert_kept("changes_of_analyses", changes_of(History::Analyses));
        assert_kept("changes_of_audits", changes_of(History::Audits));
    }
}

//! Walks through an account's whole history, or through its changes since a version, portion by portion.
//!
//! All rows come in the order of their ids, which never change: a row that is stored throughout a walk is seen
//! exactly once. Changes come in the order of their versions, up to the version at which the walk began: later
//! changes belong to the next walk. Versions become visible in their order, because a load takes the next one under a
//! lock that it holds until it commits.
//!
//! Each page ends with the newest version that it may have shown. Tokens and cursors carry it beside the version at
//! which the walk began, so that the loss of a load is noticed even if only later pages have met that load.

mod cursor;
mod entry;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use water_domain::AccountId;

use crate::database::{Connection, Database, answer};
use crate::error::Error;
use crate::moment::Moment;
use crate::writer::History;
use cursor::State;
pub use cursor::{Cursor, Place, Token, Version, WalkError};
pub use entry::{Entry, Portion, Record};

/// Starting point of a part of a walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// The first of all rows.
    Rows,
    /// The first change after this state.
    Changes(Token),
    /// The end of an earlier part.
    At(Cursor),
}

/// A walk in progress. It keeps one connection, so that it never goes back in time: another connection may lead to
/// another replica.
pub struct Walk {
    idle: Idle,
    history: History,
    account: AccountId,
    since: Option<Token>,
    began: Token,
    after: Place,
    total: Option<u64>,
}

const BEGINNING: &str = "beginning to walk through a history";

/// Parameters: $1 the dataset, $2 the account, $3 and $4 versions that the client knows.
const STATE: &str = "SELECT version, id, now(), coalesce(( \
        SELECT purge FROM water.last_purges WHERE account_sha256 = sha256(convert_to($2, 'UTF8'))), 0), \
        pg_is_in_recovery(), \
        (SELECT id FROM water.versions WHERE dataset = $1 AND version = $3), \
        (SELECT id FROM water.versions WHERE dataset = $1 AND version = $4), \
        coalesce(CASE $1 WHEN 'analyses' \
                 THEN (SELECT total FROM water.analyses_accounts WHERE account_id = $2) \
                 ELSE (SELECT total FROM water.audits_accounts WHERE account_id = $2) END, 0) \
    FROM water.datasets JOIN water.versions USING (version) WHERE name = $1 AND dataset = name";

impl Walk {
    /// Begins a walk or continues one.
    pub async fn start(
        database: &Database,
        history: History,
        account: &AccountId,
        start: Start,
    ) -> Result<Self, WalkError> {
        let known = match &start {
            Start::Rows => None,
            Start::Changes(known) => Some(*known),
            Start::At(cursor) => Some(cursor.began),
        };
        let state = |connection: Connection| async move {
            let row = read_state(&connection, history, account, known).await;
            (connection, row)
        };
        let (connection, row) = database.ask_and_keep(BEGINNING, state).await?;
        let idle = Idle(Some(connection));
        let state = State {
            token: Token {
                version: row.get(0),
                id: row.get(1),
                at: row.get::<_, Moment>(2).0,
                purge: purge(&row),
                seen: version(&row),
            },
            may_catch_up: row.get(4),
        };
        let ids = [row.get(5), row.get(6)];
        match &start {
            Start::Rows => {}
            Start::Changes(known) => state.must_continue(known, ids, BEGINNING)?,
            Start::At(cursor) => state.must_go_on(cursor, ids, BEGINNING)?,
        }
        let state = state.token;
        let rows = u64::try_from(row.get::<_, i64>(7)).unwrap_or(0);
        let total = (start == Start::Rows).then_some(rows);
        let (since, began, after) = match start {
            Start::Rows => (None, state, Place::before_rows()),
            Start::Changes(known) => (Some(known), state, Place::after_version(known.version)),
            Start::At(cursor) => (cursor.since, cursor.began, cursor.after),
        };
        Ok(Self {
            idle,
            history,
            account: account.clone(),
            since,
            began,
            after,
            total,
        })
    }

    /// Reads the next entries, at most `limit`.
    pub async fn portion(mut self, limit: usize) -> Result<(Self, Portion), Error> {
        const ATTEMPT: &str = "reading a portion of a history";
        let connection = self.idle.take();
        // One row more shows whether entries follow.
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX - 1) + 1;
        let (account, after) = (self.account.as_str(), &self.after);
        let read = answer(ATTEMPT, async {
            match self.since {
                None => {
                    let statement = entry::rows_of(self.history);
                    let parameters: [&(dyn ToSql + Sync); 3] = [&account, &after.id, &wanted];
                    connection.rows(statement, &parameters).await
                }
                Some(_) => {
                    let statement = entry::changes_of(self.history);
                    let until = self.began.version;
                    let parameters: [&(dyn ToSql + Sync); 5] =
                        [&account, &after.version, &after.id, &until, &wanted];
                    connection.rows(statement, &parameters).await
                }
            }
        })
        .await;
        match read {
            Ok(rows) => {
                self.idle = Idle(Some(connection));
                let portion = Portion::new(rows, limit);
                if let Some(last) = portion.place_before(portion.len()) {
                    self.after = last;
                }
                Ok((self, portion))
            }
            Err(error) => connection.answered(Err(error)),
        }
    }

    /// Whether the walk goes through changes, which may be deletions.
    pub fn tells_changes(&self) -> bool {
        self.since.is_some()
    }

    /// Number of rows at this moment, where the walk through them begins here.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Ends a page. Returns the token of the state at which the walk began, since later changes belong to the next
    /// walk, and the cursor from which another request continues after this entry, if there is one. Both know the
    /// newest version that the walk may have shown. Refuses a page within which the account was purged: it may lack
    /// rows that no later page has.
    pub async fn end(mut self, after: Option<Place>) -> Result<(Token, Option<Cursor>), WalkError> {
        const ATTEMPT: &str = "reading the version at the end of a page";
        let connection = self.idle.take();
        let state = read_state(&connection, self.history, &self.account, None);
        let row = answer(ATTEMPT, state).await;
        let row = connection.answered(row)?;
        if purge(&row) > self.began.purge {
            return Err(WalkError::Expired);
        }
        let began = Token {
            seen: self.began.seen.or_newer(version(&row)),
            ..self.began
        };
        let next = after.map(|after| Cursor {
            since: self.since,
            began,
            after,
        });
        Ok((began, next))
    }
}

/// Reads the history's state, and the server's ids for the versions that a client knows.
async fn read_state(
    connection: &Connection,
    history: History,
    account: &AccountId,
    known: Option<Token>,
) -> Result<Row, tokio_postgres::Error> {
    let (began, seen) = known
        .map(|known| (known.version, known.seen.number))
        .unzip();
    let parameters: [&(dyn ToSql + Sync); 4] =
        [&history.as_str(), &account.as_str(), &began, &seen];
    connection.row(STATE, &parameters).await
}

/// The version of a state that was read.
fn version(state: &Row) -> Version {
    Version {
        number: state.get(0),
        id: state.get(1),
    }
}

/// The account's last purge in a state that was read.
fn purge(state: &Row) -> i64 {
    state.get(3)
}

/// A connection between two queries, which returns to the pool as it is.
struct Idle(Option<Connection>);

impl Idle {
    fn take(&mut self) -> Connection {
        self.0
            .take()
            .expect("a walk that was asked and failed is gone")
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection
                .answered(Ok(()))
                .expect("an answer that is given");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::assert_kept;

    #[test]
    fn its_statement_is_kept_for_later_migrations() {
        assert_kept("state", STATE);
    }
}

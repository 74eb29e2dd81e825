//! A whole history of an account, or what changed in it since a version, portion by portion.
//!
//! All rows come in the order of their ids, which never change: a row that is stored throughout a
//! walk is seen exactly once. Changes come in the order of their versions, up to the version at
//! which the walk began: what changes meanwhile belongs to the next walk. Versions become visible
//! in their order, because a load takes the next one under a lock that it holds until it commits.

mod cursor;
mod entry;

use tokio_postgres::types::ToSql;
use water_domain::AccountId;

use crate::database::{Connection, Database, answer};
use crate::error::Error;
use crate::moment::Moment;
use crate::writer::History;
pub use cursor::{Cursor, Place, Token, WalkError};
pub use entry::{Entry, Portion, Record};

/// Where a part of a walk starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// At the first of all rows.
    Rows,
    /// At the first change after this state.
    Changes(Token),
    /// Where an earlier part ended.
    At(Cursor),
}

/// A walk under way. It holds one connection, so that it never steps back: another one may lead
/// to another replica.
pub struct Walk {
    idle: Idle,
    history: History,
    account: AccountId,
    since: Option<Token>,
    began: Token,
    after: Place,
}

const BEGINNING: &str = "beginning to walk through a history";

/// $1 the dataset, $2 the account.
const STATE: &str = "SELECT version, now(), coalesce(( \
        SELECT purge FROM water.last_purges WHERE account_sha256 = sha256(convert_to($2, 'UTF8'))), 0) \
    FROM water.datasets WHERE name = $1";

impl Walk {
    /// Begins a walk, or a further part of one.
    pub async fn start(
        database: &Database,
        history: History,
        account: &AccountId,
        start: Start,
    ) -> Result<Self, WalkError> {
        let connection = database.connection().await?;
        let state = answer(BEGINNING, async {
            let statement = connection.prepare_cached(STATE).await?;
            let parameters: [&(dyn ToSql + Sync); 2] = [&history.as_str(), &account.as_str()];
            connection.query_one(&statement, &parameters).await
        })
        .await;
        let (idle, state) = match state {
            Ok(row) => (
                Idle(Some(connection)),
                Token {
                    version: row.get(0),
                    at: row.get::<_, Moment>(1).0,
                    purge: row.get(2),
                },
            ),
            Err(error) => connection.answered(Err(error))?,
        };
        let (since, began, after) = match start {
            Start::Rows => (None, state, Place::before_rows()),
            Start::Changes(known) => (Some(known), state, Place::after_version(known.version)),
            Start::At(cursor) => (cursor.since, cursor.began, cursor.after),
        };
        state.must_continue(&began, BEGINNING)?;
        if let Some(known) = &since {
            state.must_continue(known, BEGINNING)?;
        }
        Ok(Self {
            idle,
            history,
            account: account.clone(),
            since,
            began,
            after,
        })
    }

    /// Reads on, at most `limit` entries.
    pub async fn portion(mut self, limit: usize) -> Result<(Self, Portion), Error> {
        const ATTEMPT: &str = "reading a portion of a history";
        let connection = self.idle.take();
        // One more tells whether there is more.
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX - 1) + 1;
        let (account, after) = (self.account.as_str(), &self.after);
        let read = answer(ATTEMPT, async {
            match self.since {
                None => {
                    let statement = entry::rows_of(self.history);
                    let statement = connection.prepare_cached(statement).await?;
                    let parameters: [&(dyn ToSql + Sync); 3] = [&account, &after.id, &wanted];
                    connection.query(&statement, &parameters).await
                }
                Some(_) => {
                    let statement = entry::changes_of(self.history);
                    let statement = connection.prepare_cached(statement).await?;
                    let until = self.began.version;
                    let parameters: [&(dyn ToSql + Sync); 5] =
                        [&account, &after.version, &after.id, &until, &wanted];
                    connection.query(&statement, &parameters).await
                }
            }
        })
        .await;
        match read {
            Ok(rows) => {
                self.idle = Idle(Some(connection));
                let portion = Portion::of(rows, limit);
                if let Some(last) = portion.place_before(portion.len()) {
                    self.after = last;
                }
                Ok((self, portion))
            }
            Err(error) => connection.answered(Err(error)),
        }
    }

    /// Whether it goes through changes, which may be deletions.
    pub fn tells_changes(&self) -> bool {
        self.since.is_some()
    }

    /// The state at which the walk began: once it has ended, changes since then are news.
    pub fn began(&self) -> Token {
        self.began
    }

    /// How another request goes on after this entry.
    pub fn cursor(&self, after: Place) -> Cursor {
        Cursor {
            since: self.since,
            began: self.began,
            after,
        }
    }
}

/// A connection between two questions, which goes back to the pool as it is.
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

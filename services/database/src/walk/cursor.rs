//! What a client knows of a history, and where its walk goes on.

use std::time::Duration;

use water_domain::Timestamp;

use crate::error::Error;

/// How long a client may wait before it asks what changed. Deletions are kept a little longer.
const TOKEN_LIFETIME: Duration = Duration::from_hours(90 * 24);

/// A state of an account's history: all changes up to a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// The dataset's version.
    pub version: i64,
    /// The account's last purge before it, by number; 0 without one.
    pub purge: i64,
    /// When it was read, by the database's clock.
    pub at: Timestamp,
}

/// Where a walk goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// What the client knows: only later changes are told. `None`: all rows.
    pub since: Option<Token>,
    /// The state at which the walk began.
    pub began: Token,
    /// What was told last.
    pub after: Place,
}

/// The place of an entry in its walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The version of a change; 0 where all rows are walked.
    pub version: i64,
    /// The row's.
    pub id: String,
}

/// A walk that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// The account was purged since, or deletions may be forgotten by now.
    #[error("the account's rows were removed since, or it is more than 90 days old")]
    Expired,
    /// The database.
    #[error(transparent)]
    Database(#[from] Error),
}

impl Token {
    /// Refuses a state that this one does not continue.
    pub(super) fn must_continue(
        &self,
        known: &Token,
        attempt: &'static str,
    ) -> Result<(), WalkError> {
        let age = self.at.as_millis().saturating_sub(known.at.as_millis());
        if known.purge < self.purge || age > TOKEN_LIFETIME.as_millis() as i64 {
            return Err(WalkError::Expired);
        }
        match known.version > self.version || known.purge > self.purge {
            true => Err(Error::behind(attempt).into()),
            false => Ok(()),
        }
    }
}

impl Place {
    /// Every id is longer than none.
    pub(super) fn before_rows() -> Self {
        Self {
            version: 0,
            id: String::new(),
        }
    }

    pub(super) fn after_version(version: i64) -> Self {
        Self {
            version: version.saturating_add(1),
            id: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use water_domain::Fault;

    use super::*;

    fn token(version: i64, purge: i64, day: i64) -> Token {
        let at = Timestamp::from_millis(day * 86_400_000).unwrap();
        Token { version, purge, at }
    }

    #[test]
    fn a_state_continues_those_of_90_days_before_it() {
        let state = token(5, 2, 100);
        for known in [token(5, 2, 100), token(0, 2, 10)] {
            assert!(state.must_continue(&known, "asking").is_ok());
        }
        for known in [token(5, 1, 100), token(5, 2, 9)] {
            let refused = state.must_continue(&known, "asking");
            assert!(matches!(refused, Err(WalkError::Expired)));
        }
    }

    #[test]
    fn a_state_that_is_behind_may_catch_up() {
        for known in [token(6, 2, 100), token(5, 3, 100)] {
            let Err(WalkError::Database(error)) = token(5, 2, 100).must_continue(&known, "asking")
            else {
                panic!("accepted");
            };
            assert!(error.is_transient());
        }
    }
}

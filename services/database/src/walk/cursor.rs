//! Tokens and cursors: the state of a history that a client knows, and the position of its walk.

use std::time::Duration;

use water_domain::Timestamp;

use crate::error::Error;
use crate::version_id::VersionId;

/// Time within which a client must ask for changes. Deletions are kept a little longer.
const TOKEN_LIFETIME: Duration = Duration::from_hours(90 * 24);

/// A state of an account's history: all changes up to a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// The dataset's version.
    pub version: i64,
    /// Random id of that version.
    pub id: VersionId,
    /// Number of the account's last purge before it; 0 without one.
    pub purge: i64,
    /// Time at which it was read, by the database's clock.
    pub at: Timestamp,
}

/// Position of a walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// State that the client knows: the walk has only later changes. `None`: all rows.
    pub since: Option<Token>,
    /// The state at which the walk began.
    pub began: Token,
    /// Place of the last entry sent.
    pub after: Place,
}

/// The place of an entry in its walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The version of a change; 0 in a walk through all rows.
    pub version: i64,
    /// The row's id.
    pub id: String,
}

/// A walk that cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// The account was purged since, deletions may be forgotten by now, or the database no longer has the load that
    /// the client saw.
    #[error(
        "the account's rows were removed since, it is more than 90 days old, or the database went \
         back to an earlier state"
    )]
    Expired,
    /// An error of the database.
    #[error(transparent)]
    Database(#[from] Error),
}

/// A history's state on one server.
pub(super) struct State {
    pub(super) token: Token,
    /// Whether the server is a replica, which gets later states from its primary.
    pub(super) may_catch_up: bool,
}

impl State {
    /// Refuses a known state that this one does not continue. `id` is this server's id for its version.
    pub(super) fn must_continue(
        &self,
        known: &Token,
        id: Option<VersionId>,
        attempt: &'static str,
    ) -> Result<(), WalkError> {
        let Self {
            token: state,
            may_catch_up,
        } = self;
        let age = state.at.as_millis().saturating_sub(known.at.as_millis());
        if known.purge < state.purge || age > TOKEN_LIFETIME.as_millis() as i64 {
            return Err(WalkError::Expired);
        }
        if known.version > state.version || known.purge > state.purge {
            return Err(if *may_catch_up {
                Error::behind(attempt).into()
            } else {
                WalkError::Expired
            });
        }
        if id == Some(known.id) {
            Ok(())
        } else {
            Err(WalkError::Expired)
        }
    }
}

impl Place {
    /// The place before all rows: the empty id sorts before every other.
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

    const ID: VersionId = VersionId([1; 16]);

    fn token(version: i64, purge: i64, day: i64) -> Token {
        let at = Timestamp::from_millis(day * 86_400_000).unwrap();
        Token {
            version,
            id: ID,
            purge,
            at,
        }
    }

    /// The state of version 5, after purge 2, on day 100.
    fn state(may_catch_up: bool) -> State {
        State {
            token: token(5, 2, 100),
            may_catch_up,
        }
    }

    #[test]
    fn a_state_continues_those_of_90_days_before_it() {
        for known in [token(5, 2, 100), token(0, 2, 10)] {
            assert!(state(false).must_continue(&known, Some(ID), "").is_ok());
        }
        for known in [token(5, 1, 100), token(5, 2, 9)] {
            let refused = state(true).must_continue(&known, Some(ID), "");
            assert!(matches!(refused, Err(WalkError::Expired)));
        }
    }

    #[test]
    fn a_version_with_another_id_or_none_has_expired() {
        for id in [None, Some(VersionId([2; 16]))] {
            for may_catch_up in [false, true] {
                let refused = state(may_catch_up).must_continue(&token(5, 2, 100), id, "");
                assert!(matches!(refused, Err(WalkError::Expired)));
            }
        }
    }

    #[test]
    fn a_replica_that_is_behind_may_catch_up_and_a_primary_never_does() {
        for known in [token(6, 2, 100), token(5, 3, 100)] {
            let refused = state(false).must_continue(&known, Some(ID), "");
            assert!(matches!(refused, Err(WalkError::Expired)));
            let refused = state(true).must_continue(&known, None, "");
            let Err(WalkError::Database(error)) = refused else {
                panic!("{refused:?}");
            };
            assert!(error.is_transient());
            let why = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(why, "this replica is behind what was asked for");
        }
    }
}

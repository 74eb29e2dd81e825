//! Tokens and cursors: the state of a history that a client knows, and the position of its walk.

use std::time::Duration;

use water_domain::Timestamp;

use crate::error::Error;
use crate::version_id::VersionId;

/// Time within which a client must ask for changes. Deletions are kept a little longer.
const TOKEN_LIFETIME: Duration = Duration::from_hours(90 * 24);

/// A version of a dataset, as one database has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// The number, which another load gets after a restore.
    pub number: i64,
    /// The random id, which no other load gets.
    pub id: VersionId,
}

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
    /// Newest version that the walk may have shown: its pages may have rows of later loads, or lack what these deleted.
    pub seen: Version,
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
    /// Refuses a known state since which a purge or the time has removed what its client must hear of.
    fn must_remember(&self, known: &Token) -> Result<(), WalkError> {
        let state = &self.token;
        let age = state.at.as_millis().saturating_sub(known.at.as_millis());
        if known.purge < state.purge || age > TOKEN_LIFETIME.as_millis() as i64 {
            return Err(WalkError::Expired);
        }
        Ok(())
    }

    /// Refuses a known state that this one does not continue. `ids` are this server's ids for its version and for the
    /// newest that the client has seen.
    pub(super) fn must_continue(
        &self,
        known: &Token,
        ids: [Option<VersionId>; 2],
        attempt: &'static str,
    ) -> Result<(), WalkError> {
        self.must_remember(known)?;
        let Self {
            token: state,
            may_catch_up,
        } = self;
        let newest = known.version.max(known.seen.number);
        if newest > state.version || known.purge > state.purge {
            return Err(if *may_catch_up {
                Error::behind(attempt).into()
            } else {
                WalkError::Expired
            });
        }
        if ids == [Some(known.id), Some(known.seen.id)] {
            Ok(())
        } else {
            Err(WalkError::Expired)
        }
    }

    /// Refuses a walk that this state does not continue. A replica that has the state at which the walk began goes on,
    /// also without the newest that the walk has met: its rows are of an earlier state, and what the walk has met is
    /// checked once its last token is used.
    pub(super) fn must_go_on(
        &self,
        walk: &Cursor,
        ids: [Option<VersionId>; 2],
        attempt: &'static str,
    ) -> Result<(), WalkError> {
        let began = &walk.began;
        if self.may_catch_up && began.seen.number > self.token.version {
            let seen = Version {
                number: began.version,
                id: began.id,
            };
            let began = Token { seen, ..*began };
            self.must_continue(&began, [ids[0]; 2], attempt)?;
        } else {
            self.must_continue(began, ids, attempt)?;
        }
        // A server that has the state at which the walk began has the one since which it asks, too.
        match &walk.since {
            None => Ok(()),
            Some(since) => self.must_remember(since),
        }
    }
}

impl Version {
    /// Returns the newer of both: the server may be behind one that made an earlier page. Both are of moments between
    /// portions: what a pooler read from another server meanwhile, they do not know.
    pub(super) fn or_newer(self, other: Self) -> Self {
        if other.number > self.number {
            other
        } else {
            self
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
            seen: Version {
                number: version,
                id: ID,
            },
        }
    }

    /// The token of a walk that began at version 3 and has met this one.
    fn met(number: i64) -> Token {
        Token {
            seen: Version { number, id: ID },
            ..token(3, 2, 100)
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
            let continued = state(false).must_continue(&known, [Some(ID); 2], "");
            assert!(continued.is_ok());
        }
        for known in [token(5, 1, 100), token(5, 2, 9)] {
            let refused = state(true).must_continue(&known, [Some(ID); 2], "");
            assert!(matches!(refused, Err(WalkError::Expired)));
            let refused = state(true).must_remember(&known);
            assert!(matches!(refused, Err(WalkError::Expired)));
        }
    }

    fn cursor(since: Option<Token>, began: Token) -> Cursor {
        Cursor {
            since,
            began,
            after: Place::before_rows(),
        }
    }

    #[test]
    fn a_walk_goes_on_while_the_state_since_which_it_asks_is_remembered() {
        let began = token(5, 2, 100);
        for may_catch_up in [false, true] {
            let goes_on = |since| {
                let walk = cursor(Some(since), began);
                state(may_catch_up).must_go_on(&walk, [Some(ID); 2], "")
            };
            assert!(goes_on(token(3, 2, 10)).is_ok());
            for forgotten in [token(3, 2, 9), token(3, 1, 100)] {
                let refused = goes_on(forgotten);
                assert!(matches!(refused, Err(WalkError::Expired)), "{forgotten:?}");
            }
        }
    }

    #[test]
    fn a_replica_goes_on_with_a_walk_whose_beginning_it_has() {
        let walk = cursor(None, met(6));
        let goes_on = |may_catch_up, began| {
            let ids = [began, None];
            state(may_catch_up).must_go_on(&walk, ids, "")
        };
        assert!(goes_on(true, Some(ID)).is_ok());
        for refused in [
            goes_on(false, Some(ID)),
            goes_on(true, None),
            goes_on(true, Some(VersionId([2; 16]))),
        ] {
            assert!(matches!(refused, Err(WalkError::Expired)), "{refused:?}");
        }
        let ahead = cursor(None, token(6, 2, 100));
        let refused = state(true).must_go_on(&ahead, [None; 2], "");
        assert!(matches!(refused, Err(WalkError::Database(error)) if error.is_transient()));
    }

    #[test]
    fn a_version_with_another_id_or_none_has_expired() {
        for id in [None, Some(VersionId([2; 16]))] {
            for may_catch_up in [false, true] {
                for ids in [[id, Some(ID)], [Some(ID), id]] {
                    let refused = state(may_catch_up).must_continue(&met(5), ids, "");
                    assert!(matches!(refused, Err(WalkError::Expired)), "{ids:?}");
                }
            }
        }
        let continued = state(false).must_continue(&met(5), [Some(ID); 2], "");
        assert!(continued.is_ok());
    }

    #[test]
    fn the_newest_version_that_was_seen_stays_the_newest() {
        let [older, newer] = [4, 5].map(|number| met(number).seen);
        assert_eq!(older.or_newer(newer), newer);
        assert_eq!(newer.or_newer(older), newer);
    }

    #[test]
    fn a_replica_that_is_behind_may_catch_up_and_a_primary_never_does() {
        for known in [token(6, 2, 100), token(5, 3, 100), met(6)] {
            let refused = state(false).must_continue(&known, [Some(ID); 2], "");
            assert!(matches!(refused, Err(WalkError::Expired)));
            let refused = state(true).must_continue(&known, [Some(ID), None], "");
            let Err(WalkError::Database(error)) = refused else {
                panic!("{refused:?}");
            };
            assert!(error.is_transient());
            let why = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(why, "this replica is behind what was asked for");
        }
    }
}

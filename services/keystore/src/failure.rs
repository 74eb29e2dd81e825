//! What can go wrong with Redis, told apart by what an operator of the service must do about it.

use std::fmt;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use water_domain::Fault;

/// Why Redis did not do what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// Not reachable, or the connection broke.
    Down,
    /// No answer within the connection's timeout; the command may have been carried out.
    Slow,
    /// A replica, or a primary with too few replicas.
    ReadOnly,
    /// `maxmemory` is reached.
    OutOfMemory,
    /// Still reading its dump.
    Loading,
    /// User or password refused.
    WrongPassword,
    /// A Redis Cluster without all its slots, or one that moves them; or a cluster behind a URL that
    /// names a single server.
    ClusterDown,
    /// The user lacks a right: the ACL is not the one that `redis-acl` prints.
    Denied,
    /// An answer of another shape than the contract says.
    Unexpected,
}

impl Reason {
    /// All reasons, for metrics that show each from the start.
    pub const ALL: [Self; 9] = [
        Self::Down,
        Self::Slow,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::Loading,
        Self::WrongPassword,
        Self::ClusterDown,
        Self::Denied,
        Self::Unexpected,
    ];

    /// A stable word for logs, metrics and conditions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Slow => "slow",
            Self::ReadOnly => "read_only",
            Self::OutOfMemory => "out_of_memory",
            Self::Loading => "loading",
            Self::WrongPassword => "wrong_password",
            Self::ClusterDown => "cluster_down",
            Self::Denied => "denied",
            Self::Unexpected => "unexpected",
        }
    }

    fn of(error: &RedisError) -> Self {
        match error.code() {
            Some("OOM") => return Self::OutOfMemory,
            Some("NOAUTH" | "WRONGPASS") => return Self::WrongPassword,
            // A primary that lost its replicas refuses writes as a replica does.
            Some("NOREPLICAS" | "MISCONF") => return Self::ReadOnly,
            Some("BUSY") => return Self::Slow,
            _ => {}
        }
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::WrongPassword,
            ErrorKind::Io if error.is_timeout() => Self::Slow,
            ErrorKind::Io => Self::Down,
            ErrorKind::ClusterConnectionNotFound => Self::ClusterDown,
            ErrorKind::Server(kind) => match kind {
                ServerErrorKind::ReadOnly => Self::ReadOnly,
                ServerErrorKind::BusyLoading => Self::Loading,
                ServerErrorKind::ClusterDown
                | ServerErrorKind::Moved
                | ServerErrorKind::Ask
                | ServerErrorKind::TryAgain
                | ServerErrorKind::CrossSlot => Self::ClusterDown,
                ServerErrorKind::MasterDown => Self::Down,
                ServerErrorKind::NoPerm => Self::Denied,
                _ => Self::Unexpected,
            },
            _ if error.is_connection_dropped() => Self::Down,
            _ => Self::Unexpected,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Down => "Redis cannot be reached",
            Self::Slow => "Redis did not answer in time",
            Self::ReadOnly => "Redis accepts no writes",
            Self::OutOfMemory => "Redis is out of memory",
            Self::Loading => "Redis is still loading its data",
            Self::WrongPassword => "Redis refuses the user or password",
            Self::ClusterDown => "the Redis Cluster is down or moves its slots",
            Self::Denied => "the Redis user lacks a right that `water-operator redis-acl` lists",
            Self::Unexpected => "Redis gave an unexpected answer",
        })
    }
}

/// Redis did not do what was asked. Prints no URL, key or argument.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt}: {reason}")]
pub struct StoreError {
    attempt: &'static str,
    reason: Reason,
    #[source]
    source: Option<RedisError>,
}

impl StoreError {
    pub(crate) fn new(attempt: &'static str, source: RedisError) -> Self {
        Self {
            attempt,
            reason: Reason::of(&source),
            source: Some(source),
        }
    }

    /// Redis answered, but with another shape than the contract of `attempt` says.
    pub(crate) fn unexpected(attempt: &'static str) -> Self {
        Self {
            attempt,
            reason: Reason::Unexpected,
            source: None,
        }
    }

    /// Why.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Whether Redis may have done what was asked all the same: it was sent, and nothing refused it.
    pub(crate) fn may_have_run(&self) -> bool {
        match self.reason {
            Reason::Slow | Reason::Unexpected => true,
            // A connection that was not made carried nothing.
            Reason::Down => !self
                .source
                .as_ref()
                .is_some_and(RedisError::is_connection_refusal),
            _ => false,
        }
    }
}

impl Fault for StoreError {
    fn is_transient(&self) -> bool {
        self.reason != Reason::Unexpected
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    fn server_error(code: &str) -> RedisError {
        redis::make_extension_error(code.into(), Some("detail".into()))
    }

    #[test]
    fn each_kind_of_trouble_has_its_own_reason() {
        for (code, reason) in [
            ("OOM", Reason::OutOfMemory),
            ("NOAUTH", Reason::WrongPassword),
            ("NOREPLICAS", Reason::ReadOnly),
            ("ANYTHING", Reason::Unexpected),
        ] {
            assert_eq!(Reason::of(&server_error(code)), reason, "{code}");
        }
        let refused = std::io::Error::from(ErrorKind::ConnectionRefused);
        assert_eq!(Reason::of(&refused.into()), Reason::Down);
        let late = std::io::Error::from(ErrorKind::TimedOut);
        assert_eq!(Reason::of(&late.into()), Reason::Slow);
    }

    #[test]
    fn only_what_was_refused_or_never_sent_has_surely_not_run() {
        let error = |kind| StoreError::new("charge", std::io::Error::from(kind).into());
        assert!(!error(ErrorKind::ConnectionRefused).may_have_run());
        assert!(error(ErrorKind::BrokenPipe).may_have_run());
        assert!(error(ErrorKind::TimedOut).may_have_run());
        assert!(!StoreError::new("charge", server_error("OOM")).may_have_run());
        assert!(StoreError::unexpected("charge").may_have_run());
    }

    #[test]
    fn only_a_broken_contract_is_a_bug() {
        assert!(StoreError::new("read the feed", server_error("OOM")).is_transient());
        assert!(!StoreError::unexpected("read the feed").is_transient());
    }
}

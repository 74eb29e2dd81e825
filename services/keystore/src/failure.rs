//! Failures of Redis, distinguished by what an operator of the service must do about them.

use redis::{ErrorKind, RedisError};
use water_domain::Fault;

/// Reason for which Redis did not do what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Reason {
    /// Redis is not reachable, or the connection broke.
    #[error("Redis cannot be reached")]
    Down,
    /// Redis did not answer within the connection's timeout; the command may have been carried out.
    #[error("Redis did not answer in time")]
    Slow,
    /// A replica, or a primary with too few replicas.
    #[error("Redis accepts no writes")]
    ReadOnly,
    /// `maxmemory` is reached.
    #[error("Redis is out of memory")]
    OutOfMemory,
    /// Still reading its dump.
    #[error("Redis is still loading its data")]
    Loading,
    /// User or password refused.
    #[error("Redis refuses the user or password")]
    WrongPassword,
    /// A Redis Cluster without all its slots, or one that moves them; or a cluster behind a URL that
    /// names a single server.
    #[error("the Redis Cluster is down or moves its slots")]
    ClusterDown,
    /// The user lacks a right: the ACL is not the one that `redis-acl` prints.
    #[error("the Redis user lacks a right that `water-operator redis-acl` lists")]
    Denied,
    /// An answer of another shape than the contract says.
    #[error("Redis gave an unexpected answer")]
    Unexpected,
}

impl From<&RedisError> for Reason {
    fn from(error: &RedisError) -> Self {
        match (error.kind(), error.code()) {
            (ErrorKind::Io, _) if error.is_timeout() => Self::Slow,
            (ErrorKind::Io, _) => Self::Down,
            (ErrorKind::AuthenticationFailed, _) => Self::WrongPassword,
            (ErrorKind::ClusterConnectionNotFound, _) => Self::ClusterDown,
            (_, Some("MASTERDOWN")) => Self::Down,
            (_, Some("BUSY")) => Self::Slow,
            // A primary that lost its replicas refuses writes as a replica does.
            (_, Some("READONLY" | "NOREPLICAS" | "MISCONF")) => Self::ReadOnly,
            (_, Some("OOM")) => Self::OutOfMemory,
            (_, Some("LOADING")) => Self::Loading,
            (_, Some("NOAUTH" | "WRONGPASS")) => Self::WrongPassword,
            (_, Some("CLUSTERDOWN" | "MOVED" | "ASK" | "TRYAGAIN" | "CROSSSLOT")) => {
                Self::ClusterDown
            }
            (_, Some("NOPERM")) => Self::Denied,
            _ if is_denied_in_script(error) => Self::Denied,
            _ if error.is_connection_dropped() => Self::Down,
            _ => Self::Unexpected,
        }
    }
}

impl Reason {
    /// List of all reasons, for metrics that show each from the start.
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
}

/// Whether a script lacked a right, in the words of Redis 7.0 or of later ones. There is no code for it.
fn is_denied_in_script(error: &RedisError) -> bool {
    let words = [
        "The user executing the script can't",
        "ACL failure in script",
    ];
    let detail = error.detail().unwrap_or_default();
    words.iter().any(|words| detail.contains(words))
}

/// Failure of Redis to do what was asked. Prints no URL, key or argument.
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
            reason: Reason::from(&source),
            source: Some(source),
        }
    }

    /// Error of an answer with another shape than the contract of `attempt` says.
    pub(crate) fn unexpected(attempt: &'static str) -> Self {
        Self {
            attempt,
            reason: Reason::Unexpected,
            source: None,
        }
    }

    /// Reason of the failure.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Whether Redis' answer has these words.
    pub(crate) fn says(&self, words: &str) -> bool {
        let detail = self.source.as_ref().and_then(RedisError::detail);
        detail.is_some_and(|detail| detail.contains(words))
    }

    /// Whether Redis may have done what was asked all the same: it was sent, and nothing refused it.
    pub fn may_have_run(&self) -> bool {
        match self.reason {
            Reason::Slow | Reason::Unexpected => true,
            // A script may have done something before.
            Reason::Denied => self.source.as_ref().is_some_and(is_denied_in_script),
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

    use redis::ServerErrorKind;

    use super::*;

    /// Answers of Redis 7.0 and of 7.2.
    const DENIED_IN_SCRIPT: [&str; 2] = [
        "The user executing the script can't run this command or subcommand script: 8a2f, on @user_script:1.",
        "ACL failure in script: User u has no permissions to run the 'zrange' command script: 8a2f, on @user_script:1.",
    ];

    fn server_error(code: &str) -> RedisError {
        redis::make_extension_error(code.into(), Some("detail".into()))
    }

    #[test]
    fn each_kind_of_trouble_has_its_own_reason() {
        for (code, reason) in [
            ("OOM", Reason::OutOfMemory),
            ("NOAUTH", Reason::WrongPassword),
            ("NOREPLICAS", Reason::ReadOnly),
            ("BUSY", Reason::Slow),
            ("ANYTHING", Reason::Unexpected),
        ] {
            assert_eq!(Reason::from(&server_error(code)), reason, "{code}");
        }
        for (kind, reason) in [
            (ServerErrorKind::MasterDown, Reason::Down),
            (ServerErrorKind::ReadOnly, Reason::ReadOnly),
            (ServerErrorKind::BusyLoading, Reason::Loading),
            (ServerErrorKind::ClusterDown, Reason::ClusterDown),
            (ServerErrorKind::Moved, Reason::ClusterDown),
            (ServerErrorKind::Ask, Reason::ClusterDown),
            (ServerErrorKind::TryAgain, Reason::ClusterDown),
            (ServerErrorKind::CrossSlot, Reason::ClusterDown),
            (ServerErrorKind::NoPerm, Reason::Denied),
            (ServerErrorKind::NoScript, Reason::Unexpected),
        ] {
            let error = RedisError::from((redis::ErrorKind::Server(kind), "detail"));
            assert_eq!(Reason::from(&error), reason, "{kind:?}");
        }
        for detail in DENIED_IN_SCRIPT {
            let error = redis::make_extension_error("ERR".into(), Some(detail.into()));
            assert_eq!(Reason::from(&error), Reason::Denied, "{detail}");
        }
        let refused = std::io::Error::from(ErrorKind::ConnectionRefused);
        assert_eq!(Reason::from(&refused.into()), Reason::Down);
        let late = std::io::Error::from(ErrorKind::TimedOut);
        assert_eq!(Reason::from(&late.into()), Reason::Slow);
    }

    #[test]
    fn only_what_was_refused_or_never_sent_has_surely_not_run() {
        let error = |kind| StoreError::new("charge", std::io::Error::from(kind).into());
        assert!(!error(ErrorKind::ConnectionRefused).may_have_run());
        assert!(error(ErrorKind::BrokenPipe).may_have_run());
        assert!(error(ErrorKind::TimedOut).may_have_run());
        assert!(!StoreError::new("charge", server_error("OOM")).may_have_run());
        assert!(StoreError::unexpected("charge").may_have_run());
        assert!(!StoreError::new("charge", server_error("NOPERM")).may_have_run());
        let denied = redis::make_extension_error("ERR".into(), Some(DENIED_IN_SCRIPT[0].into()));
        assert!(StoreError::new("charge", denied).may_have_run());
    }

    #[test]
    fn only_a_broken_contract_is_a_bug() {
        assert!(StoreError::new("read the feed", server_error("OOM")).is_transient());
        assert!(!StoreError::unexpected("read the feed").is_transient());
    }
}

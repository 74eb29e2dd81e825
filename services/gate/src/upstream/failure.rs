//! Reasons that a service gave no answer to pass on.

use std::io;

use super::connection::Break;

/// A failure between the gate and a service.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamFailure {
    /// The connection was refused, or the name is not known: nothing was sent.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// The connection could not be made in time: nothing was sent.
    #[error("cannot connect in time")]
    ConnectTooSlow,
    /// A connection from the pool was closed before any byte of an answer: the service closed it while the request was
    /// on its way, which every server may do with an idle connection.
    #[error("a reused connection was closed before an answer began")]
    Stale(#[source] io::Error),
    /// The other end no longer acknowledges sent bytes, and no answer has begun: its node has left the network without
    /// notice.
    #[error("the other end of the connection is gone")]
    Gone(#[source] io::Error),
    /// The connection broke or the answer is not HTTP.
    #[error("the answer broke off")]
    Broken(#[source] Break),
    /// The answer's body is larger than the bound.
    #[error("the answer is too large")]
    TooLarge,
    /// No complete answer by the deadline.
    #[error("no complete answer in time")]
    TooSlow,
}

impl UpstreamFailure {
    /// Whether one more attempt is safe and may help: the next connection may reach another pod. Nothing was sent; or
    /// the service closed a connection that had been idle for too long; or the other end is down. Every request only
    /// reads, so repeating one is safe.
    pub(super) fn allows_another_attempt(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Stale(_) | Self::Gone(_))
    }

    /// Whether the service gave no valid answer, so that the next request may fail too. Too large an answer concerns
    /// only its own request.
    pub(super) fn is_silence(&self) -> bool {
        !matches!(self, Self::TooLarge)
    }

    /// Returns a stable word for logs and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::ConnectTooSlow => "connect_slow",
            Self::Stale(_) => "stale",
            Self::Gone(_) => "gone",
            Self::Broken(_) => "broken",
            Self::TooLarge => "too_large",
            Self::TooSlow => "slow",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_repeated_where_nobody_is_at_work_on_it_and_time_is_left() {
        let error = |kind: io::ErrorKind| io::Error::from(kind);
        for safe in [
            UpstreamFailure::Connect(error(io::ErrorKind::ConnectionRefused)),
            UpstreamFailure::Stale(error(io::ErrorKind::ConnectionReset)),
            UpstreamFailure::Gone(error(io::ErrorKind::TimedOut)),
        ] {
            assert!(safe.allows_another_attempt(), "{safe}");
        }
        for unclear in [
            UpstreamFailure::ConnectTooSlow,
            UpstreamFailure::TooSlow,
            UpstreamFailure::TooLarge,
        ] {
            assert!(!unclear.allows_another_attempt(), "{unclear}");
        }
    }
}

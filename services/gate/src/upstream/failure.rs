//! Why a service gave no answer that can be passed on.

use std::io;

use super::connection::Break;

/// What went wrong between the gate and a service.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamFailure {
    /// Nobody listens, or the name is not known: nothing was sent.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// The connection could not be made in time: nothing was sent.
    #[error("cannot connect in time")]
    ConnectTooSlow,
    /// A connection from the pool was closed before any byte of an answer: the service ended it
    /// while the request was on its way, which every server may do with an idle connection.
    #[error("a reused connection was closed before an answer began")]
    Stale(#[source] io::Error),
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
    /// Whether one more attempt is safe and may help: nothing was sent, and the next connection may
    /// find another pod; or the service closed a connection that it had left open for too long.
    pub(super) fn left_no_trace(&self) -> bool {
        matches!(
            self,
            Self::Connect(_) | Self::ConnectTooSlow | Self::Stale(_)
        )
    }

    /// Whether the service has said nothing that makes sense, so that the next request may fare no
    /// better. Too large an answer is a matter of one request.
    pub(super) fn is_silence(&self) -> bool {
        !matches!(self, Self::TooLarge)
    }

    /// A stable word for logs and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::ConnectTooSlow => "connect_slow",
            Self::Stale(_) => "stale",
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
    fn what_was_never_sent_may_be_sent_again_and_nothing_else() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        for safe in [
            UpstreamFailure::Connect(refused),
            UpstreamFailure::ConnectTooSlow,
        ] {
            assert!(safe.left_no_trace(), "{safe}");
        }
        for unclear in [UpstreamFailure::TooSlow, UpstreamFailure::TooLarge] {
            assert!(!unclear.left_no_trace(), "{unclear}");
        }
    }
}

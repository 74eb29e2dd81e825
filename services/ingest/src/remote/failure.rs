//! Failures to fetch a file: those that may pass, and the others.

use std::io;
use std::time::Duration;

use ureq::Timeout;

/// Failure to fetch a file.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The CA file cannot be read.
    #[error("reading the file {0} that WATER_SOURCE_CA_FILE names")]
    CaFile(String, #[source] io::Error),
    /// The CA file has no certificate.
    #[error("the file {0} that WATER_SOURCE_CA_FILE names has no certificate: it must be PEM")]
    NoCertificate(String),
    /// The server answered with another status, and perhaps after how long it may be asked again.
    #[error("the server answered status {0}")]
    Status(u16, Option<Duration>),
    /// The file is larger than anything that is loaded.
    #[error("the file has more than 4 GiB: load it from a volume")]
    TooLarge,
    /// The file's end could not be distinguished from a lost connection.
    #[error(
        "the server tells neither the file's length nor its end: a cut-off file would look whole"
    )]
    Unbounded,
    /// The file took too long.
    #[error("the file did not come in time, which WATER_SOURCE_DEADLINE_SECONDS sets")]
    Deadline,
    /// The host's name, the connection or the beginning of the answer took too long.
    #[error("the server did not answer in time")]
    Silent,
    /// No host has the name in the address, in a redirect or in the proxy's address.
    #[error("the host's name is not known")]
    UnknownHost,
    /// A redirect leads to a place that is not encrypted.
    #[error("the server redirects to an address that is not https://")]
    Redirect,
    /// The redirects do not end.
    #[error("the server redirects without end")]
    Redirects,
    /// The answer cannot be read.
    #[error("the server's answer is not HTTP as it should be")]
    Protocol,
    /// The connection failed.
    #[error("{0}")]
    Connection(&'static str),
    /// The connection failed, in the words of the operating system.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The server's certificate is not trusted.
    #[error("the server's certificate is not trusted")]
    Certificate(#[source] rustls::Error),
}

impl From<ureq::Error> for FetchError {
    /// Converts an error without the library's own text: it may repeat the address, whose query may hold a token.
    fn from(error: ureq::Error) -> Self {
        match error {
            ureq::Error::Timeout(
                Timeout::Resolve | Timeout::Connect | Timeout::SendRequest | Timeout::RecvResponse,
            ) => Self::Silent,
            ureq::Error::Timeout(_) => Self::Deadline,
            ureq::Error::Io(error) => Self::of_io(error),
            ureq::Error::Rustls(error) => Self::Certificate(error),
            ureq::Error::RequireHttpsOnly(_) => Self::Redirect,
            ureq::Error::BodyExceedsLimit(_) => Self::TooLarge,
            ureq::Error::HostNotFound => Self::UnknownHost,
            ureq::Error::TooManyRedirects => Self::Redirects,
            ureq::Error::ConnectProxyFailed(_) => {
                Self::Connection("the proxy refused the connection")
            }
            ureq::Error::ConnectionFailed => Self::Connection("the server cannot be reached"),
            _ => Self::Protocol,
        }
    }
}

impl FetchError {
    /// Finds the errors of the library itself, which it hides in those of reading.
    pub(super) fn of_io(error: io::Error) -> Self {
        match error.downcast::<ureq::Error>() {
            Ok(error) => Self::from(error),
            Err(error) => match error.downcast::<rustls::Error>() {
                Ok(error) => Self::Certificate(error),
                Err(error) => Self::Io(error),
            },
        }
    }

    /// Whether the same request may succeed a little later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            // 408: the server waited too long for the request; 429: it had too many of them. 501 and 505 stay.
            Self::Status(code, _) => matches!(code, 408 | 429 | 500 | 502..=504 | 506..),
            Self::Silent | Self::Connection(_) | Self::Io(_) => true,
            _ => false,
        }
    }

    /// Time after which the server says that it may be asked again.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status(_, retry_after) => *retry_after,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_answer_is_asked_again_and_one_that_is_slow_to_the_end_is_not() {
        for (timeout, is_silence) in [
            (Timeout::Resolve, true),
            (Timeout::Connect, true),
            (Timeout::SendRequest, true),
            (Timeout::RecvResponse, true),
            (Timeout::RecvBody, false),
            (Timeout::Global, false),
        ] {
            let error = FetchError::from(ureq::Error::Timeout(timeout));
            assert_eq!(error.is_transient(), is_silence, "{timeout:?}");
            let expected = if is_silence {
                "did not answer"
            } else {
                "WATER_SOURCE_DEADLINE_SECONDS"
            };
            assert!(error.to_string().contains(expected), "{timeout:?}: {error}");
        }
    }

    #[test]
    fn statuses_that_may_pass_are_asked_for_again() {
        for status in [408, 429, 500, 502, 503, 504, 507, 599] {
            assert!(FetchError::Status(status, None).is_transient(), "{status}");
        }
        for status in [400, 401, 403, 404, 410, 501, 505] {
            assert!(!FetchError::Status(status, None).is_transient(), "{status}");
        }
    }
}

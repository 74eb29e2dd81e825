//! Request id: the client's if it is well formed, otherwise ours.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::{HeaderMap, HeaderName, HeaderValue};

/// Header in requests, in answers, and between gate and services.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request id: 8 to 64 of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// Returns the client's id, if it sent exactly one well-formed one.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(&X_REQUEST_ID).iter();
        match (values.next(), values.next()) {
            (Some(value), None) if is_request_id(value.as_bytes()) => Some(Self(value.clone())),
            _ => None,
        }
    }

    /// Returns the id as a header's value; sharing it costs no copy.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("a request id is ASCII")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

fn is_request_id(text: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (8..=64).contains(&text.len()) && text.iter().all(allowed)
}

/// Makes request ids: a random number of the process, and a count. They only have to be unique; knowing one grants
/// nothing.
#[derive(Debug)]
pub struct RequestIds {
    /// Prefix of the process: 16 hex digits and a hyphen.
    process: String,
    count: AtomicU64,
}

impl RequestIds {
    /// Makes ids of one process; `random` distinguishes processes.
    pub fn new(random: u64) -> Self {
        Self {
            process: format!("{random:016x}-"),
            count: AtomicU64::new(0),
        }
    }

    /// Returns the client's id if it is well formed, otherwise the next one of ours.
    pub fn for_request(&self, headers: &HeaderMap) -> RequestId {
        RequestId::from_headers(headers).unwrap_or_else(|| self.mint())
    }

    /// Returns the next id: 16 hex digits of the process, a hyphen, the count in hex.
    pub fn mint(&self) -> RequestId {
        let mut text = String::with_capacity(self.process.len() + 16);
        text.push_str(&self.process);
        let count = self.count.fetch_add(1, Relaxed);
        write!(text, "{count:x}").expect("writing to memory cannot fail");
        RequestId(HeaderValue::try_from(text).expect("hex digits and a hyphen"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(values: &[&'static str]) -> HeaderMap {
        let value = |text: &&'static str| (X_REQUEST_ID, HeaderValue::from_static(text));
        values.iter().map(value).collect()
    }

    #[test]
    fn the_clients_id_is_kept_when_it_has_the_form() {
        for good in ["12345678", "A.b_c-0123", &"x".repeat(64)] {
            let headers = HeaderMap::from_iter([(X_REQUEST_ID, good.parse().unwrap())]);
            assert_eq!(RequestIds::new(1).for_request(&headers).as_str(), good);
        }
    }

    #[test]
    fn any_other_id_is_replaced() {
        let ids = RequestIds::new(0xabc);
        assert_eq!(
            ids.for_request(&sent(&["short"])).as_str(),
            "0000000000000abc-0"
        );
        for bad in [
            &["with space 123"][..],
            &["a,b,c,d,e"],
            &["12345678", "12345678"],
            &[],
        ] {
            assert!(
                ids.for_request(&sent(bad))
                    .as_str()
                    .starts_with("0000000000000abc-"),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn ids_we_make_have_the_form_and_differ() {
        let ids = RequestIds::new(u64::MAX);
        let (one, next) = (ids.mint(), ids.mint());
        assert_ne!(one, next);
        assert!(is_request_id(one.as_str().as_bytes()));
    }
}

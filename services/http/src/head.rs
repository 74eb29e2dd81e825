//! Checks of a request's head: refuses requests that two parties could read differently, or that are too large. Both
//! warp and hyper accept most of these.

use http::header::{CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::{Method, Version};

use crate::{Problem, Query, RequestHead};

/// Longest target of an API: the longest meaningful one has some 60 characters.
const MAX_TARGET: usize = 2 * 1024;
/// Largest head without its target, and the most fields in it. hyper's own bounds are above both.
const MAX_HEAD: usize = 16 * 1024;
const MAX_FIELDS: usize = 64;

/// Limits of a request's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Longest target in bytes; its part above 2 KiB is added to the limit of the head.
    pub target: usize,
    /// Whether the request may have a body.
    pub body: bool,
}

impl Default for Head {
    /// Allows a target of 2 KiB, and no body.
    fn default() -> Self {
        Self {
            target: MAX_TARGET,
            body: false,
        }
    }
}

impl Head {
    /// Runs all checks, in the order of their cost, and returns the decoded query.
    pub fn check<'a>(&self, request: &'a RequestHead) -> Result<Query<'a>, Problem> {
        self.framing(request)?;
        host(request)?;
        self.size(request)?;
        expectation(request)?;
        Query::parse(request.uri.query())
    }

    /// Checks that no body is announced in any way: a second request could hide in it. Where a body is allowed, checks
    /// that its end is given in only one way.
    fn framing(&self, request: &RequestHead) -> Result<(), Problem> {
        let lengths = request.headers.get_all(CONTENT_LENGTH);
        let chunked = request.headers.contains_key(TRANSFER_ENCODING);
        if self.body {
            return if chunked && lengths.iter().next().is_some() {
                Err(Problem::ambiguous_body())
            } else {
                Ok(())
            };
        }
        let announces_body = lengths.iter().any(|length| length.as_bytes() != b"0");
        if chunked || (announces_body && request.only_reads()) {
            return Err(Problem::body_not_allowed());
        }
        Ok(())
    }

    /// Checks the sizes of the target, the fields and the whole head.
    fn size(&self, request: &RequestHead) -> Result<(), Problem> {
        let target = target_length(request);
        if target > self.target {
            return Err(Problem::uri_too_long());
        }
        // ": " and CRLF around each field; " HTTP/1.1", a space and two CRLF around the first line.
        let fields = request.headers.iter();
        let fields: usize = fields
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum();
        let head = request.method.as_str().len() + target + 14 + fields;
        let most = MAX_HEAD + self.target.saturating_sub(MAX_TARGET);
        if request.headers.len() > MAX_FIELDS || head > most {
            return Err(Problem::headers_too_large());
        }
        Ok(())
    }
}

/// Checks for exactly one valid `Host` (HTTP/1.0 may have none), equal to the target's authority if it has one.
fn host(request: &RequestHead) -> Result<(), Problem> {
    let mut hosts = request.headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.as_bytes(),
        (None, _) if request.version == Version::HTTP_10 => return Ok(()),
        _ => return Err(Problem::invalid_host()),
    };
    if !is_authority(host) {
        return Err(Problem::invalid_host());
    }
    // The target of CONNECT names the destination, not the host that is asked.
    let target = request
        .uri
        .authority()
        .filter(|_| request.method != Method::CONNECT);
    match target {
        Some(target) if !host.eq_ignore_ascii_case(target.as_str().as_bytes()) => {
            Err(Problem::invalid_host())
        }
        _ => Ok(()),
    }
}

/// Checks for the characters of RFC 3986 §3.2 without user information: a name, an address and a port. Their order is
/// not checked: the gate only compares the host.
fn is_authority(host: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=%:[]".contains(byte);
    !host.is_empty() && host.iter().all(allowed)
}

/// Checks that no expectation but `100-continue`, the only one that exists, is sent; without a body it is already met.
fn expectation(request: &RequestHead) -> Result<(), Problem> {
    let mut expectations = request.headers.get_all(EXPECT).iter();
    if expectations.all(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        Ok(())
    } else {
        Err(Problem::expectation_failed())
    }
}

fn target_length(request: &RequestHead) -> usize {
    let uri = &request.uri;
    let scheme = uri
        .scheme_str()
        .map_or(0, |scheme| scheme.len() + "://".len());
    let authority = uri
        .authority()
        .map_or(0, |authority| authority.as_str().len());
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    scheme + authority + path
}

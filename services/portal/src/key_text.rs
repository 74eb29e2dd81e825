//! Refusal of keys' texts in requests to the portal: a request with one anywhere is refused, and the text
//! is not repeated.

use std::borrow::Cow;

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use water_domain::KeyPrefix;
use water_http::{Problem, Query, RequestHead};

/// Checks path, query and header fields.
pub fn refuse_in_head(
    request: &RequestHead,
    query: &Query<'_>,
    prefix: &KeyPrefix,
) -> Result<(), Problem> {
    let path = percent_decode_str(request.uri.path()).decode_utf8_lossy();
    let values = request.headers.values();
    let fields = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let pairs = query.pairs().flat_map(|(name, value)| [name, value]);
    let mut texts = std::iter::once(path)
        .chain(fields)
        .chain(pairs.map(Cow::Borrowed));
    if texts.any(|text| prefix.is_in(&text)) {
        Err(Problem::key_in_request())
    } else {
        Ok(())
    }
}

/// Checks a body.
pub fn refuse_in_body(body: &Bytes, prefix: &KeyPrefix) -> Result<(), Problem> {
    if prefix.is_in(&String::from_utf8_lossy(body)) {
        Err(Problem::key_in_request())
    } else {
        Ok(())
    }
}

//! Header fields by which every answer protects its reader's browser.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use water_http::RequestId;
use water_http::request_id::X_REQUEST_ID;

/// Scripts, styles and data of our own origin only; in no frame; no text becomes a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

const ALL: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (STRICT_TRANSPORT_SECURITY, "max-age=31536000"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Adds the fields, and `no-store` to an answer that does not say otherwise.
pub fn protect(headers: &mut HeaderMap, id: &RequestId) {
    for (name, value) in ALL {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(X_REQUEST_ID, id.header());
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

#[cfg(test)]
mod tests {
    use water_http::RequestIds;

    use super::*;

    #[test]
    fn every_answer_has_these_fields() {
        let mut headers = HeaderMap::new();
        protect(&mut headers, &RequestIds::new(1).mint());
        let golden = [
            (
                "content-security-policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                 connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
                 require-trusted-types-for 'script'; trusted-types 'none'",
            ),
            ("strict-transport-security", "max-age=31536000"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
            ("x-request-id", "0000000000000001-0"),
        ];
        for (name, value) in golden {
            assert_eq!(headers[name], value, "{name}");
        }
        assert_eq!(headers.len(), golden.len());
    }

    #[test]
    fn an_answer_that_may_be_kept_stays_so() {
        let kept = HeaderValue::from_static("no-cache");
        let mut headers = HeaderMap::from_iter([(CACHE_CONTROL, kept)]);
        protect(&mut headers, &RequestIds::new(1).mint());
        assert_eq!(headers[CACHE_CONTROL], "no-cache");
    }
}

//! A successful answer: bytes, validators, codings, and the choice among them by a request's conditions (RFC 9110
//! §12.5.3, §13.1.2).

mod coding;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH, LINK, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use sha2::{Digest, Sha256};
use water_domain::Format;

pub use coding::Coding;

/// `Cache-Control` of stress and risque: a client may show an answer for a minute.
pub const CACHE_DATASET: HeaderValue =
    HeaderValue::from_static("private, max-age=60, must-revalidate");
/// `Cache-Control` of the histories and the sources.
pub const CACHE_HISTORY: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Smallest size to code: below it a coding saves less than its header and the reader's work cost.
const CODED_FROM: usize = 1024;

/// `Vary` of all answers but problems and those for every key: `Accept` on JSON too, because another client of a cache may
/// want CSV.
pub const VARY_ON: HeaderValue = HeaderValue::from_static("Authorization, Accept, Accept-Encoding");

/// `Vary` of problems, which alone have a language.
pub const VARY_OF_PROBLEMS: HeaderValue =
    HeaderValue::from_static("Authorization, Accept, Accept-Encoding, Accept-Language");

/// `Vary` of answers that are the same for every key and in one form only.
const VARY_ON_CODING: HeaderValue = HeaderValue::from_static("Accept-Encoding");

/// `Link` of every answer with records, to their sources and licences.
pub const DESCRIBED_BY: &str = "</api/v1/sources>; rel=\"describedby\"";

/// Size from which a coding takes so long that other requests would wait for it.
const LARGE: usize = 64 * 1024;

/// Token for `changedSince`.
pub const X_CHANGES_TOKEN: HeaderName = HeaderName::from_static("x-changes-token");

/// Number of the rows of which an answer is the first page.
pub const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// A body that a client may already have, and may want in a coding.
#[derive(Clone, Debug)]
pub struct Representation {
    body: Bytes,
    /// First half of the body's SHA-256, with which all its entity tags begin.
    digest: [u8; 16],
    /// Codings made beforehand for a body that is served often; empty for one that is served once.
    prepared: Vec<(Coding, Bytes)>,
    format: Format,
    cache: HeaderValue,
    vary: HeaderValue,
    link: Option<HeaderValue>,
    changes_token: Option<HeaderValue>,
    total: Option<u64>,
}

/// A request's conditions and accepted codings.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    accept_encoding: Vec<HeaderValue>,
    if_none_match: Vec<HeaderValue>,
}

impl Conditions {
    /// Reads the two headers, each of which may have several lines.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let all = |name: HeaderName| headers.get_all(name).iter().cloned().collect();
        Self {
            accept_encoding: all(ACCEPT_ENCODING),
            if_none_match: all(IF_NONE_MATCH),
        }
    }
}

impl Representation {
    /// Makes a JSON body that is served once: it is coded when a client asks for that.
    pub fn new(body: impl Into<Bytes>, cache: HeaderValue) -> Self {
        let body = body.into();
        let mut digest = [0; 16];
        digest.copy_from_slice(&Sha256::digest(&body)[..16]);
        Self {
            body,
            digest,
            prepared: Vec::new(),
            format: Format::Json,
            cache,
            vary: VARY_ON,
            link: None,
            changes_token: None,
            total: None,
        }
    }

    /// Makes a JSON body that is served often: it is coded here, as small as possible.
    pub fn prepared(body: impl Into<Bytes>, cache: HeaderValue) -> Self {
        let mut this = Self::new(body, cache);
        if this.body.len() >= CODED_FROM {
            let code = |coding: Coding| (coding, coding.encode_small(&this.body));
            this.prepared = [Coding::Brotli, Coding::Gzip].map(code).into();
        }
        this
    }

    /// Declares the bytes the same for every key, whatever it accepts, so that a cache keeps one copy.
    pub fn for_every_key(mut self) -> Self {
        self.vary = VARY_ON_CODING;
        self
    }

    /// Declares the bytes to be in another format than JSON.
    pub fn in_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Adds a `Link` header (RFC 8288).
    pub fn with_link(mut self, link: HeaderValue) -> Self {
        self.link = Some(link);
        self
    }

    /// Adds the token for the changes after the walk of which the body is a page.
    pub fn with_changes_token(mut self, token: HeaderValue) -> Self {
        self.changes_token = Some(token);
        self
    }

    /// Adds the number of all rows, of which the body has the first.
    pub fn with_total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }

    /// Whether [`Representation::answer`] may take milliseconds.
    pub(crate) fn is_slow(&self) -> bool {
        self.body.len() >= LARGE && self.prepared.is_empty()
    }

    /// Answers 304 when the client has these bytes in any coding, otherwise 200 with the best coding it accepts. For a
    /// HEAD the server omits the body; the head has its length.
    pub fn answer(&self, conditions: &Conditions) -> Response<Bytes> {
        let coding = if self.body.len() >= CODED_FROM {
            Coding::preferred(&conditions.accept_encoding)
        } else {
            Coding::Identity
        };
        let mut response = Response::new(Bytes::new());
        let seen = conditions
            .if_none_match
            .iter()
            .any(|value| self.is_listed(value));
        if seen {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            *response.body_mut() = self.coded(coding);
        }
        let length = HeaderValue::from(response.body().len());
        let headers = response.headers_mut();
        headers.reserve(11);
        headers.insert(ETAG, self.tag(coding));
        headers.insert(CACHE_CONTROL, self.cache.clone());
        headers.insert(VARY, self.vary.clone());
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(link) = &self.link {
            headers.insert(LINK, link.clone());
        }
        if let Some(token) = &self.changes_token {
            headers.insert(X_CHANGES_TOKEN, token.clone());
        }
        if let Some(total) = self.total {
            headers.insert(X_TOTAL_COUNT, HeaderValue::from(total));
        }
        if !seen {
            let kind = HeaderValue::from_static(self.format.content_type());
            headers.insert(CONTENT_TYPE, kind);
            // A reader that seeks would take the whole for the range that it asked for (RFC 9110 §14.3).
            headers.insert(ACCEPT_RANGES, HeaderValue::from_static("none"));
            headers.insert(CONTENT_LENGTH, length);
            if let Some(name) = coding.header() {
                headers.insert(CONTENT_ENCODING, name);
            }
        }
        response
    }

    /// Returns the entity tag; strong, because each coding has its own.
    fn tag(&self, coding: Coding) -> HeaderValue {
        let mut text = [0; 1 + 32 + 5 + 1];
        text[0] = b'"';
        hex::encode_to_slice(self.digest, &mut text[1..33]).expect("16 bytes are 32 digits");
        let suffix = coding.suffix().as_bytes();
        text[33..33 + suffix.len()].copy_from_slice(suffix);
        text[33 + suffix.len()] = b'"';
        HeaderValue::from_bytes(&text[..34 + suffix.len()]).expect("hex digits, quotes and letters")
    }

    /// Whether an `If-None-Match` names these bytes. Compared weakly, so that neither `W/` nor the coding makes a
    /// difference: a proxy may have removed the coding and left its tag.
    fn is_listed(&self, value: &HeaderValue) -> bool {
        let mut items = value
            .as_bytes()
            .split(|byte| *byte == b',')
            .map(<[u8]>::trim_ascii);
        let tags = Coding::ALL.map(|coding| self.tag(coding));
        items.any(|item| {
            let tag = item.strip_prefix(b"W/").unwrap_or(item);
            item == b"*" || tags.iter().any(|known| known == tag)
        })
    }

    fn coded(&self, coding: Coding) -> Bytes {
        let prepared = self.prepared.iter().find(|(known, _)| *known == coding);
        match prepared {
            Some((_, bytes)) => bytes.clone(),
            None => coding.encode_fast(&self.body),
        }
    }
}

/// Makes an answer that carries the representation to [`crate::service`], which knows the conditions.
impl warp::Reply for Representation {
    fn into_response(self) -> warp::reply::Response {
        let mut response = warp::reply::Response::default();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests;

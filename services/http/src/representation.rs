//! A successful answer: bytes, validators, codings, and how a request's conditions choose among
//! them (RFC 9110 §12.5.3, §13.1.2).

mod coding;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, LINK, VARY, X_CONTENT_TYPE_OPTIONS,
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

/// Below it a coding saves less than its header and the reader's work cost.
const CODED_FROM: usize = 1024;

/// `Vary` of every answer: `Accept` on JSON too, for another client of a cache may want CSV.
pub const VARY_ON: HeaderValue = HeaderValue::from_static("Authorization, Accept, Accept-Encoding");

/// The `Link` of every answer with records: where its sources and licences are.
pub const DESCRIBED_BY: &str = "</api/v1/sources>; rel=\"describedby\"";

/// From here on a coding takes so long that other requests would wait for it.
const LARGE: usize = 64 * 1024;

/// From where on a client may ask for what has changed.
pub const X_CHANGES_TOKEN: HeaderName = HeaderName::from_static("x-changes-token");

/// A body that a client may have seen before, and may want in a coding.
#[derive(Clone, Debug)]
pub struct Representation {
    body: Bytes,
    /// The first half of the body's SHA-256: what all its entity tags begin with.
    digest: [u8; 16],
    /// Made beforehand for what is served often; empty for what is served once.
    prepared: Vec<(Coding, Bytes)>,
    format: Format,
    cache: HeaderValue,
    link: Option<HeaderValue>,
    changes_token: Option<HeaderValue>,
}

/// What a request says about the representation it wants.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    accept_encoding: Vec<HeaderValue>,
    if_none_match: Vec<HeaderValue>,
}

impl Conditions {
    /// Takes the two headers, each of which may stand on several lines.
    pub fn of(headers: &HeaderMap) -> Self {
        let all = |name: HeaderName| headers.get_all(name).iter().cloned().collect();
        Self {
            accept_encoding: all(ACCEPT_ENCODING),
            if_none_match: all(IF_NONE_MATCH),
        }
    }
}

impl Representation {
    /// A JSON body that is served once: it is coded when a client asks for that.
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
            link: None,
            changes_token: None,
        }
    }

    /// A JSON body that is served often: it is coded here, as small as it gets.
    pub fn prepared(body: impl Into<Bytes>, cache: HeaderValue) -> Self {
        let mut this = Self::new(body, cache);
        if this.body.len() >= CODED_FROM {
            let code = |coding: Coding| (coding, coding.encode_small(&this.body));
            this.prepared = [Coding::Brotli, Coding::Gzip].map(code).into();
        }
        this
    }

    /// The same bytes as another form than JSON.
    pub fn in_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Adds a `Link` header (RFC 8288).
    pub fn with_link(mut self, link: HeaderValue) -> Self {
        self.link = Some(link);
        self
    }

    /// Adds the token of the state that the body begins to tell.
    pub fn with_changes_token(mut self, token: HeaderValue) -> Self {
        self.changes_token = Some(token);
        self
    }

    /// The bytes before any coding.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether [`Representation::answer`] may take milliseconds.
    pub(crate) fn is_slow(&self) -> bool {
        self.body.len() >= LARGE && self.prepared.is_empty()
    }

    /// 304 when the client has these bytes in this coding, otherwise 200 with the best coding it
    /// accepts. For a HEAD the server leaves out the body; the length stands in the head.
    pub fn answer(&self, conditions: &Conditions) -> Response<Bytes> {
        let coding = match self.body.len() >= CODED_FROM {
            true => Coding::preferred(&conditions.accept_encoding),
            false => Coding::Identity,
        };
        let tag = self.tag(coding);
        let mut response = Response::new(Bytes::new());
        let seen = conditions
            .if_none_match
            .iter()
            .any(|value| lists(value, tag.as_bytes()));
        if seen {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            *response.body_mut() = self.coded(coding);
        }
        let length = HeaderValue::from(response.body().len());
        let headers = response.headers_mut();
        headers.reserve(9);
        headers.insert(ETAG, tag);
        headers.insert(CACHE_CONTROL, self.cache.clone());
        headers.insert(VARY, VARY_ON);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(link) = &self.link {
            headers.insert(LINK, link.clone());
        }
        if let Some(token) = &self.changes_token {
            headers.insert(X_CHANGES_TOKEN, token.clone());
        }
        if !seen {
            let kind = HeaderValue::from_static(self.format.content_type());
            headers.insert(CONTENT_TYPE, kind);
            headers.insert(CONTENT_LENGTH, length);
            if let Some(name) = coding.header() {
                headers.insert(CONTENT_ENCODING, name);
            }
        }
        response
    }

    /// Strong, because each coding has its own.
    fn tag(&self, coding: Coding) -> HeaderValue {
        let mut text = [0; 1 + 32 + 5 + 1];
        text[0] = b'"';
        hex::encode_to_slice(self.digest, &mut text[1..33]).expect("16 bytes are 32 digits");
        let suffix = coding.suffix().as_bytes();
        text[33..33 + suffix.len()].copy_from_slice(suffix);
        text[33 + suffix.len()] = b'"';
        HeaderValue::from_bytes(&text[..34 + suffix.len()]).expect("hex digits, quotes and letters")
    }

    fn coded(&self, coding: Coding) -> Bytes {
        let prepared = self.prepared.iter().find(|(known, _)| *known == coding);
        match prepared {
            Some((_, bytes)) => bytes.clone(),
            None => coding.encode_fast(&self.body),
        }
    }
}

/// Whether an `If-None-Match` names the tag; compared weakly, so that `W/` makes no difference.
fn lists(value: &HeaderValue, tag: &[u8]) -> bool {
    let mut items = value
        .as_bytes()
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii);
    items.any(|item| item == b"*" || item.strip_prefix(b"W/").unwrap_or(item) == tag)
}

/// An answer that carries the representation to [`crate::service`], which knows the conditions.
impl warp::Reply for Representation {
    fn into_response(self) -> warp::reply::Response {
        let mut response = warp::reply::Response::default();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests;

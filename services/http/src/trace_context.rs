//! W3C trace context: the trace of a request, and the parent span in it.
//!
//! Read strictly (Trace Context, level 1, §3.2): a malformed `traceparent` counts as missing, and a malformed
//! `tracestate` is dropped, so that only understood text is passed on.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Header with the trace, the parent span, and the sampled flag.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Header with the additions of other tracing systems.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Length of `00-` trace `-` span `-` flags.
const LENGTH: usize = 55;
/// Longest `tracestate`. One of up to 512 bytes must be passed on (§3.3.1.5); a longer one is dropped.
const MAX_STATE: usize = 512;
const MAX_MEMBERS: usize = 32;
const SAMPLED: u8 = 1;

/// Place of a request in a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceContext {
    /// Id of the trace.
    pub trace: TraceId,
    /// Id of the caller's span.
    pub parent: SpanId,
    /// Whether the caller records it.
    pub sampled: bool,
    /// `tracestate` as received, if it is well formed.
    pub state: Option<HeaderValue>,
}

/// Trace id: 16 bytes, not all zero; shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TraceId(pub [u8; 16]);

/// Span id: 8 bytes, not all zero; shown as 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SpanId(pub [u8; 8]);

impl TraceContext {
    /// Reads the headers; `None` if `traceparent` is missing or malformed.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(&TRACEPARENT).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return None;
        };
        let (trace, parent, sampled) = read_parent(value.as_bytes())?;
        Some(Self {
            trace,
            parent,
            sampled,
            state: read_state(headers),
        })
    }

    /// Returns the value of [`TRACEPARENT`]; that of [`TRACESTATE`] is `state`.
    pub fn traceparent(&self) -> HeaderValue {
        let flags = u8::from(self.sampled);
        let text = format!("00-{}-{}-{flags:02x}", self.trace, self.parent);
        HeaderValue::try_from(text).expect("hex digits and hyphens")
    }
}

/// Reads a `traceparent`. A later version may have more after the four fields; `ff` is not a version.
fn read_parent(text: &[u8]) -> Option<(TraceId, SpanId, bool)> {
    let (known, more) = text.split_at_checked(LENGTH)?;
    let separated = [2, 35, 52].iter().all(|place| known[*place] == b'-');
    let version: [u8; 1] = lower_hex(&known[..2])?;
    let ends = match version[0] {
        0 => more.is_empty(),
        0xff => false,
        _ => more.first().is_none_or(|byte| *byte == b'-'),
    };
    let trace: [u8; 16] = lower_hex(&known[3..35])?;
    let parent: [u8; 8] = lower_hex(&known[36..52])?;
    let flags: [u8; 1] = lower_hex(&known[53..])?;
    let valid = separated && ends && trace != [0; 16] && parent != [0; 8];
    valid.then_some((TraceId(trace), SpanId(parent), flags[0] & SAMPLED != 0))
}

fn lower_hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let lower = !text.iter().any(u8::is_ascii_uppercase);
    (lower && hex::decode_to_slice(text, &mut bytes).is_ok()).then_some(bytes)
}

/// Joins several fields into one list (§3.3.1.1).
fn read_state(headers: &HeaderMap) -> Option<HeaderValue> {
    let fields = headers.get_all(&TRACESTATE).iter();
    let fields: Option<Vec<&str>> = fields.map(|field| field.to_str().ok()).collect();
    let list = fields?.join(",");
    let members: Vec<&str> = list
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']))
        .filter(|member| !member.is_empty())
        .collect();
    let valid = (1..=MAX_MEMBERS).contains(&members.len())
        && list.len() <= MAX_STATE
        && members.iter().all(|member| is_member(member));
    valid.then(|| HeaderValue::try_from(members.join(",")).ok())?
}

/// Checks for `key=value` (§3.3.1.3): the key of lower-case letters, digits and five signs, the value of printable
/// ASCII.
fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else {
        return false;
    };
    let key_byte =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let starts = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=256).contains(&key.len())
        && key.as_bytes().first().is_some_and(starts)
        && key.bytes().all(key_byte)
        && (1..=256).contains(&value.len())
        && value
            .bytes()
            .all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

impl fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", u64::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod tests;

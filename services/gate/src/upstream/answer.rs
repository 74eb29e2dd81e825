//! A service's answer, read from bytes: its head, and the end of its body (RFC 9112 §6.3).
//!
//! Ambiguous answers are refused: both kinds of length, two lengths that differ, a coding other than `chunked`, a body
//! that only the connection's end would end.

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use httparse::{EMPTY_HEADER, Status};

/// Largest number of fields, more than any of our services sends, or a proxy before it adds.
const MAX_FIELDS: usize = 64;
/// Largest head in bytes, with the interim answers before it.
const MAX_HEAD: usize = 16 * 1024;
/// Largest number of interim answers (100, 102, 103). Our services send none, but a proxy before them may, whether it
/// was asked to or not (RFC 9110 §15.2).
const MAX_INTERIM: usize = 4;

/// Bytes that are not an answer to pass on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a service's answer is not HTTP, or does not say where it ends")]
pub struct MalformedAnswer;

impl From<httparse::Error> for MalformedAnswer {
    fn from(_: httparse::Error) -> Self {
        Self
    }
}

impl From<httparse::InvalidChunkSize> for MalformedAnswer {
    fn from(_: httparse::InvalidChunkSize) -> Self {
        Self
    }
}

/// Head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    /// Size in bytes, with the empty line and the interim answers before it.
    pub(super) size: usize,
    pub(super) status: StatusCode,
    /// Fields that were to be kept, and no others.
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    /// Whether the connection ends with this answer, as draining servers announce.
    pub(super) closes: bool,
}

/// End of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Body {
    /// After this number of bytes.
    Length(u64),
    /// After its last chunk.
    Chunked,
}

/// The next chunk of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chunk {
    /// Bytes of the line before it.
    pub(super) line: usize,
    /// Bytes of the chunk, without the line break after it; 0 for the last one.
    pub(super) size: u64,
}

/// Reads a head with the fields named in `keep`, skipping interim answers; `None` if it is incomplete. `without_body`:
/// the request was a HEAD, and the announced length is kept as a field.
pub(super) fn read_head(
    received: &[u8],
    keep: &[HeaderName],
    without_body: bool,
) -> Result<Option<Head>, MalformedAnswer> {
    let mut passed = 0;
    for _ in 0..=MAX_INTERIM {
        match read_one_head(&received[passed..], keep, without_body)? {
            Some(head) if is_interim(head.status) => passed += head.size,
            Some(head) => {
                let size = passed + head.size;
                return Ok(Some(Head { size, ..head }));
            }
            None if received.len() < MAX_HEAD => return Ok(None),
            None => return Err(MalformedAnswer),
        }
    }
    Err(MalformedAnswer)
}

/// Whether another answer follows. After 101 the connection uses another protocol.
fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}

fn read_one_head(
    received: &[u8],
    keep: &[HeaderName],
    without_body: bool,
) -> Result<Option<Head>, MalformedAnswer> {
    let mut fields = [EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    let Status::Complete(size) = parsed.parse(received)? else {
        return Ok(None);
    };
    let status = parsed.code.ok_or(MalformedAnswer)?;
    let mut framing = Framing::default();
    let mut headers = HeaderMap::with_capacity(CAPACITY);
    for field in parsed.headers {
        framing.read(field)?;
        let is_field = |name: &&HeaderName| field.name.eq_ignore_ascii_case(name.as_str());
        if let Some(name) = keep.iter().find(is_field) {
            let value = HeaderValue::from_bytes(field.value).map_err(|_| MalformedAnswer)?;
            headers.append(name, value);
        }
    }
    if let (true, Some(length)) = (without_body, framing.length) {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    let status = StatusCode::from_u16(status).map_err(|_| MalformedAnswer)?;
    Ok(Some(Head {
        size,
        status,
        headers,
        body: framing.body(status, without_body)?,
        closes: framing.closes || parsed.version != Some(1),
    }))
}

/// Usual number of fields in an answer of the gate: allocated at once.
const CAPACITY: usize = 16;

/// End of the body and of the connection, as the fields give them.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    chunked: bool,
    closes: bool,
}

impl Framing {
    fn read(&mut self, field: &httparse::Header<'_>) -> Result<(), MalformedAnswer> {
        let is = |name: HeaderName| field.name.eq_ignore_ascii_case(name.as_str());
        if is(CONTENT_LENGTH) {
            let length = read_length(field.value).ok_or(MalformedAnswer)?;
            if self
                .length
                .replace(length)
                .is_some_and(|other| other != length)
            {
                return Err(MalformedAnswer);
            }
        } else if is(TRANSFER_ENCODING) {
            if self.chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                return Err(MalformedAnswer);
            }
            self.chunked = true;
        } else if is(CONNECTION) {
            let mut options = field.value.split(|byte| *byte == b',');
            self.closes |= options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
        }
        Ok(())
    }

    fn body(&self, status: StatusCode, without_body: bool) -> Result<Body, MalformedAnswer> {
        match (self.chunked, self.length) {
            (true, Some(_)) => Err(MalformedAnswer),
            (false, None) if is_interim(status) => Ok(Body::Length(0)),
            _ if status.is_informational() => Err(MalformedAnswer),
            _ if without_body || matches!(status.as_u16(), 204 | 304) => Ok(Body::Length(0)),
            (true, None) => Ok(Body::Chunked),
            (false, Some(length)) => Ok(Body::Length(length)),
            (false, None) => Err(MalformedAnswer),
        }
    }
}

fn read_length(digits: &[u8]) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    all_digits.then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
}

/// Reads the line before a chunk; `None` if it is incomplete. httparse reads a line without a digit as 0, and accepts a
/// line break within an extension.
pub(super) fn read_chunk(received: &[u8]) -> Result<Option<Chunk>, MalformedAnswer> {
    let Status::Complete((line, size)) = httparse::parse_chunk_size(received)? else {
        return Ok(None);
    };
    let text = &received[..line - "\r\n".len()];
    match text.first() {
        Some(digit) if digit.is_ascii_hexdigit() && !text.contains(&b'\n') => {
            Ok(Some(Chunk { line, size }))
        }
        _ => Err(MalformedAnswer),
    }
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_TYPE, ETAG};

    use super::*;

    const KEEP: [HeaderName; 2] = [CONTENT_TYPE, ETAG];

    fn read(head: &str) -> Result<Option<Head>, MalformedAnswer> {
        read_head(head.as_bytes(), &KEEP, false)
    }

    fn complete(fields: &str) -> Head {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        read(&head).unwrap().unwrap()
    }

    fn refused(fields: &str) -> bool {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        matches!(read(&head), Err(MalformedAnswer))
    }

    #[test]
    fn only_the_fields_that_were_asked_for_are_kept() {
        let head = complete("ETag: \"a\"\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n");
        assert_eq!(head.headers.len(), 1);
        assert_eq!(head.headers[ETAG], "\"a\"");
        assert_eq!(head.body, Body::Length(2));
    }

    #[test]
    fn a_head_that_is_not_complete_waits_for_more_up_to_a_bound() {
        assert!(read("HTTP/1.1 200 OK\r\ncontent-len").unwrap().is_none());
        let begun = "HTTP/1.1 200 OK\r\na: ";
        let endless = format!("{begun}{}", "b".repeat(MAX_HEAD - begun.len()));
        assert_eq!(read(&endless).unwrap_err(), MalformedAnswer);
        assert!(read(&endless[..MAX_HEAD - 1]).unwrap().is_none());
    }

    #[test]
    fn what_two_parties_could_read_differently_is_no_answer() {
        for fields in [
            "",
            "content-length: 1\r\ncontent-length: 2\r\n",
            "content-length: 1\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: gzip, chunked\r\n",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "content-length: +1\r\n",
            "content-length: \r\n",
            "content-length: 99999999999999999999\r\n",
            "bad name: 1\r\ncontent-length: 1\r\n",
        ] {
            assert!(refused(fields), "{fields:?}");
        }
        assert!(read("HTTP/1.1 101 Switching Protocols\r\n\r\n").is_err());
        assert!(read("HTTP/1.1 103 Early Hints\r\ncontent-length: 1\r\n\r\n").is_err());
        assert!(read("HTTP/1.1 000 ?\r\ncontent-length: 0\r\n\r\n").is_err());
        assert!(read("SSH-2.0-OpenSSH_9.6\r\n\r\n").is_err());
    }

    #[test]
    fn interim_answers_are_passed_over_and_a_fifth_is_one_too_many() {
        let interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\netag: \"early\"\r\n\r\n";
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n";
        let after = |count: usize| read(&(interim.repeat(count) + answer));
        for count in 0..=4 {
            let head = after(count).unwrap().unwrap();
            assert_eq!(head.size, count * interim.len() + answer.len());
            assert_eq!(head.status, 200);
            assert!(head.headers.is_empty(), "{:?}", head.headers);
            assert!(read(&interim.repeat(count)).unwrap().is_none());
        }
        assert_eq!(after(5).unwrap_err(), MalformedAnswer);
    }

    #[test]
    fn a_body_ends_where_its_head_says() {
        let same_twice = "content-length: 7\r\nContent-Length: 7\r\n";
        assert_eq!(complete(same_twice).body, Body::Length(7));
        let chunked = complete("transfer-encoding: Chunked\r\n");
        assert_eq!(chunked.body, Body::Chunked);
        let unchanged = "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n";
        assert_eq!(read(unchanged).unwrap().unwrap().body, Body::Length(0));
    }

    #[test]
    fn a_head_alone_keeps_the_length_that_a_body_would_have() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n";
        let head = read_head(head, &KEEP, true).unwrap().unwrap();
        assert_eq!(head.body, Body::Length(0));
        assert_eq!(head.headers[CONTENT_LENGTH], "7");
    }

    #[test]
    fn the_last_answer_of_a_connection_says_so() {
        let fields = "content-length: 0\r\nconnection: keep-alive, Close\r\n";
        assert!(complete(fields).closes);
        assert!(!complete("content-length: 0\r\n").closes);
        let old = read("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n");
        assert!(old.unwrap().unwrap().closes);
    }

    #[test]
    fn a_chunk_is_announced_in_hex() {
        let chunk = Chunk { line: 4, size: 26 };
        assert_eq!(read_chunk(b"1a\r\nabc"), Ok(Some(chunk)));
        assert_eq!(read_chunk(b"1a"), Ok(None));
        let extended = Chunk { line: 8, size: 26 };
        assert_eq!(read_chunk(b"1a;x=y\r\n"), Ok(Some(extended)));
        for malformed in ["-1\r\n", "\r\n", ";x\r\n", " \r\n", "1;x\ny\r\n"] {
            assert_eq!(
                read_chunk(malformed.as_bytes()),
                Err(MalformedAnswer),
                "{malformed:?}"
            );
        }
    }
}

//! Ends of requests and answers on the wire: HTTP/1.1 requests with a Content-Length, and Redis' commands
//! and replies.

use anyhow::{Context, Result, bail, ensure};

/// Protocol of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// HTTP/1.1 without pipelining, as a Kubernetes client speaks it.
    Http,
    /// RESP 2 or 3, pipelined or not.
    Redis,
}

/// More than a Kubernetes client ever sends.
const MOST_HEADERS: usize = 64;

impl Protocol {
    /// Returns the length of the first whole request in these bytes; `None` while it is not all there.
    pub fn request_length(self, bytes: &[u8]) -> Result<Option<usize>> {
        match self {
            Self::Http => http_request(bytes),
            Self::Redis => redis_frame(bytes),
        }
    }

    /// Describes a request in a few words, without its content: `PATCH /api/v1/…` or `EVALSHA`.
    pub fn summary(self, request: &[u8]) -> String {
        let line = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let mut lines = request.split(|byte| *byte == b'\n').map(line);
        match self {
            Self::Http => {
                let first = lines.next().unwrap_or_default();
                let words: Vec<&str> = first.split_whitespace().take(2).collect();
                words.join(" ")
            }
            // *<words>, $<length>, <command>
            Self::Redis => lines.nth(2).unwrap_or_default().trim_end().to_uppercase(),
        }
    }
}

fn http_request(bytes: &[u8]) -> Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = head.parse(bytes)? else {
        return Ok(None);
    };
    let named = |name: &str| {
        let mut headers = head.headers.iter();
        headers.find(|header| header.name.eq_ignore_ascii_case(name))
    };
    ensure!(
        named("transfer-encoding").is_none(),
        "a request with Transfer-Encoding, whose end is not looked for"
    );
    let body: usize = match named("content-length") {
        None => 0,
        Some(header) => std::str::from_utf8(header.value)?.parse()?,
    };
    let whole = length + body;
    Ok((bytes.len() >= whole).then_some(whole))
}

/// Returns the length of the first whole command or reply, nested ones included.
pub fn redis_frame(bytes: &[u8]) -> Result<Option<usize>> {
    let (mut at, mut expected) = (0, 1_usize);
    while expected > 0 {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
            return Ok(None);
        };
        at += end + 2;
        expected -= 1;
        let kind = *rest.first().context("a line without a kind")?;
        let count = || -> Result<i64> { Ok(std::str::from_utf8(&rest[1..end])?.parse()?) };
        match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => {}
            // -1 is the null of RESP 2.
            b'$' | b'=' | b'!' => match usize::try_from(count()?) {
                Ok(length) => at += length + 2,
                Err(_) => continue,
            },
            b'*' | b'~' | b'>' => expected += usize::try_from(count()?).unwrap_or(0),
            b'%' => expected += 2 * usize::try_from(count()?).unwrap_or(0),
            other => bail!("byte {other} begins nothing that Redis says"),
        }
    }
    Ok((bytes.len() >= at).then_some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that no beginning of `bytes` has a length, but for the whole.
    fn of_beginnings(bytes: &[u8], length: impl Fn(&[u8]) -> Result<Option<usize>>) {
        for end in 0..bytes.len() {
            assert_eq!(
                length(&bytes[..end]).unwrap(),
                None,
                "the first {end} bytes"
            );
        }
        let more = [bytes, b"*1\r\n"].concat();
        assert_eq!(length(&more).unwrap(), Some(bytes.len()));
    }

    #[test]
    fn a_request_ends_with_its_body() {
        let request = b"PUT /a HTTP/1.1\r\nhost: b\r\nContent-Length: 3\r\n\r\nxyz";
        of_beginnings(request, |bytes| Protocol::Http.request_length(bytes));
        assert_eq!(Protocol::Http.summary(request), "PUT /a");
    }

    #[test]
    fn a_command_ends_with_its_last_word() {
        let command = b"*2\r\n$3\r\nget\r\n$4\r\na\r\nb\r\n";
        of_beginnings(command, |bytes| Protocol::Redis.request_length(bytes));
        assert_eq!(Protocol::Redis.summary(command), "GET");
    }

    #[test]
    fn a_reply_ends_with_what_is_nested_in_it() {
        of_beginnings(b"*3\r\n$-1\r\n*1\r\n:5\r\n%1\r\n+a\r\n_\r\n", redis_frame);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(redis_frame(b"?\r\n").is_err());
        let chunked = b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(Protocol::Http.request_length(chunked).is_err());
    }
}

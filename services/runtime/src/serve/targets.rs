//! A `#` in a request's target, made unreadable for hyper's parser, which then answers 400.
//!
//! No form of target has a fragment (RFC 9112 §3.2). The parser takes one all the same and hands out the part
//! before it, so that nobody after it could refuse the target or knew how long it was.

/// Position in the line of the next byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Line {
    /// Start of the line.
    #[default]
    Beginning,
    /// A token: a method, or the name of a field.
    Token,
    /// A token and a space, as only a request line has them.
    Target,
    /// The rest, as a rule the value of a field.
    Other,
}

/// The lines of a connection whose requests have no bodies.
#[derive(Debug, Default)]
pub(super) struct Targets(Line);

/// Byte that the parser accepts nowhere in a head.
const UNREADABLE: u8 = 0;

impl Targets {
    /// Reads the next bytes of the connection, however they were cut. As a rule these are whole heads without
    /// any `#`, of which only that is found out.
    pub(super) fn refuse_fragments(&mut self, bytes: &mut [u8]) {
        if self.0 == Line::Beginning && bytes.ends_with(b"\n") && !bytes.contains(&b'#') {
            return;
        }
        for byte in bytes {
            if self.0 == Line::Target && *byte == b'#' {
                *byte = UNREADABLE;
            }
            self.0 = match (self.0, *byte) {
                (_, b'\n') => Line::Beginning,
                (Line::Token, b' ') => Line::Target,
                (Line::Beginning | Line::Token, byte) if is_of_token(byte) => Line::Token,
                (Line::Target, _) => Line::Target,
                _ => Line::Other,
            };
        }
    }
}

/// Whether the byte is one of a token (RFC 9110 §5.6.2).
fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that the parser gets when these arrive in pieces of this size.
    fn read_in(size: usize, text: &str) -> String {
        let (mut targets, mut bytes) = (Targets::default(), text.as_bytes().to_vec());
        for piece in bytes.chunks_mut(size) {
            targets.refuse_fragments(piece);
        }
        String::from_utf8(bytes).unwrap()
    }

    fn read(text: &str) -> String {
        let whole = read_in(text.len(), text);
        for size in 1..text.len() {
            assert_eq!(read_in(size, text), whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn a_fragment_in_any_target_of_a_connection_is_made_unreadable() {
        for (sent, parsed) in [
            ("GET /a#b HTTP/1.1\r\n", "GET /a\0b HTTP/1.1\r\n"),
            ("\r\nGET #", "\r\nGET \0"),
            (
                "HEAD http://a/#?# HTTP/1.1\r\n",
                "HEAD http://a/\0?\0 HTTP/1.1\r\n",
            ),
            (
                "GET / HTTP/1.1\r\nA: b\r\n\r\nGET /# HTTP/1.1\n",
                "GET / HTTP/1.1\r\nA: b\r\n\r\nGET /\0 HTTP/1.1\n",
            ),
        ] {
            assert_eq!(read(sent), parsed);
        }
    }

    #[test]
    fn elsewhere_it_stays() {
        for same in [
            "GET / HTTP/1.1\r\nReferer: /a b#c\r\nX#: #\r\n\r\n",
            "G#T / HTTP/1.1\r\n",
            "#: # #\r\n\"a #\"\r\n",
        ] {
            assert_eq!(read(same), same);
        }
    }
}

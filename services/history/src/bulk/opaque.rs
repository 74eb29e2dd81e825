//! Cursors and tokens as clients get them: base64url of numbers, an id and a check sum.
//!
//! The check sum holds the history and the account, so that a text that was changed, cut or taken
//! from elsewhere is refused and not misread. It is no secret: a text that a client makes by
//! itself reaches only rows of the client's own account.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use water_database::walk::{Cursor, Place, Token};
use water_database::writer::History;
use water_domain::{AccountId, Timestamp};

/// The history and the account that a text is for.
#[derive(Clone, Copy)]
pub struct Whose<'a> {
    /// The history.
    pub history: History,
    /// The account.
    pub account: &'a AccountId,
}

/// What a text begins with: its kind.
const TOKEN: u8 = 1;
const CURSOR_OF_ROWS: u8 = 2;
const CURSOR_OF_CHANGES: u8 = 3;

/// Enough to find an accident.
const CHECK_SUM: usize = 8;

/// A token as text.
pub fn token(token: &Token, whose: Whose<'_>) -> String {
    let mut bytes = vec![TOKEN];
    write(&mut bytes, token);
    text(bytes, whose)
}

/// Reads a token; none if it is not one of this history and account.
pub fn read_token(text: &str, whose: Whose<'_>) -> Option<Token> {
    let bytes = bytes(text, whose)?;
    let (&TOKEN, mut rest) = bytes.split_first()? else {
        return None;
    };
    let token = read(&mut rest)?;
    rest.is_empty().then_some(token)
}

/// A cursor as text.
pub fn cursor(cursor: &Cursor, whose: Whose<'_>) -> String {
    let mut bytes = Vec::new();
    match &cursor.since {
        None => bytes.push(CURSOR_OF_ROWS),
        Some(since) => {
            bytes.push(CURSOR_OF_CHANGES);
            write(&mut bytes, since);
        }
    }
    write(&mut bytes, &cursor.began);
    bytes.extend(cursor.after.version.to_be_bytes());
    bytes.extend(cursor.after.id.as_bytes());
    text(bytes, whose)
}

/// Reads a cursor; none if it is not one of this history and account.
pub fn read_cursor(text: &str, whose: Whose<'_>) -> Option<Cursor> {
    let bytes = bytes(text, whose)?;
    let (&kind, mut rest) = bytes.split_first()?;
    let since = match kind {
        CURSOR_OF_ROWS => None,
        CURSOR_OF_CHANGES => Some(read(&mut rest)?),
        _ => return None,
    };
    Some(Cursor {
        since,
        began: read(&mut rest)?,
        after: Place {
            version: number(&mut rest)?,
            id: String::from_utf8(rest.to_vec()).ok()?,
        },
    })
}

fn write(bytes: &mut Vec<u8>, token: &Token) {
    for number in [token.version, token.purge, token.at.as_millis()] {
        bytes.extend(number.to_be_bytes());
    }
}

fn read(bytes: &mut &[u8]) -> Option<Token> {
    Some(Token {
        version: number(bytes)?,
        purge: number(bytes)?,
        at: Timestamp::from_millis(number(bytes)?)?,
    })
}

fn number(bytes: &mut &[u8]) -> Option<i64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(i64::from_be_bytes(*number))
}

fn text(mut bytes: Vec<u8>, whose: Whose<'_>) -> String {
    let sum = check_sum(&bytes, whose);
    bytes.extend(sum);
    URL_SAFE_NO_PAD.encode(bytes)
}

fn bytes(text: &str, whose: Whose<'_>) -> Option<Vec<u8>> {
    let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let sum = bytes.split_off(bytes.len().checked_sub(CHECK_SUM)?);
    (sum == check_sum(&bytes, whose)).then_some(bytes)
}

/// Account ids have no line ends: two different inputs are never the same bytes.
fn check_sum(bytes: &[u8], whose: Whose<'_>) -> [u8; CHECK_SUM] {
    let mut digest = Sha256::new();
    digest.update(whose.history.as_str());
    digest.update("\n");
    digest.update(whose.account.as_str());
    digest.update("\n");
    digest.update(bytes);
    *digest
        .finalize()
        .first_chunk()
        .expect("a digest has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(version: i64) -> Token {
        Token {
            version,
            purge: 3,
            at: Timestamp::parse("2026-07-01T00:00:00.123Z").unwrap(),
        }
    }

    fn place(id: &str) -> Place {
        Place {
            version: 8,
            id: id.to_owned(),
        }
    }

    /// A text of `acme`'s analyses and everything that a cursor may hold.
    fn with_acme(test: impl Fn(Whose<'_>)) {
        let account = "acme".parse().unwrap();
        test(Whose {
            history: History::Analyses,
            account: &account,
        });
    }

    #[test]
    fn what_is_written_is_read() {
        with_acme(|acme| {
            let text = token(&known(7), acme);
            assert_eq!(read_token(&text, acme), Some(known(7)));
            assert_eq!(read_cursor(&text, acme), None);
            for (since, id) in [(None, "é\u{1F4A7}"), (Some(known(7)), &"x".repeat(128))] {
                let began = known(9);
                let after = place(id);
                let written = Cursor {
                    since,
                    began,
                    after,
                };
                let text = cursor(&written, acme);
                assert_eq!(read_cursor(&text, acme), Some(written));
                assert_eq!(read_token(&text, acme), None);
            }
        });
    }

    #[test]
    fn a_text_that_was_changed_or_cut_is_refused() {
        with_acme(|acme| {
            let text = token(&known(7), acme);
            for at in 0..text.len() {
                let other = if text.as_bytes()[at] == b'A' {
                    "B"
                } else {
                    "A"
                };
                let mut changed = text.clone();
                changed.replace_range(at..=at, other);
                assert_eq!(read_token(&changed, acme), None, "{at}");
                assert_eq!(read_token(&text[..at], acme), None, "{at}");
            }
            for wrong in ["2026-07-01", "2026-07-01T00:00:00Z", &format!("{text}A")] {
                assert_eq!(read_token(wrong, acme), None, "{wrong}");
            }
        });
    }

    #[test]
    fn a_text_is_good_for_its_history_and_account_only() {
        with_acme(|acme| {
            let text = token(&known(7), acme);
            let other = "acme.fr".parse().unwrap();
            let others = [
                Whose {
                    history: History::Audits,
                    ..acme
                },
                Whose {
                    account: &other,
                    ..acme
                },
            ];
            for other in others {
                assert_eq!(read_token(&text, other), None);
            }
        });
    }
}

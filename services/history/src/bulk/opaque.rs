//! Cursors and tokens as sent to clients: base64url of numbers, an id and a check sum.
//!
//! The check sum covers the history and the account, so that a text that was changed, cut or taken from elsewhere is
//! refused and not misread. It is no secret: a text made by a client reaches only rows of that client's account.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use water_database::VersionId;
use water_database::walk::{Cursor, Place, Token, Version};
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

/// First bytes of texts: their kind.
const TOKEN: u8 = 4;
const CURSOR_OF_ROWS: u8 = 7;
const CURSOR_OF_CHANGES: u8 = 8;

/// Same kinds without the ids of versions, and cursors without the newest version that their walk has met: it is
/// unknown which database they are of.
const FORMER_TOKEN: u8 = 1;
const FORMER_CURSORS: [u8; 4] = [2, 3, 5, 6];

/// A text that cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unusable {
    /// A text that is not of this kind, history and account.
    Foreign,
    /// A text in a former form, which is not answered any more.
    Former,
}

/// Length in bytes, enough to detect an accident.
const CHECK_SUM: usize = 8;

/// Writes a token as text.
pub fn token(token: &Token, whose: Whose<'_>) -> String {
    let mut bytes = vec![TOKEN];
    write(&mut bytes, token);
    text(bytes, whose)
}

/// Reads a token of this history and account.
pub fn read_token(text: &str, whose: Whose<'_>) -> Result<Token, Unusable> {
    let bytes = bytes(text, whose).ok_or(Unusable::Foreign)?;
    match bytes.split_first() {
        Some((&TOKEN, rest)) => whole_token(rest).ok_or(Unusable::Foreign),
        Some((&FORMER_TOKEN, _)) => Err(Unusable::Former),
        _ => Err(Unusable::Foreign),
    }
}

/// Reads a token to its end. A former one ends before the newest version that its walk has met: it has the one at which
/// the walk began in its place.
fn whole_token(mut bytes: &[u8]) -> Option<Token> {
    let mut token = state(&mut bytes)?;
    if !bytes.is_empty() {
        token.seen = version(&mut bytes)?;
    }
    bytes.is_empty().then_some(token)
}

/// Writes a cursor as text.
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

/// Reads a cursor of this history and account.
pub fn read_cursor(text: &str, whose: Whose<'_>) -> Result<Cursor, Unusable> {
    let bytes = bytes(text, whose).ok_or(Unusable::Foreign)?;
    match bytes.first() {
        Some(kind) if FORMER_CURSORS.contains(kind) => Err(Unusable::Former),
        _ => whole_cursor(&bytes).ok_or(Unusable::Foreign),
    }
}

fn whole_cursor(bytes: &[u8]) -> Option<Cursor> {
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
    bytes.extend(token.id.0);
    bytes.extend(token.seen.number.to_be_bytes());
    bytes.extend(token.seen.id.0);
}

fn read(bytes: &mut &[u8]) -> Option<Token> {
    let state = state(bytes)?;
    Some(Token {
        seen: version(bytes)?,
        ..state
    })
}

/// Reads a token up to the newest version that its walk has met.
fn state(bytes: &mut &[u8]) -> Option<Token> {
    let (version, purge) = (number(bytes)?, number(bytes)?);
    let at = Timestamp::from_millis(number(bytes)?)?;
    let id = VersionId(chunk(bytes)?);
    let seen = Version {
        number: version,
        id,
    };
    Some(Token {
        version,
        id,
        purge,
        at,
        seen,
    })
}

fn version(bytes: &mut &[u8]) -> Option<Version> {
    Some(Version {
        number: number(bytes)?,
        id: VersionId(chunk(bytes)?),
    })
}

fn number(bytes: &mut &[u8]) -> Option<i64> {
    chunk(bytes).map(i64::from_be_bytes)
}

fn chunk<const LENGTH: usize>(bytes: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (chunk, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*chunk)
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

/// Computes the check sum. Account ids have no line ends: two different inputs are never the same bytes.
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
            id: VersionId([7; 16]),
            purge: 3,
            at: Timestamp::parse("2026-07-01T00:00:00.123Z").unwrap(),
            seen: Version {
                number: version + 1,
                id: VersionId([8; 16]),
            },
        }
    }

    fn place(id: &str) -> Place {
        Place {
            version: 8,
            id: id.to_owned(),
        }
    }

    /// Runs a test for the analyses of `acme`.
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
            assert_eq!(read_token(&text, acme), Ok(known(7)));
            assert_eq!(read_cursor(&text, acme), Err(Unusable::Foreign));
            for (since, id) in [(None, "é\u{1F4A7}"), (Some(known(7)), &"x".repeat(128))] {
                let began = known(9);
                let after = place(id);
                let written = Cursor {
                    since,
                    began,
                    after,
                };
                let text = cursor(&written, acme);
                assert_eq!(read_cursor(&text, acme), Ok(written));
                assert_eq!(read_token(&text, acme), Err(Unusable::Foreign));
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
                assert_eq!(read_token(&changed, acme), Err(Unusable::Foreign), "{at}");
                assert_eq!(
                    read_token(&text[..at], acme),
                    Err(Unusable::Foreign),
                    "{at}"
                );
            }
            for wrong in ["2026-07-01", "2026-07-01T00:00:00Z", &format!("{text}A")] {
                assert_eq!(read_token(wrong, acme), Err(Unusable::Foreign), "{wrong}");
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
                assert_eq!(read_token(&text, other), Err(Unusable::Foreign));
            }
        });
    }

    #[test]
    fn a_token_of_the_former_length_has_seen_what_it_began_with() {
        with_acme(|acme| {
            let mut bytes = vec![TOKEN];
            write(&mut bytes, &known(7));
            bytes.truncate(41);
            let began = Version {
                number: 7,
                id: VersionId([7; 16]),
            };
            let expected = Token {
                seen: began,
                ..known(7)
            };
            assert_eq!(read_token(&text(bytes, acme), acme), Ok(expected));
        });
    }

    #[test]
    fn a_text_without_the_versions_of_its_walk_is_of_a_former_form() {
        with_acme(|acme| {
            let former = |kind: u8| text([&[kind], [0; 24].as_slice()].concat(), acme);
            assert_eq!(read_token(&former(1), acme), Err(Unusable::Former));
            for kind in [2, 3, 5, 6] {
                assert_eq!(read_cursor(&former(kind), acme), Err(Unusable::Former));
            }
            assert_eq!(read_cursor(&former(1), acme), Err(Unusable::Foreign));
        });
    }
}

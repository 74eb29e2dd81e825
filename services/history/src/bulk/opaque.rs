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

/// Cursors without the newest version that their walk has met.
const FORMER_CURSOR_OF_ROWS: u8 = 5;
const FORMER_CURSOR_OF_CHANGES: u8 = 6;

/// All kinds that are known. The first ones are without the ids of versions, and are not read: it is unknown which
/// database they are of.
const TOKENS: [u8; 2] = [1, TOKEN];
const CURSORS: [u8; 6] = [
    2,
    3,
    FORMER_CURSOR_OF_ROWS,
    FORMER_CURSOR_OF_CHANGES,
    CURSOR_OF_ROWS,
    CURSOR_OF_CHANGES,
];

/// A text that cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unusable {
    /// A text that is not of this kind, history and account.
    Foreign,
    /// A text in a form that is not read any more, or not yet: a later release may have made it.
    OtherRelease,
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
    let (&kind, mut rest) = bytes.split_first().ok_or(Unusable::Foreign)?;
    match kind {
        TOKEN => {
            let token = whole_token(&mut rest).ok_or(Unusable::Foreign)?;
            if rest.is_empty() {
                Ok(token)
            } else {
                Err(Unusable::OtherRelease)
            }
        }
        _ if CURSORS.contains(&kind) => Err(Unusable::Foreign),
        _ => Err(Unusable::OtherRelease),
    }
}

/// Reads a token. A former one ends before the newest version that its walk has met: it has the one at which the walk
/// began in its place.
fn whole_token(bytes: &mut &[u8]) -> Option<Token> {
    let token = state(bytes)?;
    if bytes.is_empty() {
        return Some(token);
    }
    Some(Token {
        seen: version(bytes)?,
        ..token
    })
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
    let (&kind, rest) = bytes.split_first().ok_or(Unusable::Foreign)?;
    let cursor = match kind {
        CURSOR_OF_ROWS => cursor_of_rows(rest, read),
        CURSOR_OF_CHANGES => cursor_of_changes(rest, read),
        FORMER_CURSOR_OF_ROWS => cursor_of_rows(rest, state),
        FORMER_CURSOR_OF_CHANGES => cursor_of_changes(rest, state),
        _ if TOKENS.contains(&kind) => None,
        _ => return Err(Unusable::OtherRelease),
    };
    cursor.ok_or(Unusable::Foreign)
}

/// Reads a token within a cursor.
type Read = fn(&mut &[u8]) -> Option<Token>;

fn cursor_of_rows(mut bytes: &[u8], read: Read) -> Option<Cursor> {
    Some(Cursor {
        since: None,
        began: read(&mut bytes)?,
        after: Place {
            version: number(&mut bytes)?,
            id: String::from_utf8(bytes.to_vec()).ok()?,
        },
    })
}

fn cursor_of_changes(mut bytes: &[u8], read: Read) -> Option<Cursor> {
    let since = Some(read(&mut bytes)?);
    let cursor = cursor_of_rows(bytes, read)?;
    Some(Cursor { since, ..cursor })
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

/// Reads a token up to the newest version that its walk has met, of which it gets the one at which the walk began.
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

    /// A token of a walk that has met nothing after its beginning.
    fn met_nothing(version: i64) -> Token {
        let known = known(version);
        let seen = Version {
            number: version,
            id: known.id,
        };
        Token { seen, ..known }
    }

    /// The bytes of a token in the form without the newest version that its walk has met.
    fn former(version: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &known(version));
        bytes.truncate(40);
        bytes
    }

    #[test]
    fn a_token_of_the_former_length_has_seen_what_it_began_with() {
        with_acme(|acme| {
            let former = text([vec![TOKEN], former(7)].concat(), acme);
            assert_eq!(read_token(&former, acme), Ok(met_nothing(7)));
        });
    }

    #[test]
    fn a_cursor_of_the_former_kinds_has_seen_what_its_walk_began_with() {
        with_acme(|acme| {
            for (kind, since) in [(5_u8, None), (6, Some(3_i64))] {
                let mut bytes = vec![kind];
                for version in since.into_iter().chain([9]) {
                    bytes.extend(former(version));
                }
                bytes.extend(8_i64.to_be_bytes());
                bytes.extend(b"r0001");
                let former = text(bytes, acme);
                let expected = Cursor {
                    since: since.map(met_nothing),
                    began: met_nothing(9),
                    after: place("r0001"),
                };
                assert_eq!(read_cursor(&former, acme), Ok(expected));
                assert_eq!(read_token(&former, acme), Err(Unusable::Foreign));
            }
        });
    }

    #[test]
    fn a_text_of_an_unknown_kind_or_length_is_of_another_release() {
        with_acme(|acme| {
            for kind in [0_u8, 9, 255] {
                let unknown = text([&[kind], [0; 24].as_slice()].concat(), acme);
                assert_eq!(read_token(&unknown, acme), Err(Unusable::OtherRelease));
                assert_eq!(read_cursor(&unknown, acme), Err(Unusable::OtherRelease));
            }
            let mut bytes = vec![TOKEN];
            write(&mut bytes, &known(7));
            bytes.push(0);
            let longer = text(bytes, acme);
            assert_eq!(read_token(&longer, acme), Err(Unusable::OtherRelease));
        });
    }

    #[test]
    fn a_text_without_the_ids_of_versions_is_not_read_any_more() {
        with_acme(|acme| {
            let former = |kind: u8| text([&[kind], [0; 24].as_slice()].concat(), acme);
            assert_eq!(read_token(&former(1), acme), Err(Unusable::OtherRelease));
            assert_eq!(read_cursor(&former(1), acme), Err(Unusable::Foreign));
            for kind in [2, 3] {
                assert_eq!(
                    read_cursor(&former(kind), acme),
                    Err(Unusable::OtherRelease)
                );
                assert_eq!(read_token(&former(kind), acme), Err(Unusable::Foreign));
            }
        });
    }
}

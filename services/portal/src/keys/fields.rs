//! What a request says of a key, checked: pure functions over a body and the time.

use std::time::Duration;

use water_domain::{KeyHash, KeyId, Timestamp};
use water_http::Problem;

use super::body::Body;
use crate::data::PORTAL_KEY;

/// Characters of a title.
const MAX_TITLE: usize = 100;
/// The longest overlap: 7 days.
const MAX_OVERLAP: u64 = 604_800;
const DAY: u64 = 86_400;

/// The members of a request that makes a key.
pub const CREATE: &[&str] = &["title", "expiresAt", "sha256", "keyId"];
/// The members of a request that renames one.
pub const RENAME: &[&str] = &["title"];
/// The members of a request that rotates one.
pub const ROTATE: &[&str] = &[
    "replaces",
    "sha256",
    "keyId",
    "overlapSeconds",
    "expiresAt",
    "endPrevious",
];

/// A key's text as its maker names it: by hash and public name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fresh {
    /// The SHA-256 of its text.
    pub hash: KeyHash,
    /// Its public name.
    pub key_id: KeyId,
    /// It is refused from then on.
    pub expires: Option<Timestamp>,
}

/// A rotation that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// The text that comes.
    pub fresh: Fresh,
    /// The public name of the text that goes.
    pub replaces: KeyId,
    /// For how many seconds that works on.
    pub overlap: u64,
    /// Whether a text that still works from a rotation before may be ended.
    pub end_previous: bool,
}

/// A title: 1 to 100 characters, none of which controls a terminal, breaks a line or turns the direction
/// of what is written beside it.
pub fn title(body: &Body) -> Result<String, Problem> {
    let title = body.required("title")?.trim();
    let fits = (1..=MAX_TITLE).contains(&title.chars().count());
    match fits && !title.chars().any(controls) {
        true => Ok(title.to_owned()),
        false => Err(Problem::invalid_field(
            "title",
            "Give 1 to 100 characters, without line breaks and other control characters.",
        )),
    }
}

/// Control characters, Unicode's line and paragraph separators, and its `Bidi_Control` characters: with
/// those a name reads as another one (Unicode Technical Report 36, section 2.5).
fn controls(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The text that a request brings; `max_days` bounds its life.
pub fn fresh(body: &Body, max_days: Option<u32>, now: Timestamp) -> Result<Fresh, Problem> {
    let hash = body.required("sha256")?.parse();
    let hash = hash.map_err(|_| {
        let rule = "Give the SHA-256 of the key as 64 lower-case hexadecimal digits.";
        Problem::invalid_field("sha256", rule)
    })?;
    let key_id = key_id(body, "keyId")?;
    if key_id.as_str() == PORTAL_KEY {
        let rule = "The portal itself has this key id: make another key.";
        return Err(Problem::invalid_field("keyId", rule));
    }
    Ok(Fresh {
        hash,
        key_id,
        expires: expires(body, max_days, now)?,
    })
}

/// What a rotation asks for.
pub fn rotation(body: &Body, max_days: Option<u32>, now: Timestamp) -> Result<Rotation, Problem> {
    let overlap = body.whole("overlapSeconds")?;
    if overlap > MAX_OVERLAP {
        let rule = "Give 0 to 604800 seconds, which is 7 days.";
        return Err(Problem::invalid_field("overlapSeconds", rule));
    }
    Ok(Rotation {
        fresh: fresh(body, max_days, now)?,
        replaces: key_id(body, "replaces")?,
        overlap,
        end_previous: body.flag("endPrevious")?,
    })
}

fn key_id(body: &Body, name: &'static str) -> Result<KeyId, Problem> {
    let parsed = body.required(name)?.parse();
    parsed.map_err(|_| Problem::invalid_field(name, "Give 12 letters or digits."))
}

/// Never, or a time to come, and within the days that a key may live.
fn expires(
    body: &Body,
    max_days: Option<u32>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Problem> {
    const NAME: &str = "expiresAt";
    let latest = max_days.map(|days| now.plus(Duration::from_secs(u64::from(days) * DAY)));
    let bound = || {
        let days = max_days.unwrap_or_default();
        Problem::invalid_field(NAME, format!("Give a time within the next {days} days."))
    };
    let Some(text) = body.text(NAME)? else {
        return latest.map_or(Ok(None), |_| Err(bound()));
    };
    let expires = Timestamp::parse(text);
    let expires = expires.map_err(|error| Problem::invalid_field(NAME, format!("{error}.")))?;
    if expires <= now {
        return Err(Problem::invalid_field(NAME, "Give a time to come."));
    }
    match latest.is_some_and(|latest| expires > latest) {
        true => Err(bound()),
        false => Ok(Some(expires)),
    }
}

#[cfg(test)]
mod tests;

//! Members of a request about a key, checked: pure functions over a body and the time.

use std::time::Duration;

use water_domain::{KeyHash, KeyId, Timestamp};
use water_http::Problem;
use water_http::problem::texts;

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
    /// SHA-256 of the text.
    pub hash: KeyHash,
    /// Public name.
    pub key_id: KeyId,
    /// Time from which it is refused.
    pub expires: Option<Timestamp>,
}

/// A rotation that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// The new text.
    pub fresh: Fresh,
    /// Public name of the text that it replaces.
    pub replaces: KeyId,
    /// Seconds for which the replaced text works on.
    pub overlap: u64,
    /// Whether a text that still works from a rotation before may be ended.
    pub end_previous: bool,
}

/// Returns the title: 1 to 100 characters, none of which controls a terminal, breaks a line or turns the
/// direction of the text around it.
pub fn title(body: &Body) -> Result<String, Problem> {
    let title = body.required("title")?.trim();
    let fits = (1..=MAX_TITLE).contains(&title.chars().count());
    if fits && !title.chars().any(controls) {
        Ok(title.to_owned())
    } else {
        Err(Problem::invalid_field("title", texts::title_rule()))
    }
}

/// Checks for control characters, Unicode's line and paragraph separators, and its `Bidi_Control`
/// characters: with those a name reads as another one (Unicode Technical Report 36, section 2.5).
fn controls(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Returns the text that a request brings; `max_days` bounds its life.
pub fn fresh(body: &Body, max_days: Option<u32>, now: Timestamp) -> Result<Fresh, Problem> {
    let hash = body.required("sha256")?.parse();
    let hash = hash.map_err(|_| Problem::invalid_field("sha256", texts::sha256_rule()))?;
    let key_id = key_id(body, "keyId")?;
    if key_id.as_str() == PORTAL_KEY {
        let rule = texts::key_id_of_the_portal();
        return Err(Problem::invalid_field("keyId", rule));
    }
    Ok(Fresh {
        hash,
        key_id,
        expires: expires(body, max_days, now)?,
    })
}

/// Returns the rotation that a request asks for.
pub fn rotation(body: &Body, max_days: Option<u32>, now: Timestamp) -> Result<Rotation, Problem> {
    let overlap = body.whole("overlapSeconds")?;
    if overlap > MAX_OVERLAP {
        let rule = texts::overlap_rule();
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
    parsed.map_err(|_| Problem::invalid_field(name, texts::key_id_rule()))
}

/// Returns the expiry: none, or a time to come, within the days that a key may live.
fn expires(
    body: &Body,
    max_days: Option<u32>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Problem> {
    const NAME: &str = "expiresAt";
    let latest = max_days.map(|days| now.plus(Duration::from_secs(u64::from(days) * DAY)));
    let bound = || {
        let days = max_days.unwrap_or_default();
        Problem::invalid_field(NAME, texts::expiry_within(days))
    };
    let Some(text) = body.text(NAME)? else {
        return latest.map_or(Ok(None), |_| Err(bound()));
    };
    let expires = Timestamp::parse(text);
    let expires = expires.map_err(|error| Problem::invalid_field(NAME, texts::time_rule(error)))?;
    if expires <= now {
        return Err(Problem::invalid_field(NAME, texts::expiry_to_come()));
    }
    if latest.is_some_and(|latest| expires > latest) {
        Err(bound())
    } else {
        Ok(Some(expires))
    }
}

#[cfg(test)]
mod tests;

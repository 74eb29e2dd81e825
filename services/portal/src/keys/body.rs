//! A request's body: one JSON object whose members are all known and occur once.

use std::fmt;

use http::header::CONTENT_TYPE;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use water_domain::KeyPrefix;
use water_http::Problem;
use water_http::problem::texts;

use crate::account_request::AccountRequest;

const JSON: &str = "application/json";
/// Bytes of an unknown member's name that are repeated.
const NAME: usize = 64;

/// The members as they came.
#[derive(Debug)]
pub struct Body(Vec<(String, Value)>);

impl Body {
    /// Reads the body, whose members may be these. The decoded text must not contain the shape of a key.
    pub fn read(
        asked: &AccountRequest<'_>,
        known: &[&str],
        prefix: &KeyPrefix,
    ) -> Result<Self, Problem> {
        if !is_json(asked) {
            return Err(Problem::unsupported_media_type(JSON));
        }
        let read = serde_json::from_slice(asked.body);
        let Self(members) = read.map_err(|_| Problem::invalid_body(texts::body_is_no_object()))?;
        let shows_key =
            |(name, value): &(String, Value)| prefix.is_in(name) || texts(value, prefix);
        if members.iter().any(shows_key) {
            return Err(Problem::key_in_request());
        }
        for (index, (name, _)) in members.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let rule = texts::unknown_member(&known.join(", "));
                return Err(Problem::invalid_field(cut(name), rule));
            }
            if members[..index].iter().any(|(other, _)| other == name) {
                return Err(Problem::invalid_field(cut(name), texts::repeated_member()));
            }
        }
        Ok(Self(members))
    }

    /// Returns a text; none where the member is missing or null.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::invalid_field(name, texts::not_a_text())),
        }
    }

    /// Returns a text that must be there.
    pub fn required(&self, name: &'static str) -> Result<&str, Problem> {
        let missing = || Problem::invalid_field(name, texts::missing_member());
        self.text(name)?.ok_or_else(missing)
    }

    /// Returns a whole number that must be there.
    pub fn whole(&self, name: &'static str) -> Result<u64, Problem> {
        let number = self.value(name).and_then(Value::as_u64);
        number.ok_or_else(|| Problem::invalid_field(name, texts::not_a_whole_number()))
    }

    /// Returns a flag; false where the member is missing.
    pub fn flag(&self, name: &'static str) -> Result<bool, Problem> {
        match self.value(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(Problem::invalid_field(name, texts::not_a_flag())),
        }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        let mut members = self.0.iter();
        let (_, value) = members.find(|(other, _)| other == name)?;
        (!value.is_null()).then_some(value)
    }
}

/// Checks for one content type, with no charset but UTF-8.
fn is_json(asked: &AccountRequest<'_>) -> bool {
    let mut kinds = asked.headers().get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return false;
    };
    let kind = kind.to_str().unwrap_or_default().to_ascii_lowercase();
    let (kind, parameter) = kind.split_once(';').unwrap_or((&kind, ""));
    let is_utf8 = matches!(parameter.trim(), "" | "charset=utf-8" | "charset=\"utf-8\"");
    kind.trim() == JSON && is_utf8
}

/// A key may be written with escapes, which only the decoded text shows.
fn texts(value: &Value, prefix: &KeyPrefix) -> bool {
    match value {
        Value::String(text) => prefix.is_in(text),
        Value::Array(values) => values.iter().any(|value| texts(value, prefix)),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| prefix.is_in(name) || texts(value, prefix)),
        _ => false,
    }
}

fn cut(name: &str) -> String {
    name.chars().take(NAME).collect()
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

/// Keeps repeated members, which a map would lose.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Body;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Body(members))
    }
}

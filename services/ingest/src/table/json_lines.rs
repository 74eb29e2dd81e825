//! NDJSON: one JSON object a line, its members the columns.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::encoding::not_utf8;
use crate::problem::Problems;
use crate::table::{Columns, Form, MAX_ROW_BYTES, Place, Row};

pub(super) fn read(
    mut text: impl BufRead,
    columns: Columns,
    problems: &mut Problems,
    mut each: impl FnMut(u64, &Row, &mut Problems),
) -> io::Result<u64> {
    let (mut bytes, mut row, mut rows) = (Vec::new(), Row::default(), 0);
    for line in 1_u64.. {
        bytes.clear();
        let longest = MAX_ROW_BYTES as u64 + 1;
        if text.by_ref().take(longest).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 == longest {
            problems.refuse_line(line, "the line is longer than 1 MiB");
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        rows += 1;
        let object = match std::str::from_utf8(&bytes) {
            Err(error) => Err(not_utf8(&bytes, error)),
            Ok(object) => {
                serde_json::from_str::<Members>(object).map_err(|error| not_an_object(&error))
            }
        };
        match object {
            Err(why) => problems.refuse_line(line, &why),
            Ok(members) => {
                if place(line, &members, columns, &mut row, problems) {
                    each(line, &row, problems);
                }
            }
        }
    }
    Ok(rows)
}

/// Describes a line that is no object. serde_json's position is within the line; its own text is not used, for it
/// repeats the position and may quote the data.
fn not_an_object(error: &serde_json::Error) -> String {
    format!(
        "this is no JSON object (at byte {} of the line)",
        error.column()
    )
}

/// Moves the members' values into the row; `false` after a member that is not accepted.
fn place(
    line: u64,
    members: &Members<'_>,
    columns: Columns,
    row: &mut Row,
    problems: &mut Problems,
) -> bool {
    let before = problems.count();
    row.text.clear();
    row.cells.clear();
    row.cells.resize(columns.all().count(), None);
    for (name, value) in &members.0 {
        let Some(column) = columns.place(name) else {
            problems.refuse_line(line, &columns.unknown(name));
            continue;
        };
        if row.cells[column].is_some() {
            problems.refuse_line(line, &format!("the column {name} is there twice"));
            continue;
        }
        let start = row.text.len();
        match write_value(value.get(), &mut row.text) {
            Ok(form) => {
                row.cells[column] = Some(Place {
                    start,
                    end: row.text.len(),
                    line,
                    form,
                })
            }
            Err(why) => problems.refuse(line, name, why),
        }
    }
    for (column, name) in columns.required.iter().enumerate() {
        // A member that was refused is not reported as missing too.
        if row.cells[column].is_none() && !members.0.iter().any(|(member, _)| member == name) {
            problems.refuse_line(
                line,
                &format!("the column {name} is missing: {}", columns.describe()),
            );
        }
    }
    problems.count() == before
}

/// Appends a string's text, or a number as written.
fn write_value(json: &str, text: &mut Vec<u8>) -> Result<Form, &'static str> {
    match json.as_bytes().first() {
        Some(b'"') => {
            let value: Cow<str> =
                serde_json::from_str(json).map_err(|_| "this is no JSON string")?;
            text.extend_from_slice(value.as_bytes());
            Ok(Form::JsonText)
        }
        Some(b'-' | b'0'..=b'9') => {
            text.extend_from_slice(json.as_bytes());
            Ok(Form::JsonNumber)
        }
        Some(b'n') => Err("null is no value"),
        Some(b't' | b'f') => Err("true and false are no values here"),
        _ => Err("an array or an object is no value here"),
    }
}

/// The members of an object in their order, including repeated ones.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((Name(name), value)) = map.next_entry()? {
            members.push((name, value));
        }
        Ok(Members(members))
    }
}

/// A member's name, borrowed from the line unless it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

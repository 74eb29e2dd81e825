//! Content of a file, read in another way than the product reads it: whole, without a line's number, and
//! without a rule but those of the format. Of a file that the product accepted it must say the same, field by
//! field.

use std::io::Read;

use serde_json::{Map, Value, json};
use water_domain::departement;

use crate::strict;

/// Returns the records of a dataset's file, each an array of its columns in the order of [`columns`]; a value
/// that is not given is `null`. `None`: the bytes are no such file.
pub fn records(dataset: &str, bytes: &[u8]) -> Option<Vec<Value>> {
    let mut unpacked = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut packed = flate2::read::MultiGzDecoder::new(bytes);
        packed.read_to_end(&mut unpacked).ok()?;
    } else {
        unpacked.extend_from_slice(bytes);
    }
    let text = String::from_utf8(unpacked).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if dataset == "vigieau" {
        let entries: Vec<Map<String, Value>> = serde_json::from_str(text).ok()?;
        let entries = entries.iter().filter(|entry| is_departement(entry));
        return entries.map(legal_level).collect();
    }
    let objects = match text.trim_start().starts_with('{') {
        true => objects(text)?,
        false => rows(text)?,
    };
    let (names, mut found) = (columns(dataset), Vec::new());
    for object in objects {
        let value = |name: &&str| value(name, object.get(*name).unwrap_or(&Value::Null));
        found.push(names.iter().map(value).collect::<Option<Value>>()?);
    }
    Some(found)
}

/// Returns the columns whose values are stored.
pub fn columns(dataset: &str) -> &'static [&'static str] {
    match dataset {
        "stress" => &["dept", "stressIndex", "level"],
        "risk" => &["dept", "flood", "drought", "overall", "rating", "updatedAt"],
        "analyses" => &[
            "accountId",
            "id",
            "companyName",
            "sectorCode",
            "deptCode",
            "globalScore",
            "rating",
            "createdAt",
        ],
        "audits" => &[
            "accountId",
            "id",
            "companyName",
            "sectorCode",
            "deptCode",
            "score",
            "globalRating",
            "createdAt",
        ],
        _ => &["code", "niveauGraviteMax"],
    }
}

/// Whether an entry of the register is of one of the départements; the others are skipped.
fn is_departement(entry: &Map<String, Value>) -> bool {
    let code = entry.get("code").and_then(Value::as_str).map(code);
    departement::all()
        .iter()
        .any(|departement| Some(departement.code) == code.as_deref())
}

fn legal_level(entry: &Map<String, Value>) -> Option<Value> {
    let level = match entry.get("niveauGraviteMax")? {
        Value::Null => json!("normal"),
        Value::String(text) if text == "unavailable" => Value::Null,
        Value::String(text) => level(text)?,
        _ => return None,
    };
    Some(json!([code(entry.get("code")?.as_str()?), level]))
}

fn objects(text: &str) -> Option<Vec<Map<String, Value>>> {
    let lines = text.split('\n').filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns the rows of a CSV file; of one that is separated by semicolons a decimal comma is read.
fn rows(text: &str) -> Option<Vec<Map<String, Value>>> {
    let header = text.trim_start_matches(['\r', '\n']).lines().next()?;
    let outside_quotes = header.split('"').step_by(2).collect::<String>();
    let semicolons = outside_quotes.matches(';').count() > outside_quotes.matches(',').count();
    let mut records = strict::records(text, if semicolons { ';' } else { ',' })?.into_iter();
    let names = records.next()?;
    let row = |record: Vec<String>| {
        let cells = names.iter().cloned().zip(record);
        let cells = cells.filter(|(_, cell)| !cell.is_empty());
        let number = |name: &str, cell: &str| {
            if is_number(name) {
                cell.replace(if semicolons { ',' } else { '.' }, ".")
                    .parse::<f64>()
                    .ok()
            } else {
                None
            }
        };
        cells
            .map(|(name, cell)| {
                let value =
                    number(&name, &cell).map_or_else(|| json!(cell), |number| json!(number));
                (name, value)
            })
            .collect()
    };
    Some(records.map(row).collect())
}

fn is_number(name: &str) -> bool {
    [
        "stressIndex",
        "flood",
        "drought",
        "overall",
        "score",
        "globalScore",
    ]
    .contains(&name)
}

/// Returns a value as it is stored.
fn value(name: &str, value: &Value) -> Option<Value> {
    Some(match (name, value) {
        (_, Value::Null) => Value::Null,
        ("dept" | "deptCode", Value::String(text)) => json!(code(text)),
        ("level", Value::String(text)) => level(text)?,
        ("updatedAt" | "createdAt", Value::String(text)) => json!(milliseconds(text)?),
        (name, value) if is_number(name) => json!(value.as_f64()? + 0.0),
        (_, Value::String(text)) => json!(text),
        _ => return None,
    })
}

fn code(text: &str) -> String {
    format!("{:0>2}", text.to_uppercase())
}

/// Reads a level by its letters alone.
fn level(text: &str) -> Option<Value> {
    let letters: String = text
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphabetic())
        .collect();
    Some(match letters.replace('é', "e").as_str() {
        "normal" => json!("normal"),
        "vigilance" => json!("vigilance"),
        "alerte" => json!("alerte"),
        "alerterenforcee" => json!("alerte_renforcee"),
        "crise" => json!("crise"),
        _ => return None,
    })
}

/// Reads RFC 3339 as milliseconds since the epoch; finer parts are cut off.
fn milliseconds(text: &str) -> Option<i64> {
    let number = |part: &str| part.parse::<i64>().ok();
    let field = |range: std::ops::Range<usize>| number(text.get(range)?);
    let (year, month, day) = (field(0..4)?, field(5..7)?, field(8..10)?);
    let (hour, minute, second) = (field(11..13)?, field(14..16)?, field(17..19)?);
    let mut rest = text.get(19..)?;
    let mut fraction = 0;
    if let Some(digits) = rest.strip_prefix('.') {
        let length = digits.find(|byte: char| !byte.is_ascii_digit())?;
        fraction = number(&format!("{:0<3.3}", &digits[..length]))?;
        rest = &digits[length..];
    }
    let offset = match rest {
        "Z" | "z" => 0,
        _ => {
            let minutes = number(rest.get(1..3)?)? * 60 + number(rest.get(4..6)?)?;
            if rest.starts_with('-') {
                -minutes
            } else {
                minutes
            }
        }
    };
    // Days of the civil calendar, counted from March, so that a leap day ends a year.
    let (shifted, from_march) = (year - i64::from(month <= 2), (month + 9) % 12);
    let days = shifted * 365 + shifted.div_euclid(4) - shifted.div_euclid(100)
        + shifted.div_euclid(400)
        + (from_march * 153 + 2) / 5
        + day
        - 719_469;
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    Some((minutes * 60 + second) * 1000 + fraction)
}

//! The body of a bulk page: rows and deletions as CSV (RFC 4180) or NDJSON.
//!
//! Pages of changes have one column more in CSV, `deleted`: a deletion is a line with its id, empty
//! cells and `true`. In NDJSON a deletion is the line `{"deleted":{"id":"…"}}`.

use serde_json::json;
use water_database::Error;
use water_database::walk::{Entry, Place, Portion};
use water_domain::Format;
use water_http::{csv, json};

use crate::record::Record;

/// Largest size of a page in bytes: it ends before the row that would exceed it.
const LARGEST: usize = 900 * 1024;

/// A page that is being written.
pub struct Body {
    form: Form,
    /// The rows, the last of which may not fit.
    lines: Vec<u8>,
    /// Bytes of the rows that fit.
    length: usize,
    rows: usize,
}

enum Form {
    Csv { tells_changes: bool },
    NdJson(fn(Entry<'_>, &mut Vec<u8>)),
}

/// Result of adding a portion.
pub struct Addition {
    /// The last entry that fits.
    pub last: Option<Place>,
    /// Whether the next entry does not fit.
    pub full: bool,
}

impl Body {
    /// Begins a page of these records, or of their changes.
    pub fn new<R: Record>(format: Format, tells_changes: bool) -> Self {
        let mut lines = Vec::new();
        let form = match format {
            Format::Csv => {
                let deleted = tells_changes.then_some("deleted");
                csv::append(R::FIELDS.into_iter().chain(deleted), &mut lines);
                Form::Csv { tells_changes }
            }
            Format::NdJson | Format::Json => Form::NdJson(json_line::<R>),
        };
        Self {
            form,
            length: lines.len(),
            lines,
            rows: 0,
        }
    }

    /// Adds entries as long as they fit; a page has at least one.
    pub fn add(&mut self, portion: &Portion) -> Result<Addition, Error> {
        let mut fitting = 0;
        for entry in portion.entries() {
            let entry = entry?;
            match self.form {
                Form::Csv { tells_changes } => csv_line(entry, tells_changes, &mut self.lines),
                Form::NdJson(write) => write(entry, &mut self.lines),
            }
            if self.lines.len() > LARGEST && self.rows > 0 {
                break;
            }
            self.length = self.lines.len();
            self.rows += 1;
            fitting += 1;
        }
        Ok(Addition {
            last: portion.place_before(fitting),
            full: fitting < portion.len(),
        })
    }

    /// Ends the page and returns its bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.lines.truncate(self.length);
        self.lines
    }
}

fn csv_line(entry: Entry<'_>, tells_changes: bool, lines: &mut Vec<u8>) {
    let (score, created_at);
    let (cells, deleted) = match entry {
        Entry::Row(row) => {
            (score, created_at) = (row.score.to_string(), row.created_at.to_string());
            let cells = [
                row.id,
                row.company_name,
                row.sector_code,
                row.dept_code,
                &score,
                row.rating,
                &created_at,
            ];
            (cells, "false")
        }
        Entry::Deleted(id) => ([id, "", "", "", "", "", ""], "true"),
    };
    let deleted = tells_changes.then_some(deleted);
    csv::append(cells.into_iter().chain(deleted), lines);
}

fn json_line<R: Record>(entry: Entry<'_>, lines: &mut Vec<u8>) {
    match entry {
        Entry::Row(row) => json::append(&R::met(row), lines),
        Entry::Deleted(id) => json::append(&json!({ "deleted": { "id": id } }), lines),
    }
    lines.push(b'\n');
}

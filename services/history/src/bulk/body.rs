//! The body of a bulk page: rows and deletions as CSV (RFC 4180) or NDJSON.
//!
//! Pages of changes have one column more in CSV, `deleted`: a deletion is a line with its id, empty
//! cells and `true`. In NDJSON a deletion is the line `{"deleted":{"id":"…"}}`.

use csv::{Terminator, Writer, WriterBuilder};
use serde_json::json;
use water_database::Error;
use water_database::walk::{Entry, Place, Portion};
use water_domain::Format;

use crate::record::Record;

/// Largest size of a page in bytes: it ends before the row that would exceed it.
const LARGEST: usize = 900 * 1024;

/// A page that is being written.
pub struct Body {
    form: Form,
    /// Bytes of the rows that fit.
    length: usize,
    rows: usize,
}

enum Form {
    Csv {
        lines: Box<Writer<Vec<u8>>>,
        tells_changes: bool,
    },
    NdJson {
        lines: Vec<u8>,
        write: fn(Entry<'_>, &mut Vec<u8>),
    },
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
        let form = match format {
            Format::Csv => Form::csv::<R>(tells_changes),
            Format::NdJson | Format::Json => Form::NdJson {
                lines: Vec::new(),
                write: json_line::<R>,
            },
        };
        Self {
            length: form.length(),
            form,
            rows: 0,
        }
    }

    /// Adds entries as long as they fit; a page has at least one.
    pub fn add(&mut self, portion: &Portion) -> Result<Addition, Error> {
        let mut fitting = 0;
        for entry in portion.entries() {
            self.form.write(entry?);
            let length = self.form.length();
            if length > LARGEST && self.rows > 0 {
                break;
            }
            self.length = length;
            self.rows += 1;
            fitting += 1;
        }
        Ok(Addition {
            last: portion.place_before(fitting),
            full: fitting < portion.len(),
        })
    }

    /// Ends the page and returns its bytes.
    pub fn end(self) -> Vec<u8> {
        let mut bytes = self.form.into_bytes();
        bytes.truncate(self.length);
        bytes
    }
}

/// Writing to memory cannot fail.
const MEMORY: &str = "memory takes every byte";

impl Form {
    fn csv<R: Record>(tells_changes: bool) -> Self {
        let mut lines = WriterBuilder::new()
            .terminator(Terminator::CRLF)
            .from_writer(Vec::new());
        let deleted = tells_changes.then_some("deleted");
        let header = R::FIELDS.into_iter().chain(deleted);
        lines.write_record(header).expect(MEMORY);
        lines.flush().expect(MEMORY);
        Self::Csv {
            lines: Box::new(lines),
            tells_changes,
        }
    }

    fn write(&mut self, entry: Entry<'_>) {
        match self {
            Self::NdJson { lines, write } => write(entry, lines),
            Self::Csv {
                lines,
                tells_changes,
            } => {
                csv_line(entry, *tells_changes, lines).expect(MEMORY);
                lines.flush().expect(MEMORY);
            }
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::NdJson { lines, .. } => lines.len(),
            Self::Csv { lines, .. } => lines.get_ref().len(),
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::NdJson { lines, .. } => lines,
            Self::Csv { lines, .. } => lines.into_inner().expect(MEMORY),
        }
    }
}

fn csv_line(
    entry: Entry<'_>,
    tells_changes: bool,
    lines: &mut Writer<Vec<u8>>,
) -> Result<(), csv::Error> {
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
    lines.write_record(cells.into_iter().chain(tells_changes.then_some(deleted)))
}

fn json_line<R: Record>(entry: Entry<'_>, lines: &mut Vec<u8>) {
    match entry {
        Entry::Row(row) => serde_json::to_writer(&mut *lines, &R::met(row)),
        Entry::Deleted(id) => {
            serde_json::to_writer(&mut *lines, &json!({ "deleted": { "id": id } }))
        }
    }
    .expect("records are always JSON");
    lines.push(b'\n');
}

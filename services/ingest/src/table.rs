//! A table of named columns in either form: CSV or one JSON object a line.
//!
//! Rows are read one at a time into the same buffers, so memory does not grow with the file.

mod csv;
mod json_lines;

use std::io::{self, BufRead};

use crate::encoding;
use crate::problem::Problems;
use crate::shown::shortened;

/// The columns of a dataset, by the API's names; a cell is found by its place in [`Columns::all`].
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Columns that a file must have.
    pub required: &'static [&'static str],
    /// Columns that a file may have.
    pub optional: &'static [&'static str],
    /// Whether a file may be a header without rows.
    pub may_be_empty: bool,
}

/// A row; a cell that is not given is `None`.
#[derive(Debug, Default)]
pub struct Row {
    text: Vec<u8>,
    cells: Vec<Option<Place>>,
}

/// Place of a cell's text in [`Row::text`], and in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    end: usize,
    line: u64,
    form: Form,
}

/// A cell's text and how it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell<'a> {
    /// The text; of a JSON number its digits as written.
    pub text: &'a str,
    /// The physical line on which the cell begins.
    pub line: u64,
    /// Form in which it was written.
    pub form: Form,
}

/// Form in which a cell was written: it decides what the text may mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// In a table separated by commas: text and numbers look alike.
    Csv,
    /// In a table separated by semicolons, as French spreadsheets write it: a decimal comma is read.
    FrenchCsv,
    /// A JSON string.
    JsonText,
    /// A JSON number.
    JsonNumber,
}

const JSON_ARRAY: &str =
    "the file is a JSON array: write one object a line (NDJSON), as jq -c '.[]' does";

/// Largest row or line, in bytes: a longer one is an open quote, or not a table at all.
const MAX_ROW_BYTES: usize = 1 << 20;

impl Columns {
    /// All names, the required ones first.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.required.iter().chain(self.optional).copied()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.all().position(|column| column == name)
    }

    /// `the columns are dept, stressIndex and optionally level`.
    fn describe(&self) -> String {
        let required = self.required.join(", ");
        match self.optional {
            [] => format!("the columns are {required}"),
            optional => format!(
                "the columns are {required} and optionally {}",
                optional.join(", ")
            ),
        }
    }

    fn unknown(&self, name: &str) -> String {
        format!(
            "unknown column \"{}\": {}",
            shortened(name),
            self.describe()
        )
    }
}

impl Row {
    /// The cell of the column at this place in [`Columns::all`].
    pub fn cell(&self, column: usize) -> Option<Cell<'_>> {
        let Place {
            start,
            end,
            line,
            form,
        } = (*self.cells.get(column)?)?;
        let text = std::str::from_utf8(&self.text[start..end])
            .expect("a reader checks each cell that it places");
        Some(Cell { text, line, form })
    }
}

/// Reads every row of a table. Problems are added for what cannot be read; returns the number of rows, or the failure
/// of the bytes' source.
pub fn read(
    mut text: impl BufRead,
    columns: Columns,
    problems: &mut Problems,
    each: impl FnMut(u64, &Row, &mut Problems),
) -> io::Result<u64> {
    let first = text.fill_buf()?;
    if let Some(why) = encoding::foreign(first) {
        problems.refuse_line(1, why);
        return Ok(0);
    }
    let before = problems.count();
    let (number, line) = first_line(first);
    let rows = match line.first() {
        Some(b'{') => json_lines::read(text, columns, problems, each)?,
        Some(b'[') => {
            problems.refuse_line(number, JSON_ARRAY);
            return Ok(0);
        }
        _ => csv::read(text, columns, problems, each)?,
    };
    if rows == 0 && !columns.may_be_empty && problems.count() == before {
        problems.refuse_line(1, "the file has no rows");
    }
    Ok(rows)
}

/// The first line that is not empty, with its number: the form and the separator are recognised in it.
fn first_line(text: &[u8]) -> (u64, &[u8]) {
    let begun = text.trim_ascii_start();
    let (skipped, _) = text.split_at(text.len() - begun.len());
    let number = 1 + skipped.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let line = begun.split(|&byte| byte == b'\n').next();
    (number, line.unwrap_or_default())
}

#[cfg(test)]
mod tests;

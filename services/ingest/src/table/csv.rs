//! CSV: commas or semicolons, quotes around fields that hold separators or line ends (RFC 4180).

mod records;

use std::io::{self, BufRead};

use crate::encoding::not_utf8;
use crate::problem::Problems;
use crate::table::csv::records::{Next, Records};
use crate::table::{Columns, Form, Place, Row, first_line};

pub(super) fn read(
    mut text: impl BufRead,
    columns: Columns,
    problems: &mut Problems,
    mut each: impl FnMut(u64, &Row, &mut Problems),
) -> io::Result<u64> {
    let (number, line) = first_line(text.fill_buf()?);
    let delimiter = match sniff(line) {
        Ok(delimiter) => delimiter,
        Err(why) => {
            problems.refuse_line(number, why);
            return Ok(0);
        }
    };
    let form = if delimiter == b';' {
        Form::FrenchCsv
    } else {
        Form::Csv
    };
    let mut records = Records::new(text, delimiter);
    match records.next()? {
        Next::Record => {}
        Next::End => {
            problems.refuse_line(1, "the file is empty");
            return Ok(0);
        }
        Next::Unreadable(line, why) => {
            problems.refuse_line(line, why);
            return Ok(0);
        }
    }
    let Some(header) = header(&records, columns, problems) else {
        return Ok(0);
    };
    let (mut row, mut rows) = (Row::default(), 0);
    loop {
        match records.next()? {
            Next::End => return Ok(rows),
            // The beginning of the next record cannot be known.
            Next::Unreadable(line, why) => {
                problems.refuse_line(line, why);
                return Ok(rows);
            }
            Next::Record => rows += 1,
        }
        if records.len() != header.len() {
            let why = format!(
                "fields in this row: {}, in the header: {}",
                records.len(),
                header.len()
            );
            problems.refuse_line(records.line(), &why);
        } else if place(&records, &header, columns, form, &mut row, problems) {
            each(records.line(), &row, problems);
        }
    }
}

const SEP_LINE: &str = "the line is a spreadsheet's sep= and no header: remove it";
const TABS: &str = "the columns are separated by tabs: export the file as CSV UTF-8, with , or ;";

/// The separator that is more frequent in the first line, outside quotes; or the problem of a line that is no header.
fn sniff(line: &[u8]) -> Result<u8, &'static str> {
    let unquoted = line.strip_prefix(b"\"").unwrap_or(line);
    if unquoted
        .get(..4)
        .is_some_and(|begin| begin.eq_ignore_ascii_case(b"sep="))
    {
        return Err(SEP_LINE);
    }
    let (mut commas, mut semicolons, mut tabs, mut quoted) = (0, 0, 0, false);
    for byte in line {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => commas += 1,
            b';' if !quoted => semicolons += 1,
            b'\t' if !quoted => tabs += 1,
            _ => {}
        }
    }
    if tabs > commas.max(semicolons) {
        return Err(TABS);
    }
    Ok(if semicolons > commas { b';' } else { b',' })
}

/// The place in [`Columns::all`] of each field, or `None` after all problems of the header were added.
fn header<R: BufRead>(
    records: &Records<R>,
    columns: Columns,
    problems: &mut Problems,
) -> Option<Vec<usize>> {
    let before = problems.count();
    let mut places = Vec::new();
    for (field, line) in records.fields() {
        let name = String::from_utf8_lossy(field);
        match columns.place(&name) {
            None => problems.refuse_line(line, &columns.unknown(&name)),
            Some(place) if places.contains(&place) => {
                problems.refuse_line(line, &format!("the column {name} is there twice"));
            }
            Some(place) => places.push(place),
        }
    }
    for (place, name) in columns.required.iter().enumerate() {
        if !places.contains(&place) {
            problems.refuse_line(
                records.line(),
                &format!("the column {name} is missing: {}", columns.describe()),
            );
        }
    }
    (problems.count() == before).then_some(places)
}

/// Moves a record's fields into the row; `false` after a field that is not UTF-8.
fn place<R: BufRead>(
    records: &Records<R>,
    header: &[usize],
    columns: Columns,
    form: Form,
    row: &mut Row,
    problems: &mut Problems,
) -> bool {
    row.text.clear();
    row.text.extend_from_slice(records.bytes());
    row.cells.clear();
    row.cells.resize(columns.all().count(), None);
    let (mut readable, mut start) = (true, 0);
    for ((field, line), &column) in records.fields().zip(header) {
        let end = start + field.len();
        if let Err(error) = std::str::from_utf8(field) {
            let name = columns.all().nth(column).unwrap_or_default();
            problems.refuse(line, name, &not_utf8(field, error));
            readable = false;
        }
        // A spreadsheet leaves a cell without a value empty.
        let optional = column >= columns.required.len();
        row.cells[column] = (!(optional && field.is_empty())).then_some(Place {
            start,
            end,
            line,
            form,
        });
        start = end;
    }
    readable
}

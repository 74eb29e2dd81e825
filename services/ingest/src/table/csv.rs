//! CSV: commas or semicolons, quotes around fields that hold separators or line ends (RFC 4180).

use std::io::{self, BufRead};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use crate::problem::Problems;
use crate::table::{Columns, Form, MAX_ROW_BYTES, Place, Row, not_utf8};

/// More columns than any dataset has, and far fewer than a file that is no table may seem to have.
const MAX_FIELDS: usize = 256;

pub(super) fn read(
    mut text: impl BufRead,
    columns: Columns,
    problems: &mut Problems,
    mut each: impl FnMut(u64, &Row, &mut Problems),
) -> io::Result<u64> {
    let delimiter = sniff(text.fill_buf()?);
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
        Next::Unreadable(why) => {
            problems.refuse_line(records.line, why);
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
            Next::Unreadable(why) => {
                problems.refuse_line(records.line, why);
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
            problems.refuse_line(records.line, &why);
        } else if place(&records, &header, columns, form, &mut row, problems) {
            each(records.line, &row, problems);
        }
    }
}

/// The separator that the first line has more of, outside quotes.
fn sniff(first: &[u8]) -> u8 {
    let line = first
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    let (mut commas, mut semicolons, mut quoted) = (0, 0, false);
    for byte in line {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => commas += 1,
            b';' if !quoted => semicolons += 1,
            _ => {}
        }
    }
    if semicolons > commas { b';' } else { b',' }
}

/// The place in [`Columns::all`] of each field, or `None` after everything that is wrong was said.
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
                records.line,
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
        // A spreadsheet leaves a cell empty that has no value.
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

/// What comes next in a file.
enum Next {
    Record,
    End,
    Unreadable(&'static str),
}

/// The records of a file, one at a time in the same buffers, with their physical lines.
struct Records<R> {
    text: R,
    reader: Reader,
    buffer: Vec<u8>,
    ends: Vec<usize>,
    fields: usize,
    /// The physical line on which the record begins, from 1.
    line: u64,
}

impl<R: BufRead> Records<R> {
    fn new(text: R, delimiter: u8) -> Self {
        // Only '\n' ends a record, so that the lines that the reader counts are those of the file;
        // the '\r' before it is cut off afterwards.
        let reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .terminator(Terminator::Any(b'\n'))
            .build();
        Self {
            text,
            reader,
            buffer: vec![0; 4096],
            ends: vec![0; MAX_FIELDS],
            fields: 0,
            line: 1,
        }
    }

    fn next(&mut self) -> io::Result<Next> {
        let (mut written, mut fields, mut begun, mut ended) = (0, 0, false, false);
        // The byte before the record's last one, to tell "\r\n" from a quoted field that ends with '\r'.
        let (mut before_last, mut last) = (0, 0);
        loop {
            let chunk = self.text.fill_buf()?;
            // A last line without a line end gets one; a quote that stays open swallows it.
            let input = match (chunk.is_empty(), ended) {
                (false, _) => chunk,
                (true, false) => b"\n",
                (true, true) if begun => {
                    return Ok(self.unreadable(written, "a quote is opened and never closed"));
                }
                (true, true) => return Ok(Next::End),
            };
            let at_end = chunk.is_empty();
            let (result, read, wrote, ends) = self.reader.read_record(
                input,
                &mut self.buffer[written..],
                &mut self.ends[fields..],
            );
            begun = begun
                || input[..read]
                    .iter()
                    .any(|byte| !matches!(byte, b'\r' | b'\n'));
            match &input[..read] {
                [.., one, two] => (before_last, last) = (*one, *two),
                [one] => (before_last, last) = (last, *one),
                [] => {}
            }
            if at_end {
                ended = read > 0;
            } else {
                self.text.consume(read);
            }
            (written, fields) = (written + wrote, fields + ends);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.buffer.len() >= MAX_ROW_BYTES => {
                    return Ok(self.unreadable(
                        written,
                        "the row is longer than 1 MiB: is a quote not closed?",
                    ));
                }
                ReadRecordResult::OutputFull => self.buffer.resize(self.buffer.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => {
                    return Ok(self.unreadable(written, "the row has more than 256 fields"));
                }
                ReadRecordResult::End => return Ok(Next::End),
                ReadRecordResult::Record => {
                    self.fields = fields;
                    if before_last == b'\r' {
                        self.cut_carriage_return();
                    }
                    let own_end = u64::from(last == b'\n');
                    self.line = self.reader.line() - own_end - line_ends(self.bytes());
                    // A line with nothing but '\r' is as empty as one with nothing.
                    if !(fields == 1 && self.bytes().is_empty() && !begun) {
                        return Ok(Next::Record);
                    }
                    (written, fields) = (0, 0);
                }
            }
        }
    }

    /// A record that does not end begins where its first byte is.
    fn unreadable(&mut self, written: usize, why: &'static str) -> Next {
        self.line = self.reader.line() - line_ends(&self.buffer[..written]);
        Next::Unreadable(why)
    }

    fn cut_carriage_return(&mut self) {
        let end = self.ends[..self.fields].last_mut();
        if let Some(end) = end
            && *end > 0
            && self.buffer[*end - 1] == b'\r'
        {
            *end -= 1;
        }
    }

    fn len(&self) -> usize {
        self.fields
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.ends[..self.fields].last().copied().unwrap_or(0)]
    }

    /// Each field with the physical line on which it begins.
    fn fields(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let (mut start, mut line) = (0, self.line);
        self.ends[..self.fields].iter().map(move |&end| {
            let field = (&self.buffer[start..end], line);
            line += line_ends(field.0);
            start = end;
            field
        })
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

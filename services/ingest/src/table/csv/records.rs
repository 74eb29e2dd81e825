//! The records of a CSV file, strictly by RFC 4180.
//!
//! A lenient reader takes a stray quote for the beginning of a quoted field and may merge two rows into one that looks
//! right. So a quote is valid only around a whole field, or doubled inside one.

use std::io::{self, BufRead};

use crate::table::MAX_ROW_BYTES;

/// Largest number of fields: more than any dataset has, and far fewer than a file that is no table may seem to have.
const MAX_FIELDS: usize = 256;

const NOT_CLOSED: &str = "a quote is opened and never closed";
const TOO_LONG: &str = "the row is longer than 1 MiB: is a quote not closed?";
const TOO_MANY: &str = "the row has more than 256 fields";
const AFTER_QUOTE: &str = "text follows a closing quote: double the quotes inside a quoted field";
const STRAY_QUOTE: &str =
    "a quote stands inside a field without quotes: quote the whole field and double that quote";
const STRAY_RETURN: &str = "a carriage return is not followed by a line feed";

/// Next part of a file.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// A record; [`Records`] has its fields.
    Record,
    /// The end of the file.
    End,
    /// Something that is no record: the physical line and the reason. Nothing after it can be read.
    Unreadable(u64, &'static str),
}

/// State of the reader within a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a field's first byte.
    FieldStart,
    /// In a field without quotes.
    Plain,
    /// Between a field's quotes.
    Quoted,
    /// After a quote between a field's quotes: the closing one, or the first of two.
    QuoteSeen,
    /// After a carriage return that must be a line end's.
    Return,
}

/// Reads one record after the other into the same buffers.
pub(super) struct Records<R> {
    text: R,
    delimiter: u8,
    /// The fields of the record, without quotes and separators.
    buffer: Vec<u8>,
    /// End in `buffer` of each field.
    ends: Vec<usize>,
    /// The physical line on which the record begins.
    line: u64,
    /// The physical line that is being read.
    current_line: u64,
}

impl<R: BufRead> Records<R> {
    /// A reader before its first record.
    pub(super) fn new(text: R, delimiter: u8) -> Self {
        Self {
            text,
            delimiter,
            buffer: Vec::new(),
            ends: Vec::new(),
            line: 1,
            current_line: 1,
        }
    }

    /// Reads the next record; empty lines are skipped.
    pub(super) fn next(&mut self) -> io::Result<Next> {
        self.begin();
        let (mut state, mut opened, mut begun) = (State::FieldStart, 0, false);
        loop {
            let chunk = self.text.fill_buf()?;
            if chunk.is_empty() {
                return Ok(self.at_end(state, opened, begun));
            }
            // A run of ordinary bytes, and the special one after it.
            let delimiter = self.delimiter;
            let run = match state {
                State::Quoted => chunk.iter().position(|&byte| byte == b'"'),
                State::FieldStart | State::Plain => chunk
                    .iter()
                    .position(|&byte| byte == delimiter || b"\"\r\n".contains(&byte)),
                State::QuoteSeen | State::Return => Some(0),
            };
            let length = run.unwrap_or(chunk.len());
            if self.buffer.len() + length > MAX_ROW_BYTES {
                let line = if state == State::Quoted {
                    opened
                } else {
                    self.line
                };
                return Ok(Next::Unreadable(line, TOO_LONG));
            }
            self.buffer.extend_from_slice(&chunk[..length]);
            if state == State::Quoted {
                self.current_line += line_ends(&chunk[..length]);
            } else if length > 0 {
                state = State::Plain;
            }
            let special = chunk.get(length).copied();
            begun = begun || length > 0 || !matches!(special, Some(b'\r' | b'\n'));
            let consumed = length + usize::from(special.is_some());
            self.text.consume(consumed);
            let Some(byte) = special else { continue };
            match (state, byte) {
                (State::FieldStart, b'"') => (state, opened) = (State::Quoted, self.current_line),
                (State::Quoted, _) => state = State::QuoteSeen,
                (State::QuoteSeen, b'"') => {
                    self.buffer.push(b'"');
                    state = State::Quoted;
                }
                (State::Plain, b'"') => {
                    return Ok(Next::Unreadable(self.current_line, STRAY_QUOTE));
                }
                (State::FieldStart | State::Plain | State::QuoteSeen, b'\r') => {
                    state = State::Return;
                }
                (_, b'\n') => {
                    self.current_line += 1;
                    if begun {
                        return Ok(self.record());
                    }
                    self.begin();
                    state = State::FieldStart;
                }
                (State::Return, _) => {
                    return Ok(Next::Unreadable(self.current_line, STRAY_RETURN));
                }
                (_, byte) if byte == delimiter => {
                    self.ends.push(self.buffer.len());
                    if self.ends.len() >= MAX_FIELDS {
                        return Ok(Next::Unreadable(self.line, TOO_MANY));
                    }
                    state = State::FieldStart;
                }
                _ => return Ok(Next::Unreadable(self.current_line, AFTER_QUOTE)),
            }
        }
    }

    fn begin(&mut self) {
        self.buffer.clear();
        self.ends.clear();
        self.line = self.current_line;
    }

    fn record(&mut self) -> Next {
        self.ends.push(self.buffer.len());
        Next::Record
    }

    /// Ends the file; the last line may lack its line end.
    fn at_end(&mut self, state: State, opened: u64, begun: bool) -> Next {
        match state {
            State::Quoted => Next::Unreadable(opened, NOT_CLOSED),
            _ if begun => self.record(),
            _ => Next::End,
        }
    }
}

impl<R> Records<R> {
    /// The physical line on which the record begins.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Number of fields of the record.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// All fields, one after the other.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Each field with the physical line on which it begins.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let (mut start, mut line) = (0, self.line);
        self.ends.iter().map(move |&end| {
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

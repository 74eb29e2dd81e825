//! A cell's text as the value that its column means, or what is wrong with it.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use water_domain::{Departement, Number, Timestamp, departement};

use crate::problem::Problems;
use crate::shown::quoted;
use crate::table::{Cell, Form, Row};

/// Reads the cells of one row and notes each that is refused, so that a row tells all its problems.
pub struct Cells<'a, 'p> {
    row: &'a Row,
    line: u64,
    names: &'p [&'static str],
    null_words: NullWords,
    problems: &'p mut Problems,
}

/// Whether words that stand for "no value" are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NullWords {
    /// `NULL`, `None`, `#N/A` and the like are no values.
    Refused,
    /// They are text: there are companies named None.
    Accepted,
}

impl NullWords {
    /// What databases, programming languages and spreadsheets write where they have no value.
    const ALL: [&str; 14] = [
        "null",
        "undefined",
        "nan",
        "none",
        "nil",
        "na",
        "n/a",
        "-9999",
        "#n/a",
        "#ref!",
        "#value!",
        "#name?",
        "#div/0!",
        "#num!",
    ];

    fn refuse(self, text: &str) -> bool {
        let text = text.trim();
        self == Self::Refused && Self::ALL.iter().any(|word| word.eq_ignore_ascii_case(text))
    }
}

impl<'a, 'p> Cells<'a, 'p> {
    /// The cells of the row that begins on `line`; `names` are those of all columns.
    pub fn new(
        line: u64,
        row: &'a Row,
        names: &'p [&'static str],
        problems: &'p mut Problems,
    ) -> Self {
        Self {
            row,
            line,
            names,
            null_words: NullWords::Refused,
            problems,
        }
    }

    /// A column's value; `None` after it was refused.
    pub fn required<T>(
        &mut self,
        column: usize,
        read: impl FnOnce(Cell<'a>) -> Result<T, String>,
    ) -> Option<T> {
        match self.row.cell(column) {
            Some(cell) => self.noted(column, cell, read),
            None => {
                self.problems
                    .refuse(self.line, self.names[column], "there is no value");
                None
            }
        }
    }

    /// A column's text, which may be a word that stands for "no value" if `null_words` says so.
    pub fn required_text<T>(
        &mut self,
        column: usize,
        null_words: NullWords,
        read: impl FnOnce(Cell<'a>) -> Result<T, String>,
    ) -> Option<T> {
        self.null_words = null_words;
        let value = self.required(column, read);
        self.null_words = NullWords::Refused;
        value
    }

    /// A column's value, if it is given; `None` after it was refused.
    pub fn optional<T>(
        &mut self,
        column: usize,
        read: impl FnOnce(Cell<'a>) -> Result<T, String>,
    ) -> Option<Option<T>> {
        match self.row.cell(column) {
            Some(cell) => self.noted(column, cell, read).map(Some),
            None => Some(None),
        }
    }

    /// Compares a département's name with the official one: another name catches shifted rows.
    pub fn check_name(&mut self, column: usize, departement: &Departement) {
        if let Some(cell) = self.row.cell(column)
            && cell.text.trim().to_lowercase() != departement.name.to_lowercase()
        {
            let why = format!(
                "{} is not the name of {} ({})",
                quoted(cell.text),
                departement.code,
                departement.name
            );
            self.problems.warn(cell.line, self.names[column], &why);
        }
    }

    /// Notes whether the row says that it is invented.
    pub fn note_synthetic(&mut self, column: usize) {
        if self.optional(column, flag) == Some(Some(true)) {
            self.problems.note_synthetic();
        }
    }

    fn noted<T>(
        &mut self,
        column: usize,
        cell: Cell<'a>,
        read: impl FnOnce(Cell<'a>) -> Result<T, String>,
    ) -> Option<T> {
        let value = match cell.text {
            "" => Err("there is no value".to_owned()),
            word if self.null_words.refuse(word) => Err(format!("{word} is no value")),
            _ => read(cell),
        };
        value
            .map_err(|why| self.problems.refuse(cell.line, self.names[column], &why))
            .ok()
    }
}

fn flag(cell: Cell<'_>) -> Result<bool, String> {
    text(cell)?
        .parse()
        .map_err(|_| format!("{}: write true or false, as text", quoted(cell.text)))
}

/// A finite number, where the range is the dataset's own business.
pub fn number(cell: Cell<'_>) -> Result<Number, String> {
    let comma = cell.form == Form::FrenchCsv && cell.text.contains(',');
    let decimal = if comma {
        &cell.text.replacen(',', ".", 1)
    } else {
        cell.text
    };
    let form = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'e' | b'E');
    let number: Option<f64> = match cell.form {
        Form::JsonText => {
            return Err(format!(
                "{} is text: write a number without quotes",
                quoted(cell.text)
            ));
        }
        _ if decimal.bytes().all(form) => decimal.parse().ok(),
        _ => None,
    };
    match number.map(Number::try_from) {
        Some(Ok(number)) if number.get() == NO_DATA => Err("-9999 stands for no value".to_owned()),
        Some(Ok(number)) => Ok(number),
        _ if cell.form == Form::Csv && cell.text.contains(',') => Err(format!(
            "{} is no number: a decimal comma is read only in files separated by ;",
            quoted(cell.text)
        )),
        _ => Err(format!("{} is no number", quoted(cell.text))),
    }
}

/// What raster data has where it has nothing.
const NO_DATA: f64 = -9999.0;

/// A number within bounds.
pub fn number_in(bounds: RangeInclusive<u8>) -> impl Fn(Cell<'_>) -> Result<Number, String> {
    move |cell| {
        let number = number(cell)?;
        let (low, high) = (*bounds.start(), *bounds.end());
        match (f64::from(low)..=f64::from(high)).contains(&number.get()) {
            true => Ok(number),
            false => Err(format!("{} is outside {low}..{high}", cell.text)),
        }
    }
}

/// A département's code.
pub fn departement(cell: Cell<'_>) -> Result<&'static Departement, String> {
    departement::parse(text(cell)?).map_err(|why| format!("{}: {why}", quoted(cell.text)))
}

/// Text that one of the domain's rules accepts.
pub fn parsed<T: FromStr<Err: Display>>(cell: Cell<'_>) -> Result<T, String> {
    text(cell)?
        .parse()
        .map_err(|why| format!("{}: {why}", quoted(cell.text)))
}

/// A moment from the year 2000 to a day after `now`: anything else is a wrong clock or a wrong unit.
pub fn moment(now: Timestamp) -> impl Fn(Cell<'_>) -> Result<Timestamp, String> {
    move |cell| {
        let moment =
            Timestamp::parse(text(cell)?).map_err(|why| format!("{}: {why}", quoted(cell.text)))?;
        plausible(moment, now)?;
        Ok(moment)
    }
}

/// Refuses moments before 2000 and more than a day ahead.
pub fn plausible(moment: Timestamp, now: Timestamp) -> Result<(), String> {
    /// 2000-01-01T00:00:00Z.
    const YEAR_2000: i64 = 946_684_800_000;
    const DAY: i64 = 86_400_000;
    match moment.as_millis() {
        early if early < YEAR_2000 => Err(format!("{moment} is before the year 2000")),
        late if late > now.as_millis() + DAY => Err(format!("{moment} is more than a day ahead")),
        _ => Ok(()),
    }
}

/// Text for people: on one line, not blank and not too long.
pub fn text_up_to(max: usize) -> impl Fn(Cell<'_>) -> Result<&str, String> {
    move |cell| {
        let text = text(cell)?;
        if text.chars().count() > max {
            return Err(format!("it is longer than {max} characters"));
        }
        if text.contains(['\n', '\r']) {
            return Err("it has a line end: is a quote not closed?".to_owned());
        }
        if let Some(control) = text.chars().find(|character| character.is_control()) {
            let code = u32::from(control);
            return Err(format!("it has the control character U+{code:04X}"));
        }
        if text.trim().is_empty() {
            return Err("it is blank".to_owned());
        }
        Ok(text)
    }
}

/// An identifier of another system: such text, and no white space around it, which nobody sees and
/// which would make a second record.
pub fn id_up_to(max: usize) -> impl Fn(Cell<'_>) -> Result<&str, String> {
    move |cell| match text_up_to(max)(cell)? {
        id if id.trim() == id => Ok(id),
        _ => Err("it begins or ends with white space".to_owned()),
    }
}

/// The text itself; in JSON a number is not taken for text, its digits may have been changed.
fn text(cell: Cell<'_>) -> Result<&str, String> {
    match cell.form {
        Form::JsonNumber => Err(format!(
            "{} is a number: write it as text, in quotes",
            quoted(cell.text)
        )),
        _ => Ok(cell.text),
    }
}

//! A cell's text as the value that its column means, or what is wrong with it.

mod number;

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
use water_domain::{Departement, Timestamp, departement};

use crate::encoding;
use crate::problem::Problems;
use crate::shown::quoted;
use crate::table::{Cell, Form, Row};

pub use number::Numbers;

/// Reads the cells of one row and notes each that is refused, so that a row tells all its problems.
pub struct Cells<'a, 'p> {
    row: &'a Row,
    line: u64,
    names: &'p [&'static str],
    null_words: NullWords,
    problems: &'p mut Problems,
}

/// Treatment of words that stand for "no value".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NullWords {
    /// `NULL`, `None`, `#N/A` and the like are no values.
    Refused,
    /// Words like any other: there are companies named None.
    Accepted,
}

impl NullWords {
    /// Words that databases, programming languages and spreadsheets, English and French, write where
    /// they have no value; compared in any case. The README has the same.
    const ALL: [&str; 43] = [
        "null",
        "(null)",
        "<null>",
        "\\n",
        "undefined",
        "nan",
        "nat",
        "<na>",
        "none",
        "nil",
        "na",
        "n/a",
        "n.a.",
        "n/d",
        "n.d.",
        "-9999",
        "#n/a",
        "#n/d",
        "#ref!",
        "#value!",
        "#name?",
        "#div/0!",
        "#num!",
        "#null!",
        "#spill!",
        "#calc!",
        "#field!",
        "#error!",
        "#blocked!",
        "#connect!",
        "#unknown!",
        "#getting_data",
        "#busy!",
        "#python!",
        "#valeur!",
        "#nom?",
        "#nombre!",
        "#nul!",
        "#champ!",
        "#epars!",
        "#calcul!",
        "#propagation!",
        "#erreur!",
    ];

    /// Whether a text is such a word, and such words are refused.
    pub fn refuse(self, text: &str) -> bool {
        let text = text.trim();
        let is_listed = |text: &str| Self::ALL.iter().any(|word| word.eq_ignore_ascii_case(text));
        // French spreadsheets put a space before `!` and `?`, of whichever width.
        let spaced =
            || text.starts_with('#') && is_listed(&text.split_whitespace().collect::<String>());
        self == Self::Refused && (is_listed(text) || spaced() || is_error_number(text))
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
            && normalised(cell.text.trim()).to_lowercase() != departement.name.to_lowercase()
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

    /// Warns of a text that seems to have been read in a wrong encoding. It is accepted: what the source has lost already,
    /// no load brings back, and a name may really be written so.
    pub fn check_encoding(&mut self, column: usize) {
        if let Some(cell) = self.row.cell(column)
            && let Some(why) = encoding::misread(cell.text)
        {
            let why = format!("{} {why}", quoted(cell.text));
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

/// A département's code.
pub fn departement(cell: Cell<'_>) -> Result<&'static Departement, String> {
    departement::parse(text(cell)?).map_err(|why| format!("{}: {why}", code(cell.text)))
}

/// Text that one of the domain's rules accepts.
pub fn parsed<T: FromStr<Err: Display>>(cell: Cell<'_>) -> Result<T, String> {
    normalised(text(cell)?)
        .parse()
        .map_err(|why| format!("{}: {why}", quoted(cell.text)))
}

/// The text of a code that one of the domain's rules accepts as it is written: another spelling is another code.
pub fn checked<T: FromStr<Err: Display>>(cell: Cell<'_>) -> Result<&str, String> {
    let text = text(cell)?;
    let value = text.parse::<T>();
    value
        .map(|_| text)
        .map_err(|why| format!("{}: {why}", code(text)))
}

/// A refused code for a message, with the number of its first character that is not ASCII, which no code has: it may
/// look like one that codes have, or be invisible.
fn code(text: &str) -> String {
    let shown = quoted(text);
    match text.chars().find(|character| !character.is_ascii()) {
        Some(foreign) => format!("{shown}: it has the character U+{:04X}", u32::from(foreign)),
        None => shown,
    }
}

/// A moment from the year 2000 to a day after `now`: anything else is a wrong clock or a wrong unit. PostgreSQL's way to
/// write it, with a space and an offset of hours, is read too.
pub fn moment(now: Timestamp) -> impl Fn(Cell<'_>) -> Result<Timestamp, String> {
    move |cell| {
        let text = text(cell)?;
        let moment = Timestamp::parse(&rfc_3339(text))
            .map_err(|why| format!("{}: {why}", quoted(cell.text)))?;
        plausible(moment, now)?;
        Ok(moment)
    }
}

/// A time of PostgreSQL such as `2026-06-01 07:15:30+00`, as RFC 3339; any other text as it is.
fn rfc_3339(text: &str) -> Cow<'_, str> {
    let Some((date, time)) = text.split_once(' ').filter(|(date, _)| date.len() == 10) else {
        return text.into();
    };
    let is_offset_of_hours = |tail: &str| {
        tail.starts_with(['+', '-']) && tail[1..].bytes().all(|byte| byte.is_ascii_digit())
    };
    let tail = time.len().checked_sub(3).and_then(|at| time.get(at..));
    let minutes = if tail.is_some_and(is_offset_of_hours) {
        ":00"
    } else {
        ""
    };
    format!("{date}T{time}{minutes}").into()
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

/// Text in the normal form C, in which one text has one spelling.
pub fn normalised(text: &str) -> Cow<'_, str> {
    if is_nfc_quick(text.chars()) == IsNormalized::Yes {
        text.into()
    } else {
        text.nfc().collect::<String>().into()
    }
}

/// Text for people: in the normal form C, on one line, not blank, not too long, and all of it visible.
pub fn text_up_to(max: usize) -> impl Fn(Cell<'_>) -> Result<Cow<'_, str>, String> {
    move |cell| {
        let text = normalised(text(cell)?);
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
        if let Some(invisible) = text.chars().find(|character| is_invisible(*character)) {
            let code = u32::from(invisible);
            return Err(format!(
                "it has the invisible character U+{code:04X}: remove it"
            ));
        }
        if text.trim().is_empty() {
            return Err("it is blank".to_owned());
        }
        Ok(text)
    }
}

/// Whether a character takes no room on paper: text with it looks like text without it.
fn is_invisible(character: char) -> bool {
    matches!(
        character.general_category(),
        GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    )
}

/// An identifier of another system: such text, and no white space around it, which nobody sees and
/// which would make a second record. Nor a number that a spreadsheet has rounded, or text that has lost a character:
/// both are the same for many records.
pub fn id_up_to(max: usize) -> impl Fn(Cell<'_>) -> Result<Cow<'_, str>, String> {
    move |cell| {
        let id = text_up_to(max)(cell)?;
        if id.trim() != id {
            return Err("it begins or ends with white space".to_owned());
        }
        if id.contains(char::REPLACEMENT_CHARACTER) {
            return Err(format!("{} {}", quoted(&id), encoding::LOST_CHARACTER));
        }
        if is_rounded(&id) {
            return Err(format!(
                "{id} is a number that a spreadsheet has rounded: export the column as text"
            ));
        }
        Ok(id)
    }
}

/// Whether it is what spreadsheets and programs show of a long number, such as `1,57713E+18`, `1.57713e18` or `1E+18`.
fn is_rounded(id: &str) -> bool {
    let Some((mantissa, exponent)) = id.split_once(['E', 'e']) else {
        return false;
    };
    let signed = exponent.strip_prefix('+');
    let is_number = match mantissa.split_once([',', '.']) {
        Some((whole, part)) => is_digits(whole) && is_digits(part),
        // `12E5` may be an id.
        None => signed.is_some() && is_digits(mantissa),
    };
    is_number && is_digits(signed.unwrap_or(exponent))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether it is an error of LibreOffice by its number, such as `Err:502`.
fn is_error_number(text: &str) -> bool {
    let number = text
        .get(4..)
        .filter(|number| number.len() == 3 && is_digits(number));
    number.is_some()
        && text
            .get(..4)
            .is_some_and(|word| word.eq_ignore_ascii_case("err:"))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_readme_lists_each_word_that_stands_for_no_value() {
        let (_, section) = include_str!("../README.md")
            .split_once("\n### No value\n")
            .unwrap();
        let rows = section
            .split("\n#")
            .next()
            .unwrap()
            .lines()
            .filter(|line| line.starts_with('|'));
        let told: BTreeSet<String> = rows
            .flat_map(|row| row.split('`').skip(1).step_by(2))
            .map(str::to_ascii_lowercase)
            .collect();
        assert_eq!(told, NullWords::ALL.map(str::to_owned).into());
    }

    #[test]
    fn a_time_of_postgresql_is_one_of_rfc_3339() {
        for (text, expected) in [
            ("2026-06-01 07:15:30+00", "2026-06-01T07:15:30+00:00"),
            ("2026-06-01 07:15:30.25-11", "2026-06-01T07:15:30.25-11:00"),
            ("2026-06-01 07:15:30+05:30", "2026-06-01T07:15:30+05:30"),
            ("2026-06-01 07:15:30Z", "2026-06-01T07:15:30Z"),
            // Without an offset it could mean either zone.
            ("2026-06-01 07:15:30", "2026-06-01T07:15:30"),
            ("2026-06-01T07:15:30+00", "2026-06-01T07:15:30+00"),
            ("1 é", "1 é"),
        ] {
            assert_eq!(rfc_3339(text), expected);
        }
    }

    #[test]
    fn a_rounded_number_is_no_id() {
        for id in [
            "1,57713E+18",
            "1.5E+9",
            "1.57713e+18",
            "1.57713E18",
            "1E+18",
        ] {
            assert!(is_rounded(id), "{id}");
        }
        for id in ["1E18", "12e5", "E+1", "A,1E+18", "1,5E+1a", "150"] {
            assert!(!is_rounded(id), "{id}");
        }
    }

    #[test]
    fn an_error_of_a_french_spreadsheet_is_refused_with_any_space_before_its_mark() {
        for word in [
            "#VALEUR!",
            "#DIV/0 !",
            "#DIV/0\u{a0}!",
            "#DIV/0\u{202f}!",
            "#VALEUR !",
            "#NOM ?",
            "#REF\u{a0}!",
            "Err:502",
            "\\N",
        ] {
            assert!(NullWords::Refused.refuse(word), "{word}");
        }
        for name in ["#1 Eaux", "Err: 502", "Err:50"] {
            assert!(!NullWords::Refused.refuse(name), "{name}");
        }
    }
}

//! Numbers of a file, which has one decimal sign.

use std::ops::RangeInclusive;

use water_domain::Number;

use crate::shown::quoted;
use crate::table::{Cell, Form};

/// Number that raster data has where there is no value.
const NO_DATA: f64 = -9999.0;

/// Reads the numbers of one file. With two decimal signs in a file, `1,234` is 1.234 or 1234.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The file's decimal sign and the first line that has it.
    sign: Option<(Sign, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sign {
    Comma,
    Point,
}

impl Numbers {
    /// A finite number, where the range is the dataset's own business.
    pub fn read(&mut self, cell: Cell<'_>) -> Result<Number, String> {
        let number = number(cell)?;
        let sign = match cell.text.bytes().find(|byte| b",.".contains(byte)) {
            Some(b',') => Sign::Comma,
            Some(_) => Sign::Point,
            None => return Ok(number),
        };
        match *self.sign.get_or_insert((sign, cell.line)) {
            (first, line) if first != sign => Err(format!(
                "{} has {} and line {line} has {}: write one of them in the whole file",
                quoted(cell.text),
                sign.name(),
                first.name()
            )),
            _ => Ok(number),
        }
    }

    /// A number within bounds.
    pub fn read_in(
        &mut self,
        bounds: RangeInclusive<u8>,
        cell: Cell<'_>,
    ) -> Result<Number, String> {
        let number = self.read(cell)?;
        let (low, high) = (*bounds.start(), *bounds.end());
        if (f64::from(low)..=f64::from(high)).contains(&number.get()) {
            Ok(number)
        } else {
            Err(format!("{} is outside {low}..{high}", cell.text))
        }
    }
}

impl Sign {
    fn name(self) -> &'static str {
        match self {
            Self::Comma => "a decimal comma",
            Self::Point => "a decimal point",
        }
    }
}

fn number(cell: Cell<'_>) -> Result<Number, String> {
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

//! Printed form of a number: the shortest form that reads back as the same number, never with an
//! exponent, and without `.0` where it is integral.

use std::fmt;

use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// A finite number of the API.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default, Deserialize)]
#[serde(try_from = "f64")]
pub struct Number(f64);

/// Infinity or not a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this is not a finite number")]
pub struct NotFinite;

impl Number {
    /// Returns the number for calculations.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Number {
    type Error = NotFinite;

    fn try_from(number: f64) -> Result<Self, NotFinite> {
        // Adding 0.0 turns -0.0 into 0.0, which prints without a sign.
        if number.is_finite() {
            Ok(Self(number + 0.0))
        } else {
            Err(NotFinite)
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Display of f64 is the shortest round-trip form without an exponent or a trailing `.0`.
        self.0.fmt(formatter)
    }
}

impl Serialize for Number {
    /// Writes it as it is printed: serde_json itself would write `3.0` and `1e-7`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string())
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_prints_as_briefly_as_it_can() {
        for (number, text) in [
            (3.0, "3"),
            (-0.0, "0"),
            (0.1, "0.1"),
            (3.25, "3.25"),
            (1e-7, "0.0000001"),
        ] {
            let number = Number::try_from(number).unwrap();
            assert_eq!(serde_json::to_string(&number).unwrap(), text);
            assert_eq!(number.to_string(), text);
        }
    }

    #[test]
    fn infinity_and_nan_are_no_numbers() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Number::try_from(bad), Err(NotFinite));
        }
    }
}

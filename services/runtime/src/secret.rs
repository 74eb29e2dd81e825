//! A value that can be used and cannot be printed.

use std::fmt;
use std::str::FromStr;

/// A password, key or URL with a password. Its `Debug` shows only that there is one.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value, for the one call that needs it.
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// Returns the value and gives it away.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl<T: FromStr> FromStr for Secret<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_usable_and_not_printable() {
        let url: Secret<String> = "redis://user:hunter2@redis:6379".parse().unwrap();
        assert_eq!(url.expose(), "redis://user:hunter2@redis:6379");
        assert_eq!(format!("{url:?}"), "Secret(…)");
    }
}

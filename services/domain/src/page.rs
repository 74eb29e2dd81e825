//! Part of a history that a client asks for (specification §4.3).

/// A page of a history.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Page {
    /// Items on the page: 1 to 100.
    pub limit: u8,
    /// Items before the page: 0 to 2^53 − 1.
    pub offset: u64,
}

/// A parameter that is no page; the message names the rule, never the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PageError {
    /// `limit` is not a whole number of at least 1.
    #[error(
        "limit must be a whole number from 1, written in digits; more than 100 is served as 100"
    )]
    Limit,
    /// `limit` of a bulk form is not a whole number of at least 1.
    #[error(
        "limit must be a whole number from 1, written in digits; more than 5000 is served as 5000"
    )]
    BulkLimit,
    /// `offset` is not a whole number that a JSON reader can hold.
    #[error("offset must be a whole number from 0 to 9007199254740991, written in digits")]
    Offset,
}

impl PageError {
    /// Returns the name of the parameter at fault.
    pub fn parameter(self) -> &'static str {
        match self {
            Self::Limit | Self::BulkLimit => "limit",
            Self::Offset => "offset",
        }
    }
}

impl Page {
    /// Items on a page unless asked otherwise (specification §8).
    pub const DEFAULT_LIMIT: u8 = 20;
    /// Most items on a page (specification §8).
    pub const MAX_LIMIT: u8 = 100;
    /// 2^53 − 1: beyond it a JSON reader that keeps numbers as doubles is off by one.
    pub const MAX_OFFSET: u64 = (1 << 53) - 1;

    /// Rows on a page of a bulk form, unless asked otherwise.
    pub const DEFAULT_BULK_LIMIT: u16 = 1000;
    /// Most rows on a page of a bulk form.
    pub const MAX_BULK_LIMIT: u16 = 5000;

    /// Reads the two parameters; a missing one takes its default.
    pub fn parse(limit: Option<&str>, offset: Option<&str>) -> Result<Self, PageError> {
        let limit = match limit {
            None => Self::DEFAULT_LIMIT,
            Some(text) => {
                let limit = positive(text).ok_or(PageError::Limit)?;
                limit.min(Self::MAX_LIMIT.into()) as u8
            }
        };
        let offset = match offset {
            None => 0,
            Some(text) => digits(text)
                .filter(|&n| n <= Self::MAX_OFFSET)
                .ok_or(PageError::Offset)?,
        };
        Ok(Self { limit, offset })
    }

    /// Reads `limit` where a bulk form is asked for: 1 to 5000 rows.
    pub fn bulk_limit(limit: Option<&str>) -> Result<u16, PageError> {
        let Some(text) = limit else {
            return Ok(Self::DEFAULT_BULK_LIMIT);
        };
        let limit = positive(text).ok_or(PageError::BulkLimit)?;
        Ok(limit.min(Self::MAX_BULK_LIMIT.into()) as u16)
    }
}

/// Reads a number of at least 1 in ASCII digits.
fn positive(text: &str) -> Option<u64> {
    digits(text).filter(|number| *number > 0)
}

/// Reads a number of ASCII digits only, of any length; one too large is the largest there is.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_20_items_from_the_first_unless_asked_otherwise() {
        assert_eq!(
            Page::parse(None, None),
            Ok(Page {
                limit: 20,
                offset: 0
            })
        );
        assert_eq!(
            Page::parse(Some("05"), Some("007")),
            Ok(Page {
                limit: 5,
                offset: 7
            })
        );
    }

    #[test]
    fn a_limit_above_100_is_100_however_long_it_is() {
        for limit in ["100", "101", "999999999999999999999999999999"] {
            assert_eq!(Page::parse(Some(limit), None).unwrap().limit, 100);
        }
    }

    #[test]
    fn a_bulk_page_has_1000_rows_unless_asked_otherwise_and_at_most_5000() {
        for (asked, limit) in [(None, 1000), (Some("1"), 1), (Some("5001"), 5000)] {
            assert_eq!(Page::bulk_limit(asked), Ok(limit));
        }
    }

    #[test]
    fn anything_but_digits_in_range_is_refused() {
        for bad in ["", "-1", "+5", " 5", "5.0", "1e2", "٣", "abc"] {
            assert_eq!(Page::parse(Some(bad), None), Err(PageError::Limit), "{bad}");
            assert_eq!(
                Page::parse(None, Some(bad)),
                Err(PageError::Offset),
                "{bad}"
            );
        }
        assert_eq!(Page::parse(Some("0"), None), Err(PageError::Limit));
        assert_eq!(Page::bulk_limit(Some("0")), Err(PageError::BulkLimit));
        assert_eq!(
            Page::parse(None, Some("9007199254740992")),
            Err(PageError::Offset)
        );
    }
}

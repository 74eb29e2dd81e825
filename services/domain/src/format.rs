//! The forms in which records are answered.

/// The form of an answer; without another one being asked for, JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Format {
    /// One JSON document.
    #[default]
    Json,
    /// RFC 4180: CRLF, a header line, cells as in JSON.
    Csv,
    /// One JSON object a line, ended by LF.
    NdJson,
}

impl Format {
    /// What the gate calls it towards a service; nothing for JSON.
    pub fn header_value(self) -> Option<&'static str> {
        match self {
            Self::Json => None,
            Self::Csv => Some("csv"),
            Self::NdJson => Some("ndjson"),
        }
    }

    /// The form that the gate calls so.
    pub fn from_header(text: &str) -> Option<Self> {
        [Self::Csv, Self::NdJson]
            .into_iter()
            .find(|format| format.header_value() == Some(text))
    }

    /// Its media type, with parameters (RFC 8259, RFC 7111).
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::NdJson => "application/x-ndjson",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_known_by_the_name_that_it_is_given() {
        for format in [Format::Csv, Format::NdJson] {
            assert_eq!(
                Format::from_header(format.header_value().unwrap()),
                Some(format)
            );
        }
        for text in ["", "json", "CSV", "csv "] {
            assert_eq!(Format::from_header(text), None, "{text}");
        }
    }
}

//! The forms in which records are answered.

/// The form of an answer; without another one being asked for, JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Format {
    /// JSON: a document.
    #[default]
    Json,
    /// CSV by RFC 4180: CRLF, a header line, cells as in JSON.
    Csv,
    /// NDJSON: an object a line, ended by LF.
    NdJson,
}

impl Format {
    /// Returns the name in the parameter `format`, and of the gate towards a service.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::NdJson => "ndjson",
        }
    }

    /// Returns the form of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Json, Self::Csv, Self::NdJson]
            .into_iter()
            .find(|format| format.name() == name)
    }

    /// Returns the media type, with parameters (RFC 8259, RFC 7111).
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
        for format in [Format::Json, Format::Csv, Format::NdJson] {
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
        for text in ["", "xml", "CSV", "csv "] {
            assert_eq!(Format::from_name(text), None, "{text}");
        }
    }
}

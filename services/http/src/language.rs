//! Language of an answer, chosen by `Accept-Language` (RFC 9110 §12.5.4).

use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

use crate::weights;

/// A language of problems and of the portal's own pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// The default.
    English,
    /// Only for clients that prefer it to English.
    French,
}

impl Language {
    /// Returns French if a range such as `fr` or `fr-CH` has a higher weight than English has, else English. `*` counts
    /// for English: a client that takes any language gets the default.
    pub fn preferred(headers: &HeaderMap) -> Self {
        let lines = || headers.get_all(ACCEPT_LANGUAGE);
        let weight =
            |language: Self| weights::greatest(lines(), |range| language.is_meant_by(range));
        let Some(french) = weight(Self::French) else {
            return Self::English;
        };
        let english = weight(Self::English).or_else(|| weights::first(lines(), "*"));
        if french > english.unwrap_or(0) {
            Self::French
        } else {
            Self::English
        }
    }

    /// Returns the language's tag (RFC 5646).
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::French => "fr",
        }
    }

    /// Whether a language range names this language, in any country.
    fn is_meant_by(self, range: &str) -> bool {
        let primary = range.split_once('-').map_or(range, |(primary, _)| primary);
        primary.eq_ignore_ascii_case(self.tag())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn preferred(lines: &[&'static [u8]]) -> Language {
        let value = |line: &&'static [u8]| HeaderValue::from_bytes(line).unwrap();
        let lines = lines.iter().map(|line| (ACCEPT_LANGUAGE, value(line)));
        Language::preferred(&HeaderMap::from_iter(lines))
    }

    #[test]
    fn french_is_answered_when_its_weight_is_higher_than_that_of_english() {
        for accepted in [
            "fr",
            "FR",
            "fr-FR,fr;q=0.9,en;q=0.8",
            "fr-CH, en;q=0.9",
            "fr-Latn-BE",
            "en-GB;q=0.3, de, fr;q=0.4",
            "de, fr;q=0.1",
            "fr, *;q=0.5",
            "en;q=0, fr;q=0.001",
            "fr;q=0.2, fr-FR ; q=0.9, en;q=0.5",
        ] {
            assert_eq!(
                preferred(&[accepted.as_bytes()]),
                Language::French,
                "{accepted}"
            );
        }
    }

    #[test]
    fn anything_else_is_answered_in_english() {
        assert_eq!(Language::preferred(&HeaderMap::new()), Language::English);
        for accepted in [
            "",
            "*",
            "en",
            "de-DE,de;q=0.9",
            "en,fr;q=0.9",
            "en-US,en;q=0.9,fr;q=0.8",
            "fr, en",
            "fr;q=0.5, *",
            "*, en;q=0.1",
            "fr;q=0",
            "fr;q=x",
            "fr q=1",
            "french",
            "frr",
            ";;,=-",
        ] {
            assert_eq!(
                preferred(&[accepted.as_bytes()]),
                Language::English,
                "{accepted}"
            );
        }
    }

    #[test]
    fn several_lines_are_one_list_and_an_unreadable_one_is_passed_over() {
        assert_eq!(preferred(&[b"en;q=0.5", b"fr"]), Language::French);
        assert_eq!(preferred(&[b"fr;q=0.5", b"de", b"en"]), Language::English);
        assert_eq!(preferred(&[b"\xff", b"fr"]), Language::French);
        assert_eq!(preferred(&[b"fr\xff"]), Language::English);
    }
}

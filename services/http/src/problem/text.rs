//! A text in both languages of problems, and the form of the table that all texts come from.

use std::borrow::Cow;

use crate::Language;

/// A text in English and in French. Only the table in `texts.rs` makes one.
#[derive(Clone, Debug)]
pub struct Text(Kind);

/// Source of a text. One pointer in either case keeps `Problem`, which is returned by value everywhere, small.
#[derive(Clone, Debug)]
enum Kind {
    /// Text without arguments, in the program itself.
    Fixed(&'static Pair<&'static str>),
    /// Text with arguments.
    Formatted(Box<Pair<Cow<'static, str>>>),
}

/// The same text in both languages.
#[derive(Clone, Debug)]
pub(super) struct Pair<T> {
    pub(super) english: T,
    pub(super) french: T,
}

impl Text {
    pub(super) const fn fixed(pair: &'static Pair<&'static str>) -> Self {
        Self(Kind::Fixed(pair))
    }

    pub(super) fn made(
        english: impl Into<Cow<'static, str>>,
        french: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (english, french) = (english.into(), french.into());
        Self(Kind::Formatted(Box::new(Pair { english, french })))
    }

    /// Returns the text in this language.
    pub fn in_language(&self, language: Language) -> &str {
        match (&self.0, language) {
            (Kind::Fixed(pair), Language::English) => pair.english,
            (Kind::Fixed(pair), Language::French) => pair.french,
            (Kind::Formatted(pair), Language::English) => &pair.english,
            (Kind::Formatted(pair), Language::French) => &pair.french,
        }
    }
}

/// Makes a function of each row, `name(arguments) = "English" "French";`. Texts with arguments name them in braces.
macro_rules! details {
    (@text [] $english:literal $french:literal) => {
        Text::fixed(&Pair { english: $english, french: $french })
    };
    (@text [$($argument:ident)+] $english:literal $french:literal) => {
        Text::made(format!($english), format!($french))
    };
    ($($name:ident($($argument:ident: $type:ty),*) = $english:literal $french:literal;)*) => {
        $(
            #[doc = concat!("Says: ", $english)]
            pub fn $name($($argument: $type),*) -> Text {
                details!(@text [$($argument)*] $english $french)
            }
        )*

        /// All rows, English and French.
        #[cfg(test)]
        pub(super) const DETAILS: &[(&str, &str)] = &[$(($english, $french),)*];
    };
}

/// Makes the function that returns the title of a code from rows `Code = "English" "French";`.
macro_rules! titles {
    ($($code:ident = $english:literal $french:literal;)*) => {
        /// Returns RFC 9457's `title` of a code: the same for every occurrence.
        pub(super) fn title(code: Code) -> Text {
            match code {
                $(Code::$code => Text::fixed(&Pair { english: $english, french: $french }),)*
            }
        }
    };
}

pub(super) use {details, titles};

//! JSON that every reader of lines takes for one line: bodies, the log, and what programs print.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::line_end::is_line_end;

/// Compact JSON with escapes for the line ends above U+007F: JSON itself has escapes for the others only.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // Nearly all texts, at the price of a look at each word of memory.
        if fragment.is_ascii() {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(is_line_end) {
            let (before, from) = rest.split_at(at);
            let mut characters = from.chars();
            let code = characters.next().map_or(0, u32::from);
            write!(writer, "{before}\\u{code:04x}")?;
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Returns a value as JSON.
pub fn to_vec(body: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut json = Vec::with_capacity(128);
    append(body, &mut json);
    json
}

/// Appends a value, or a line of many, as JSON.
pub fn append(body: &(impl Serialize + ?Sized), json: &mut Vec<u8>) {
    let mut serializer = Serializer::with_formatter(json, OneLine);
    body.serialize(&mut serializer)
        .expect("values are texts, numbers and records of them");
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;

    use super::*;
    use crate::line_end::LINE_ENDS;

    fn text(body: &(impl Serialize + ?Sized)) -> String {
        String::from_utf8(to_vec(body)).unwrap()
    }

    #[test]
    fn each_line_end_is_an_escape_in_texts_and_names() {
        let escapes = r"\n \u000b \f \r \u001c \u001d \u001e \u0085 \u2028 \u2029";
        for (character, escape) in LINE_ENDS.into_iter().zip(escapes.split(' ')) {
            let name = format!("é{character}");
            let value = format!("{character}a{character}{character}");
            let expected = format!(r#"{{"é{escape}":["{escape}a{escape}{escape}"]}}"#);
            assert_eq!(text(&json!({ name: [value] })), expected);
        }
    }

    #[test]
    fn other_json_is_that_of_serde_json() {
        let body = json!({
            "text": "L’Haÿ «1»\u{a0}\u{84}\u{86}\u{2027}\u{202a}\u{10ffff} \"\\\t\u{7f}",
            "others": [null, true, 1.5, -3, u64::MAX, [], {}],
        });
        assert_eq!(text(&body), body.to_string());
    }

    proptest! {
        #[test]
        fn a_text_is_on_one_line_and_read_back_as_it_was(
            characters in vec(prop_oneof![any::<char>(), select(&LINE_ENDS)], 0..20),
        ) {
            let body: String = characters.into_iter().collect();
            let json = text(&body);
            prop_assert!(!json.contains(is_line_end), "{json}");
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), body);
        }
    }
}

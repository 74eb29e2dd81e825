//! VigiEau, the national drought register: the JSON of its `GET /api/departements`.

use std::io::{self, Read};

use serde::Deserialize;
use serde_json::value::RawValue;
use water_domain::{Departement, Level, departement};

use crate::dataset::Given;
use crate::encoding;
use crate::problem::Problems;
use crate::shown::quoted;
use crate::source::Text;

/// A hundred times what the register answers.
const MAX_BYTES: u64 = 16 << 20;

/// One département of the register, as far as it is read here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    code: String,
    nom: Option<String>,
    /// `null` is "no restriction", which is not the same as a member that is missing.
    #[serde(default, deserialize_with = "given")]
    niveau_gravite_max: Option<Option<String>>,
}

fn given<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// Reads the level of each département, `None` where the register does not know it; they are good
/// if no problem was added.
pub fn read(
    text: Text,
    problems: &mut Problems,
) -> io::Result<Vec<(&'static Departement, Option<Level>)>> {
    let mut bytes = Vec::new();
    if text.take(MAX_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_BYTES {
        problems.refuse_line(1, "the file is longer than 16 MiB");
        return Ok(Vec::new());
    }
    if let Some(why) = encoding::foreign(&bytes) {
        problems.refuse_line(1, why);
        return Ok(Vec::new());
    }
    let json = match std::str::from_utf8(&bytes) {
        Ok(json) => json,
        Err(error) => {
            let before = bytes[..error.valid_up_to()].iter();
            let line = 1 + before.filter(|&&byte| byte == b'\n').count() as u64;
            problems.refuse_line(line, &encoding::not_utf8_json(&bytes, error));
            return Ok(Vec::new());
        }
    };
    let entries: Vec<&RawValue> = match serde_json::from_str(json) {
        Ok(entries) => entries,
        Err(error) => {
            let line = error.line().max(1) as u64;
            problems.refuse_line(
                line,
                &format!(
                    "this is no JSON array (at column {} of the line)",
                    error.column()
                ),
            );
            return Ok(Vec::new());
        }
    };
    if entries.is_empty() {
        problems.refuse_line(1, "the file has no départements");
    }
    let (mut levels, mut given) = (Vec::new(), Given::default());
    let (mut line, mut seen) = (1, 0);
    for entry in entries {
        // An entry is a part of the text: where it begins tells its line.
        let start = entry.get().as_ptr().addr() - json.as_ptr().addr();
        line += json[seen..start].matches('\n').count() as u64;
        seen = start;
        levels.extend(read_entry(entry, line, &mut given, problems));
    }
    Ok(levels)
}

fn read_entry(
    entry: &RawValue,
    line: u64,
    given: &mut Given,
    problems: &mut Problems,
) -> Option<(&'static Departement, Option<Level>)> {
    let Ok(entry) = serde_json::from_str::<Entry>(entry.get()) else {
        problems.refuse_line(
            line,
            "this is no département: code, nom and niveauGraviteMax must be text",
        );
        return None;
    };
    let departement = match departement::parse(&entry.code) {
        Ok(departement) => departement,
        Err(why) => {
            problems.refuse(line, "code", &format!("{}: {why}", quoted(&entry.code)));
            return None;
        }
    };
    if !given.once(departement, line, "code", problems) {
        return None;
    }
    if let Some(name) = entry
        .nom
        .filter(|name| name.to_lowercase() != departement.name.to_lowercase())
    {
        let why = format!(
            "{} is not the name of {} ({})",
            quoted(&name),
            departement.code,
            departement.name
        );
        problems.warn(line, "nom", &why);
    }
    let level = match entry.niveau_gravite_max {
        None => Err("the member is missing".to_owned()),
        Some(None) => Ok(Some(Level::Normal)),
        Some(Some(text)) if text == "unavailable" => Ok(None),
        Some(Some(text)) => text
            .parse()
            .map(Some)
            .map_err(|why| format!("{}: {why}", quoted(&text))),
    };
    match level {
        Ok(level) => Some((departement, level)),
        Err(why) => {
            problems.refuse(line, "niveauGraviteMax", &why);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn read_text(
        text: impl AsRef<[u8]> + Send + 'static,
    ) -> (Vec<(&'static str, Option<Level>)>, String) {
        let mut problems = Problems::of("vigieau.json");
        let levels = read(Box::new(Cursor::new(text)), &mut problems).unwrap();
        (
            levels
                .iter()
                .map(|(departement, level)| (departement.code, *level))
                .collect(),
            problems.text(),
        )
    }

    #[test]
    fn null_is_normal_and_unavailable_is_unknown() {
        let (levels, problems) = read_text(
            r#"[{"code":"01","nom":"Ain","region":"84","niveauGraviteMax":"alerte_renforcee"},
                {"code":"34","nom":"Hérault","niveauGraviteMax":null},
                {"code":"75","nom":"Paris","niveauGraviteMax":"unavailable"}]"#,
        );
        assert_eq!(problems, "");
        assert_eq!(
            levels,
            [
                ("01", Some(Level::AlerteRenforcee)),
                ("34", Some(Level::Normal)),
                ("75", None)
            ]
        );
    }

    #[test]
    fn every_entry_is_checked_with_its_line() {
        let (_, problems) = read_text(
            "[{\"code\":\"01\",\"nom\":\"Aisne\",\"niveauGraviteMax\":null},\n\
             {\"code\":\"1\",\"niveauGraviteMax\":\"crise\"},\n\n\
             {\"code\":\"98\",\"niveauGraviteMax\":\"crise\"},\n\
             {\"code\":\"34\",\"niveauGraviteMax\":\"rouge\"},\n\
             {\"code\":\"35\"},\n\
             {\"code\":36,\"niveauGraviteMax\":null}, 7]",
        );
        assert_eq!(
            problems,
            "vigieau.json:1: warning: nom: Aisne is not the name of 01 (Ain)\n\
             vigieau.json:2: code: 01 was given in line 1 already\n\
             vigieau.json:4: code: 98: there is no such département\n\
             vigieau.json:5: niveauGraviteMax: rouge: a level is one of normal, vigilance, alerte, \
             alerte_renforcee, crise\n\
             vigieau.json:6: niveauGraviteMax: the member is missing\n\
             vigieau.json:7: this is no département: code, nom and niveauGraviteMax must be text\n\
             vigieau.json:7: this is no département: code, nom and niveauGraviteMax must be text\n"
        );
    }

    #[test]
    fn a_departement_that_is_repeated_without_end_is_kept_once() {
        let entry = r#"{"code":"34","niveauGraviteMax":null}"#;
        let (levels, problems) = read_text(format!("[{}]", [entry; 10_000].join(",")));
        assert_eq!(levels.len(), 1);
        assert_eq!(problems.lines().count(), 51);
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for (text, problem) in [
            (
                "",
                "vigieau.json:1: this is no JSON array (at column 0 of the line)\n",
            ),
            (
                "{}",
                "vigieau.json:1: this is no JSON array (at column 0 of the line)\n",
            ),
            (
                "[\n{]",
                "vigieau.json:2: this is no JSON array (at column 2 of the line)\n",
            ),
            ("[]", "vigieau.json:1: the file has no départements\n"),
        ] {
            assert_eq!(read_text(text).1, problem);
        }
    }

    #[test]
    fn another_encoding_is_named_and_not_taken_for_damaged_gzip() {
        assert_eq!(
            read_text(b"[\n{\"code\":\"34\",\"nom\":\"H\xe9rault\"}]").1,
            "vigieau.json:2: byte 0xE9 is not UTF-8 (is it Windows-1252?): save the file as UTF-8\n"
        );
        assert_eq!(
            read_text(b"\xff\xfe[\0]\0").1,
            "vigieau.json:1: the file is UTF-16: save it as UTF-8\n"
        );
    }

    /// Bytes that reach deep into the reader more often than any bytes would.
    fn nearly_a_register() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(&b"{\"code\":\"34\",\"niveauGraviteMax\":null}"[..]),
            2 => Just(&b","[..]),
            1 => Just(&b"\xe9"[..]),
            1 => Just(&b"\xff\xfe"[..]),
            1 => Just(&b"\""[..]),
            1 => Just(&b"]"[..]),
        ];
        proptest::collection::vec(piece, 0..6)
            .prop_map(|pieces| [&b"["[..], &pieces.concat(), b"]"].concat())
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop_oneof![nearly_a_register(), any::<Vec<u8>>()]) {
            let mut problems = Problems::of("vigieau.json");
            let levels = read(Box::new(Cursor::new(bytes)), &mut problems).unwrap();
            prop_assert!(!levels.is_empty() || problems.count() > 0);
        }
    }
}

//! VigiEau, the national drought register: the JSON of its `GET /api/departements`.

use std::io::{self, Read};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use water_domain::departement::DepartementError;
use water_domain::{Departement, Level, departement};

use crate::cell::normalised;
use crate::encoding;
use crate::problem::Problems;
use crate::shown::quoted;
use crate::source::Text;

/// A hundred times the size of the register's answer.
const MAX_BYTES: u64 = 16 << 20;

/// Largest percentage of unreadable entries in an answer: more of them are no odd entries, but another format.
const MAX_UNREADABLE: usize = 10;

const MAX: &str = "niveauGraviteMax";

/// Members of a département of the register that are read here. A missing one is `None`, which is not the same as
/// `null`, "no restriction".
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    code: String,
    #[serde(default)]
    nom: Value,
    #[serde(default, deserialize_with = "given")]
    niveau_gravite_max: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    niveau_gravite_sup_max: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    niveau_gravite_sou_max: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    niveau_gravite_aep_max: Option<Value>,
}

fn given<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// Name of a member of an entry, and its problem.
type Wrong = (&'static str, String);

/// The register's answer. One unreadable entry does not withhold the others.
#[derive(Default)]
pub struct Answer {
    /// The level of each département, `None` where it is not known.
    pub levels: Vec<(&'static Departement, Option<Level>)>,
    /// Départements whose level is not known because their entry cannot be read.
    pub unreadable: Vec<String>,
    /// Codes that are no département's; their entries are skipped.
    pub skipped: Vec<String>,
    /// Number of entries without a code that can be read: each may be that of a département that is left out.
    pub unnamed: usize,
    /// Line of each level's entry.
    lines: Vec<u64>,
}

/// Reads the level of each département; they are good if no problem was added.
pub fn read(text: Text, problems: &mut Problems) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    if text.take(MAX_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_BYTES {
        problems.refuse_line(1, "the file is longer than 16 MiB");
        return Ok(Answer::default());
    }
    if let Some(why) = encoding::foreign(&bytes) {
        problems.refuse_line(1, why);
        return Ok(Answer::default());
    }
    let json = match std::str::from_utf8(&bytes) {
        Ok(json) => json,
        Err(error) => {
            let before = bytes[..error.valid_up_to()].iter();
            let line = 1 + before.filter(|&&byte| byte == b'\n').count() as u64;
            problems.refuse_line(line, &encoding::not_utf8_json(&bytes, error));
            return Ok(Answer::default());
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
            return Ok(Answer::default());
        }
    };
    let mut answer = Answer::default();
    let (mut line, mut seen) = (1, 0);
    for entry in entries {
        // An entry is a slice of the text: its offset gives its line.
        let start = entry.get().as_ptr().addr() - json.as_ptr().addr();
        line += json[seen..start].matches('\n').count() as u64;
        seen = start;
        answer.add(entry, line, problems);
    }
    answer.check(problems);
    Ok(answer)
}

impl Answer {
    fn add(&mut self, entry: &RawValue, line: u64, problems: &mut Problems) {
        let Ok(entry) = serde_json::from_str::<Entry>(entry.get()) else {
            self.unnamed += 1;
            problems.warn(
                line,
                "code",
                "this is no département: its code must be text",
            );
            return;
        };
        let departement = match departement::parse(&entry.code) {
            Ok(departement) => departement,
            Err(why) => {
                self.unnamed += usize::from(why == DepartementError::Malformed);
                let code = quoted(&entry.code);
                problems.warn(
                    line,
                    "code",
                    &format!("{code}: {why}: the entry is skipped"),
                );
                self.skipped.push(code);
                return;
            }
        };
        if let Some(name) = entry.nom.as_str()
            && normalised(name.trim()).to_lowercase() != departement.name.to_lowercase()
        {
            let why = format!(
                "{} is not the name of {} ({})",
                quoted(name),
                departement.code,
                departement.name
            );
            problems.warn(line, "nom", &why);
        }
        let is_given = |(given, _): &(&Departement, _)| given.code == departement.code;
        match (self.levels.iter().position(is_given), entry.level()) {
            (None, Ok(level)) => {
                self.levels.push((departement, level));
                self.lines.push(line);
            }
            (None, Err((member, why))) => {
                self.levels.push((departement, None));
                self.lines.push(line);
                self.doubt(departement, line, member, &why, problems);
            }
            (Some(place), level) => {
                let (code, first) = (departement.code, self.lines[place]);
                let why = format!("{code} was given in line {first} already");
                if level == Ok(self.levels[place].1) {
                    problems.warn(line, "code", &format!("{why}, with the same level"));
                } else {
                    self.levels[place].1 = None;
                    let why = format!("{why}, with another level");
                    self.doubt(departement, line, "code", &why, problems);
                }
            }
        }
    }

    /// Notes that the level of a département cannot be read.
    fn doubt(
        &mut self,
        departement: &Departement,
        line: u64,
        member: &'static str,
        why: &str,
        problems: &mut Problems,
    ) {
        let code = departement.code;
        let kept = format!("{why}: the stored level of {code} is kept");
        problems.warn(line, member, &kept);
        if !self.unreadable.iter().any(|noted| noted == code) {
            self.unreadable.push(code.to_owned());
        }
    }

    /// Refuses an answer without entries, or with too many unreadable ones.
    fn check(&self, problems: &mut Problems) {
        let unreadable = self.unreadable.len() + self.unnamed;
        let entries = self.levels.len() + self.unnamed;
        if entries == 0 {
            problems.refuse_line(1, "the file has no départements");
        } else if unreadable * 100 > entries * MAX_UNREADABLE {
            let why = format!(
                "{unreadable} of {entries} entries cannot be read, more than {MAX_UNREADABLE} percent: \
                 load a later answer of the register"
            );
            problems.refuse_line(1, &why);
        }
    }
}

impl Entry {
    /// The level, `None` where the register says that it does not know it.
    fn level(&self) -> Result<Option<Level>, Wrong> {
        let Some(max) = &self.niveau_gravite_max else {
            return Err((MAX, "the member is missing".to_owned()));
        };
        let Some(max) = level(MAX, max)? else {
            return Ok(None);
        };
        let parts = [
            ("niveauGraviteSupMax", &self.niveau_gravite_sup_max),
            ("niveauGraviteSouMax", &self.niveau_gravite_sou_max),
            ("niveauGraviteAepMax", &self.niveau_gravite_aep_max),
        ];
        let (mut highest, mut all) = (Level::Normal, true);
        for (member, part) in parts {
            let part = part.as_ref().map(|part| level(member, part)).transpose()?;
            match part {
                Some(Some(part)) => highest = highest.max(part),
                // A part that is not known is not one without restrictions.
                Some(None) if max == Level::Normal => {
                    return Err((
                        member,
                        "it is unavailable, and may be above normal".to_owned(),
                    ));
                }
                Some(None) | None => all = false,
            }
        }
        // A missing part may be the one that gives the maximum.
        if max < highest || (all && max > highest) {
            let why = format!("{max} contradicts its parts, whose highest is {highest}");
            return Err((MAX, why));
        }
        Ok(Some(max))
    }
}

/// The level that a member gives.
fn level(member: &'static str, value: &Value) -> Result<Option<Level>, Wrong> {
    match value {
        Value::Null => Ok(Some(Level::Normal)),
        Value::String(text) if text == "unavailable" => Ok(None),
        Value::String(text) => match normalised(text).parse() {
            Ok(level) => Ok(Some(level)),
            Err(why) => Err((member, format!("{}: {why}", quoted(text)))),
        },
        other => Err((member, format!("{} is no text", quoted(&other.to_string())))),
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
        let mut problems = Problems::new("vigieau.json");
        let answer = read(Box::new(Cursor::new(text)), &mut problems).unwrap();
        (
            answer
                .levels
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

    /// So many good entries, from Ain on.
    fn good(count: usize) -> String {
        let all = departement::all().iter().take(count);
        let entries =
            all.map(|one| format!(r#"{{"code":"{}","niveauGraviteMax":null}},"#, one.code));
        entries.collect()
    }

    /// Level of Hérault when its entry has these members, and the warning.
    fn herault(members: &str) -> (Option<Level>, String) {
        let text = format!(r#"[{}{{"code":"34"{members}}}]"#, good(10));
        let (levels, problems) = read_text(text);
        (levels[10].1, problems)
    }

    #[test]
    fn an_accent_may_be_a_character_of_its_own() {
        let label = r#","nom":"He\u0301rault","niveauGraviteMax":"Alerte renforce\u0301e""#;
        let alerte = Some(Level::AlerteRenforcee);
        assert_eq!(herault(label), (alerte, String::new()));
    }

    #[test]
    fn an_entry_that_cannot_be_read_leaves_its_level_unknown_and_withholds_no_other() {
        for (members, why) in [
            ("", "niveauGraviteMax: the member is missing"),
            (
                r#","niveauGraviteMax":"Erreur""#,
                "niveauGraviteMax: Erreur: a level is one of normal, vigilance, alerte, \
                 alerte_renforcee, crise",
            ),
            (r#","niveauGraviteMax":3"#, "niveauGraviteMax: 3 is no text"),
            (
                r#","niveauGraviteMax":null,"niveauGraviteSupMax":{}"#,
                "niveauGraviteSupMax: {} is no text",
            ),
        ] {
            let warning =
                format!("vigieau.json:1: warning: {why}: the stored level of 34 is kept\n");
            assert_eq!(herault(members), (None, warning));
        }
    }

    #[test]
    fn a_level_that_contradicts_its_parts_is_unknown() {
        let parts = |max: &str, [sup, sou, aep]: [&str; 3]| {
            herault(&format!(
                r#","niveauGraviteMax":{max},"niveauGraviteSupMax":{sup},"niveauGraviteSouMax":{sou},"niveauGraviteAepMax":{aep}"#
            ))
        };
        let crise = parts("null", ["\"crise\"", "null", "null"]);
        let why = "niveauGraviteMax: normal contradicts its parts, whose highest is crise";
        let warning = format!("vigieau.json:1: warning: {why}: the stored level of 34 is kept\n");
        assert_eq!(crise, (None, warning));
        let alone = parts("\"crise\"", ["null", "\"alerte\"", "null"]);
        assert_eq!(alone.0, None);
        let agreed = parts("\"crise\"", ["null", "\"crise\"", "\"alerte\""]);
        assert_eq!(agreed, (Some(Level::Crise), String::new()));
        let unknown = parts("null", ["null", "\"unavailable\"", "null"]);
        let why = "niveauGraviteSouMax: it is unavailable, and may be above normal";
        let warning = format!("vigieau.json:1: warning: {why}: the stored level of 34 is kept\n");
        assert_eq!(unknown, (None, warning));
        // An unknown part may be the highest.
        let open = parts("\"crise\"", ["null", "\"unavailable\"", "\"alerte\""]);
        assert_eq!(open, (Some(Level::Crise), String::new()));
    }

    #[test]
    fn more_than_a_tenth_of_unreadable_entries_refuses_the_file() {
        let tenth = format!(r#"[{}{{"code":"34"}}]"#, good(9));
        assert_eq!(read_text(tenth).0.len(), 10);
        for odd in ["7", r#"{"code":"FR-01","niveauGraviteMax":null}"#] {
            let more = format!(r#"[{}{{"code":"34"}},{odd}]"#, good(10));
            let refused = "vigieau.json:1: 2 of 12 entries cannot be read, more than 10 percent: \
                           load a later answer of the register";
            assert_eq!(read_text(more).1.lines().last(), Some(refused));
        }
    }

    #[test]
    fn an_entry_that_is_no_departements_is_skipped_and_named() {
        let mut problems = Problems::new("vigieau.json");
        let text = r#"[{"code":"34","niveauGraviteMax":null},
                       {"code":"978","niveauGraviteMax":null}]"#;
        let answer = read(Box::new(text.as_bytes()), &mut problems).unwrap();
        assert_eq!(
            (answer.levels.len(), answer.skipped),
            (1, vec!["978".to_owned()])
        );
        assert_eq!(
            problems.text(),
            "vigieau.json:2: warning: code: 978: there is no such département: 978 is Saint-Martin, \
             an overseas collectivité and not a département: the entry is skipped\n"
        );
        let nobody = r#"[{"code":"978","niveauGraviteMax":null}]"#;
        let said = read_text(nobody).1;
        assert!(
            said.ends_with("vigieau.json:1: the file has no départements\n"),
            "{said}"
        );
    }

    #[test]
    fn every_entry_is_checked_with_its_line() {
        let (_, problems) = read_text(
            "[{\"code\":\"01\",\"nom\":\"Aisne\",\"niveauGraviteMax\":null},\n\
             {\"code\":\"1\",\"niveauGraviteMax\":\"crise\"},\n\n\
             {\"code\":36,\"niveauGraviteMax\":null}, 7]",
        );
        assert_eq!(
            problems,
            "vigieau.json:1: warning: nom: Aisne is not the name of 01 (Ain)\n\
             vigieau.json:2: warning: code: 01 was given in line 1 already, with another level: the stored \
             level of 01 is kept\n\
             vigieau.json:4: warning: code: this is no département: its code must be text\n\
             vigieau.json:4: warning: code: this is no département: its code must be text\n\
             vigieau.json:1: 3 of 3 entries cannot be read, more than 10 percent: \
             load a later answer of the register\n"
        );
    }

    #[test]
    fn a_departement_that_is_repeated_without_end_is_kept_once() {
        let entry = r#"{"code":"34","niveauGraviteMax":null}"#;
        let (levels, problems) = read_text(format!("[{}]", [entry; 10_000].join(",")));
        assert_eq!(levels, [("34", Some(Level::Normal))]);
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

    /// Bytes that get far into the reader more often than random bytes do.
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
            let mut problems = Problems::new("vigieau.json");
            let answer = read(Box::new(Cursor::new(bytes)), &mut problems).unwrap();
            prop_assert!(!answer.levels.is_empty() || problems.count() > 0);
        }
    }
}

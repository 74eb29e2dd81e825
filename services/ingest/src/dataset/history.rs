//! `accountId,id,companyName,…`: the two histories, which differ in the names of two columns.

use std::io;

use water_database::writer::{History, HistoryRow};
use water_domain::{AccountId, HistoryRating, SectorCode, Timestamp};

use crate::cell::{self, Cells, NullWords, Numbers};
use crate::problem::Problems;
use crate::source::Text;
use crate::table::{self, Columns};

/// More than any identifier needs; longer ones are a shifted or broken file.
pub const MAX_ID: usize = 128;
/// More than any company's name needs.
const MAX_COMPANY_NAME: usize = 300;

/// The columns of a history's file.
pub fn columns(history: History) -> Columns {
    let required = match history {
        History::Analyses => &[
            "accountId",
            "id",
            "companyName",
            "sectorCode",
            "deptCode",
            "globalScore",
            "rating",
            "createdAt",
        ],
        History::Audits => &[
            "accountId",
            "id",
            "companyName",
            "sectorCode",
            "deptCode",
            "score",
            "globalRating",
            "createdAt",
        ],
    };
    Columns {
        required,
        optional: &["synthetic"],
        may_be_empty: false,
    }
}

/// Rules for a history's values, besides the file itself.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The moment of the load: no record is from a later day.
    pub now: Timestamp,
    /// Whether `companyName` may be a word such as `None`.
    pub company_names: NullWords,
    /// Whether a header without rows is a day on which nothing happened.
    pub allow_empty: bool,
}

/// Hands each good row to `each`; the file is good if no problem was added.
pub fn read(
    text: Text,
    history: History,
    rules: Rules,
    problems: &mut Problems,
    mut each: impl FnMut(&HistoryRow<'_>, &Problems),
) -> io::Result<u64> {
    let columns = Columns {
        may_be_empty: rules.allow_empty,
        ..columns(history)
    };
    let names: Vec<_> = columns.all().collect();
    let mut numbers = Numbers::default();
    table::read(text, columns, problems, |line, row, problems| {
        let mut cells = Cells::new(line, row, &names, problems);
        // All cells are read before any is asked for, so that a row tells all its problems.
        let account_id = cells.required(0, cell::checked::<AccountId>);
        let id = cells.required(1, cell::id_up_to(MAX_ID));
        let company_name =
            cells.required_text(2, rules.company_names, cell::text_up_to(MAX_COMPANY_NAME));
        if id.is_some() {
            cells.check_encoding(1);
        }
        if company_name.is_some() {
            cells.check_encoding(2);
        }
        let sector_code = cells.required(3, cell::checked::<SectorCode>);
        let departement = cells.required(4, cell::departement);
        let score = cells.required(5, |cell| numbers.read(cell));
        let rating = cells.required(6, cell::checked::<HistoryRating>);
        let created_at = cells.required(7, cell::moment(rules.now));
        cells.note_synthetic(8);
        let read = || {
            Some(HistoryRow {
                line,
                account_id: account_id?,
                id: id.as_deref()?,
                company_name: company_name.as_deref()?,
                sector_code: sector_code?,
                dept_code: departement?.code,
                score: score?,
                rating: rating?,
                created_at: created_at?,
            })
        };
        if let Some(row) = read() {
            each(&row, problems);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    const HEADER: &str =
        "accountId,id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\n";

    fn read_text(text: String) -> (Vec<String>, String) {
        read_with(text, NullWords::Refused)
    }

    fn read_with(text: String, company_names: NullWords) -> (Vec<String>, String) {
        let mut problems = Problems::new("analyses.csv");
        let now = Timestamp::parse("2026-07-01T00:00:00Z").unwrap();
        let mut rows = Vec::new();
        let each = |row: &HistoryRow<'_>, _: &Problems| {
            rows.push(format!(
                "{} {} {:?} {} {}",
                row.line, row.id, row.company_name, row.dept_code, row.created_at
            ));
        };
        read(
            Box::new(Cursor::new(text)),
            History::Analyses,
            Rules {
                now,
                company_names,
                allow_empty: false,
            },
            &mut problems,
            each,
        )
        .unwrap();
        (rows, problems.text())
    }

    #[test]
    fn a_company_name_may_have_commas_and_quotes() {
        let rows = "acme,1,\"Eaux, \"\"Sud\"\"\",36.00Z,1,3.5,B+,2026-01-01T00:00:00Z\n\
                    acme,2,Eaux,36.00Z,2a,-3,B+,2026-01-01T01:00:00+01:00\n";
        let (rows, problems) = read_text(format!("{HEADER}{rows}"));
        assert_eq!(problems, "");
        assert_eq!(
            rows,
            [
                "2 1 \"Eaux, \\\"Sud\\\"\" 01 2026-01-01T00:00:00.000Z",
                "3 2 \"Eaux\" 2A 2026-01-01T00:00:00.000Z"
            ]
        );
    }

    #[test]
    fn two_rows_inside_one_pair_of_quotes_are_refused_and_lines_stay_right() {
        let rows = "acme,1,\"a\nb\",36.00Z,1,x,B+,2026-01-01T00:00:00Z\n\
                    acme,2,a,36.00Z,1,y,B+,2026-01-01T00:00:00Z\n\
                    acme,3,\"Eaux,36.00Z,1,1,B+,2026-01-01T00:00:00Z\r\nacme,4,Sud\",36.00Z,1,1,B+,2026-01-01T00:00:00Z\n";
        let (rows, problems) = read_text(format!("{HEADER}{rows}"));
        assert!(rows.is_empty(), "{rows:?}");
        assert_eq!(
            problems,
            "analyses.csv:2: companyName: it has a line end: is a quote not closed?\n\
             analyses.csv:3: globalScore: x is no number\n\
             analyses.csv:4: globalScore: y is no number\n\
             analyses.csv:5: companyName: it has a line end: is a quote not closed?\n"
        );
    }

    #[test]
    fn words_that_stand_for_no_value_are_refused_in_any_case_and_column() {
        let row = |cells: [&str; 5]| {
            let [account, id, name, sector, rating] = cells;
            format!("{HEADER}{account},{id},{name},{sector},34,1,{rating},2026-01-01T00:00:00Z\n")
        };
        let columns = ["accountId", "id", "companyName", "sectorCode", "rating"];
        let good = ["acme", "1", "Eaux", "36.00Z", "A"];
        for (place, column) in columns.iter().enumerate() {
            for word in [
                "NULL",
                "None",
                "NaN",
                "N/A",
                "NA",
                "#REF!",
                "#CHAMP!",
                "<NA>",
                "NaT",
                "\\N",
                "-9999",
                "Undefined",
            ] {
                let mut cells = good;
                cells[place] = word;
                assert_eq!(
                    read_text(row(cells)).1,
                    format!("analyses.csv:2: {column}: {word} is no value\n")
                );
            }
        }
        let padded = ["acme", "1", " NULL ", "36.00Z", "A"];
        assert_eq!(
            read_text(row(padded)).1,
            "analyses.csv:2: companyName:  NULL  is no value\n"
        );
        let none = ["acme", "1", "None", "36.00Z", "A"];
        let (rows, problems) = read_with(row(none), NullWords::Accepted);
        assert_eq!((rows.len(), problems.as_str()), (1, ""));
        let id = ["acme", "None", "None", "36.00Z", "A"];
        let (_, problems) = read_with(row(id), NullWords::Accepted);
        assert_eq!(problems, "analyses.csv:2: id: None is no value\n");
    }

    #[test]
    fn blank_text_and_white_space_around_an_id_are_refused() {
        let rows = "acme, 1,Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n\
                    acme,  , \t,36.00Z,34,1,A,2026-01-01T00:00:00Z\n\
                    acme,1,\u{a0},36.00Z,34,1,A,2026-01-01T00:00:00Z\n";
        let (_, problems) = read_text(format!("{HEADER}{rows}"));
        assert_eq!(
            problems,
            "analyses.csv:2: id: it begins or ends with white space\n\
             analyses.csv:3: id: it is blank\n\
             analyses.csv:3: companyName: it has the control character U+0009\n\
             analyses.csv:4: companyName: it is blank\n"
        );
    }

    #[test]
    fn one_text_has_one_spelling_and_nothing_invisible() {
        let row = |id: &str, name: &str| {
            format!("{HEADER}acme,{id},{name},36.00Z,34,1,A,2026-01-01T00:00:00Z\n")
        };
        let (rows, problems) = read_text(row("e\u{301}-1", "He\u{301}rault"));
        assert_eq!(problems, "");
        assert_eq!(rows, ["2 é-1 \"Hérault\" 34 2026-01-01T00:00:00.000Z"]);
        // The Kelvin sign is K in the normal form, and no letter of a code.
        for (character, code) in [("\u{212a}", "212A"), ("\u{200b}", "200B")] {
            let codes = ["a", "x", "34", "A"].map(|text| format!("{text}{character}"));
            let [account, sector, dept, rating] = codes;
            let row = format!("{account},1,Eaux,{sector},{dept},1,{rating},2026-01-01T00:00:00Z");
            let (rows, problems) = read_text(format!("{HEADER}{row}\n"));
            assert!(rows.is_empty(), "{rows:?}");
            let named = format!(": it has the character U+{code}: ");
            let named = problems.lines().filter(|line| line.contains(&named));
            assert_eq!(named.count(), 4, "{problems}");
        }
        for (character, code) in [
            ("\u{200b}", "200B"),
            ("\u{feff}", "FEFF"),
            ("\u{ad}", "00AD"),
            ("\u{2028}", "2028"),
            ("\u{2029}", "2029"),
        ] {
            let text = format!("p{character}1");
            let why = format!("it has the invisible character U+{code}: remove it\n");
            assert_eq!(
                read_text(row(&text, &text)).1,
                format!("analyses.csv:2: id: {why}analyses.csv:2: companyName: {why}")
            );
        }
    }

    #[test]
    fn a_lost_character_is_refused_in_an_id_and_a_warning_in_a_name() {
        let rows = "acme,Ã©-1,Soci\u{fffd}t\u{fffd},36.00Z,34,1,A,2026-01-01T00:00:00Z\n\
                    acme,\u{fffd}-1,Eaux,36.00Z,34,1,A,2026-01-01T00:00:00Z\n";
        let (rows, problems) = read_text(format!("{HEADER}{rows}"));
        assert_eq!(rows.len(), 1);
        let lost = "has U+FFFD in the place of a lost character: export the file again as UTF-8\n";
        assert_eq!(
            problems,
            format!(
                "analyses.csv:2: warning: id: Ã©-1 looks like UTF-8 that was read as Windows-1252: \
                 export the file again as UTF-8\n\
                 analyses.csv:2: warning: companyName: Soci\u{fffd}t\u{fffd} {lost}\
                 analyses.csv:3: id: \u{fffd}-1 {lost}"
            )
        );
    }

    #[test]
    fn every_column_is_checked() {
        let long = "x".repeat(301);
        let rows = format!(
            "a b,,{long},a/b,20,-9999,b,2026-01-01\nacme,a\u{0}b,c,1,1,1,A,2026-01-01T00:00:00Z\n"
        );
        let (rows, problems) = read_text(format!("{HEADER}{rows}"));
        assert!(rows.is_empty());
        assert_eq!(
            problems,
            "analyses.csv:2: accountId: \"a b\": an account id is 1 to 63 letters, digits, '.', '_' or '-', \
             and begins and ends with a letter or digit\n\
             analyses.csv:2: id: there is no value\n\
             analyses.csv:2: companyName: it is longer than 300 characters\n\
             analyses.csv:2: sectorCode: a/b: a sector code is 1 to 16 letters, digits, '.', '_' or '-'\n\
             analyses.csv:2: deptCode: 20: there is no such département: Corsica has been 2A (Corse-du-Sud) \
             and 2B (Haute-Corse) since 1976\n\
             analyses.csv:2: globalScore: -9999 is no value\n\
             analyses.csv:2: rating: b: a rating is 1 to 8 upper-case letters, digits, '+' or '-', and begins with a letter\n\
             analyses.csv:2: createdAt: 2026-01-01: a time is RFC 3339 with an offset, such as 2026-07-01T00:00:00Z, in the years 0000 to 9999 of UTC\n\
             analyses.csv:3: id: it has the control character U+0000\n"
        );
    }

    proptest! {
        #[test]
        fn a_row_is_handed_on_or_refused_whatever_its_cells_hold(cells in proptest::collection::vec(cell(), 8)) {
            let quoted: Vec<_> = cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
            let (rows, problems) = read_text(format!("{HEADER}{}\n", quoted.join(",")));
            prop_assert_eq!(rows.len() + usize::from(!problems.is_empty()), 1);
        }
    }

    /// Contents of cells, and any text.
    fn cell() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("acme".to_owned()),
            Just("34".to_owned()),
            Just("-9999".to_owned()),
            Just("0000-01-01T00:00:00-23:59".to_owned()),
            Just("2026-06-30T23:59:60Z".to_owned()),
            Just("A".to_owned()),
            "\\PC{0,60}",
            any::<String>(),
        ]
    }
}

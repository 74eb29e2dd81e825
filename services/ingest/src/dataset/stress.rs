//! `dept,stressIndex,level`: the water stress of each département.

use std::io;

use water_database::writer::StressRow;

use crate::cell::{self, Cells, Numbers};
use crate::dataset::DepartementLines;
use crate::problem::Problems;
use crate::source::Text;
use crate::table::{self, Columns};

/// The columns of a stress file.
pub const COLUMNS: Columns = Columns {
    required: &["dept", "stressIndex"],
    optional: &["level", "name", "synthetic"],
    may_be_empty: false,
};

/// Reads all rows; they are good if no problem was added.
pub fn read(text: Text, problems: &mut Problems) -> io::Result<Vec<StressRow>> {
    let names: Vec<_> = COLUMNS.all().collect();
    let (mut rows, mut given, mut numbers) =
        (Vec::new(), DepartementLines::default(), Numbers::default());
    table::read(text, COLUMNS, problems, |line, row, problems| {
        let mut cells = Cells::new(line, row, &names, problems);
        let departement = cells.required(0, cell::departement);
        let stress_index = cells.required(1, |cell| numbers.read_in(0..=5, cell));
        let level = cells.optional(2, cell::parsed);
        cells.note_synthetic(4);
        let Some(departement) = departement else {
            return;
        };
        cells.check_name(3, departement);
        if !given.once(departement, line, "dept", problems) {
            return;
        }
        if let (Some(stress_index), Some(level)) = (stress_index, level) {
            rows.push(StressRow {
                departement,
                stress_index,
                level,
            });
        }
    })?;
    if !rows.is_empty() && rows.iter().all(is_below_one) {
        problems.warn(1, "stressIndex", RATIOS);
    }
    Ok(rows)
}

/// Warning of a file that makes all of France `normal`.
const RATIOS: &str = "every index is below 1: if these are ratios, such as bws_raw of Aqueduct, load scores \
    from 0 to 5, such as bws_score";

fn is_below_one(row: &StressRow) -> bool {
    row.stress_index.get() < 1.0
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use water_domain::Level;

    use super::*;

    fn read_text(text: &'static str) -> (Vec<StressRow>, String) {
        let mut problems = Problems::new("stress.csv");
        let rows = read(Box::new(Cursor::new(text)), &mut problems).unwrap();
        (rows, problems.text())
    }

    fn refusal(text: &'static str) -> String {
        read_text(text).1
    }

    #[test]
    fn codes_levels_and_decimal_commas_are_read_as_people_write_them() {
        let (rows, problems) =
            read_text("dept;level;stressIndex\r\n1;Alerte renforcée;3,5\r\n2a;;5\r\n");
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.departement.code, row.stress_index.get(), row.level))
            .collect();
        assert_eq!(problems, "");
        assert_eq!(
            seen,
            [("01", 3.5, Some(Level::AlerteRenforcee)), ("2A", 5.0, None)]
        );
    }

    #[test]
    fn names_and_labels_are_read_in_either_normal_form() {
        let (rows, problems) =
            read_text("dept,name,stressIndex,level\n34,He\u{301}rault,1,Alerte renforce\u{301}e\n");
        assert_eq!(problems, "");
        assert_eq!(rows[0].level, Some(Level::AlerteRenforcee));
    }

    #[test]
    fn what_stands_for_no_value_is_refused() {
        for (value, why) in [
            ("", "there is no value"),
            ("NaN", "NaN is no value"),
            ("null", "null is no value"),
            ("undefined", "undefined is no value"),
            ("NULL", "NULL is no value"),
            ("-9999", "-9999 is no value"),
            ("-9999.0", "-9999 stands for no value"),
            ("inf", "inf is no number"),
            ("1e999", "1e999 is no number"),
            ("0x3", "0x3 is no number"),
            ("3 5", "\"3 5\" is no number"),
            ("-1", "-1 is outside 0..5"),
            ("5.01", "5.01 is outside 0..5"),
        ] {
            let text: &'static str = format!("dept,stressIndex\n34,{value}\n").leak();
            assert_eq!(refusal(text), format!("stress.csv:2: stressIndex: {why}\n"));
        }
        assert_eq!(
            refusal("dept,stressIndex\n34,\"3,5\"\n"),
            "stress.csv:2: stressIndex: 3,5 is no number: a decimal comma is read only in files separated by ;\n"
        );
    }

    #[test]
    fn indices_that_are_all_below_one_are_a_warning() {
        let (rows, problems) = read_text("dept,stressIndex\n34,0.99\n75,0.07\n");
        assert_eq!(rows.len(), 2);
        assert_eq!(
            problems,
            format!("stress.csv:1: warning: stressIndex: {RATIOS}\n")
        );
        assert_eq!(refusal("dept,stressIndex\n34,1\n75,0.07\n"), "");
    }

    #[test]
    fn a_departement_that_is_repeated_without_end_is_kept_once() {
        let text: &'static str = format!("dept,stressIndex\n{}", "34,1\n".repeat(10_000)).leak();
        let (rows, problems) = read_text(text);
        assert_eq!(rows.len(), 1);
        assert_eq!(problems.lines().count(), 51);
    }

    #[test]
    fn a_row_tells_all_its_problems() {
        assert_eq!(
            refusal("dept,stressIndex,level\n99,6,red\n"),
            "stress.csv:2: dept: 99: there is no such département\n\
             stress.csv:2: stressIndex: 6 is outside 0..5\n\
             stress.csv:2: level: red: a level is one of normal, vigilance, alerte, alerte_renforcee, crise\n"
        );
    }

    #[test]
    fn another_name_is_a_warning_and_the_official_one_is_not() {
        let (rows, problems) = read_text("dept,name,stressIndex\n34,hérault,1\n75,Yonne,1\n");
        assert_eq!(rows.len(), 2);
        assert_eq!(
            problems,
            "stress.csv:3: warning: name: Yonne is not the name of 75 (Paris)\n"
        );
    }
}

//! `dept,flood,drought,overall,rating,updatedAt`: the water risk of each département.

use std::io;

use water_database::writer::RiskRow;
use water_domain::Timestamp;

use crate::cell::{self, Cells, Numbers};
use crate::dataset::DepartementLines;
use crate::problem::Problems;
use crate::source::Text;
use crate::table::{self, Columns};

/// The columns of a risk file.
pub const COLUMNS: Columns = Columns {
    required: &["dept", "flood", "drought", "overall"],
    optional: &["rating", "updatedAt", "name", "synthetic"],
    may_be_empty: false,
};

/// Reads all rows; they are good if no problem was added.
pub fn read(text: Text, now: Timestamp, problems: &mut Problems) -> io::Result<Vec<RiskRow>> {
    let names: Vec<_> = COLUMNS.all().collect();
    let (mut rows, mut given, mut numbers) =
        (Vec::new(), DepartementLines::default(), Numbers::default());
    table::read(text, COLUMNS, problems, |line, row, problems| {
        let mut cells = Cells::new(line, row, &names, problems);
        let departement = cells.required(0, cell::departement);
        let [flood, drought, overall] =
            [1, 2, 3].map(|column| cells.required(column, |cell| numbers.read_in(0..=100, cell)));
        let rating = cells.optional(4, cell::parsed);
        let updated_at = cells.optional(5, cell::moment(now));
        cells.note_synthetic(7);
        let Some(departement) = departement else {
            return;
        };
        cells.check_name(6, departement);
        if !given.once(departement, line, "dept", problems) {
            return;
        }
        let scores = (flood, drought, overall);
        if let ((Some(flood), Some(drought), Some(overall)), Some(rating), Some(updated_at)) =
            (scores, rating, updated_at)
        {
            rows.push(RiskRow {
                departement,
                flood,
                drought,
                overall,
                rating,
                updated_at,
            });
        }
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use water_domain::RiskRating;

    use super::*;

    fn read_text(text: &'static str) -> (Vec<RiskRow>, String) {
        let mut problems = Problems::new("risk.csv");
        let now = Timestamp::parse("2026-07-01T00:00:00Z").unwrap();
        let rows = read(Box::new(Cursor::new(text)), now, &mut problems).unwrap();
        (rows, problems.text())
    }

    #[test]
    fn rating_and_date_may_be_left_out() {
        let (rows, problems) = read_text(
            "dept,flood,drought,overall,rating,updatedAt\n34,1,2,3,,\n75,1,2,3,E,2026-06-01T02:00:00.1239+02:00\n",
        );
        assert_eq!(problems, "");
        assert_eq!((rows[0].rating, rows[0].updated_at), (None, None));
        let updated_at = Timestamp::parse("2026-06-01T00:00:00.123Z").unwrap();
        assert_eq!(
            (rows[1].rating, rows[1].updated_at),
            (Some(RiskRating::E), Some(updated_at))
        );
    }

    #[test]
    fn a_departement_that_is_repeated_without_end_is_kept_once() {
        let rows = "34,1,2,3\n".repeat(10_000);
        let text: &'static str = format!("dept,flood,drought,overall\n{rows}").leak();
        let (rows, problems) = read_text(text);
        assert_eq!(rows.len(), 1);
        assert_eq!(problems.lines().count(), 51);
    }

    #[test]
    fn a_file_has_one_decimal_sign() {
        let table = |rows: &str| format!("dept;flood;drought;overall\n{rows}").leak();
        let (_, problems) = read_text(table("34;1;2;3\n75;12.5;2;1,234\n76;1,5;2;3.5\n"));
        assert_eq!(
            problems,
            "risk.csv:3: overall: 1,234 has a decimal comma and line 3 has a decimal point: \
             write one of them in the whole file\n\
             risk.csv:4: flood: 1,5 has a decimal comma and line 3 has a decimal point: \
             write one of them in the whole file\n"
        );
        let (_, problems) = read_text(table("34;1;2;3,5\n75;1.234,56;2.5;3\n"));
        assert_eq!(
            problems,
            "risk.csv:3: flood: 1.234,56 is no number\n\
             risk.csv:3: drought: 2.5 has a decimal point and line 2 has a decimal comma: \
             write one of them in the whole file\n"
        );
        assert_eq!(read_text(table("34;12.5;2;1.234\n75;1;2;3\n")).1, "");
    }

    #[test]
    fn scores_ratings_and_dates_out_of_bounds_are_refused() {
        let refused = read_text(
            "dept,flood,drought,overall,rating,updatedAt\n\
             34,101,-1,1e3,F,2026-07-01\n\
             75,1,1,1,A,1999-12-31T23:59:59Z\n\
             76,1,1,1,A,2026-07-02T00:00:01Z\n",
        );
        assert_eq!(
            refused.1,
            "risk.csv:2: flood: 101 is outside 0..100\n\
             risk.csv:2: drought: -1 is outside 0..100\n\
             risk.csv:2: overall: 1e3 is outside 0..100\n\
             risk.csv:2: rating: F: a risk rating is one of A, B, C, D, E\n\
             risk.csv:2: updatedAt: 2026-07-01: a time is RFC 3339 with an offset, such as 2026-07-01T00:00:00Z, in the years 0000 to 9999 of UTC\n\
             risk.csv:3: updatedAt: 1999-12-31T23:59:59.000Z is before the year 2000\n\
             risk.csv:4: updatedAt: 2026-07-02T00:00:01.000Z is more than a day ahead\n"
        );
    }
}

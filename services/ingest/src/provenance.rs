//! `provenance`: the list of loads, as a table for people and as JSON for programs.

use std::io::{self, IsTerminal, Write};

use water_database::writer::Provenance;
use water_runtime::line_end::is_line_end;

use crate::failure::Failure;
use crate::summary;

/// The columns; all but the last are as wide as their longest cell.
const HEADER: [&str; 11] = [
    "LOADED AT",
    "DATASET",
    "AS OF",
    "ROWS",
    "INSERTED",
    "UPDATED",
    "REMOVED",
    "DERIVED",
    "SYNTHETIC",
    "LOADED BY",
    "SOURCE",
];

/// Writes the loads to standard output: a table where that is a terminal, one JSON document elsewhere.
pub fn print(loads: &[Provenance]) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return summary::print(&loads);
    }
    let table = table(loads);
    io::stdout()
        .write_all(table.as_bytes())
        .map_err(Failure::Output)
}

/// A line for each load, below the names of the columns.
fn table(loads: &[Provenance]) -> String {
    let rows: Vec<[String; 11]> = std::iter::once(HEADER.map(str::to_owned))
        .chain(loads.iter().map(cells))
        .collect();
    let mut widths = [0; 11];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    rows.iter().map(|row| line(row, widths)).collect()
}

fn line(cells: &[String; 11], widths: [usize; 11]) -> String {
    let padded = cells.iter().zip(widths);
    let padded = padded.map(|(cell, width)| format!("{cell:width$}"));
    let line = padded.collect::<Vec<_>>().join("  ");
    format!("{}\n", line.trim_end())
}

fn cells(load: &Provenance) -> [String; 11] {
    [
        load.loaded_at.to_string(),
        load.dataset.clone(),
        load.as_of
            .map_or_else(|| "-".to_owned(), |at| at.to_string()),
        load.rows.to_string(),
        load.inserted.to_string(),
        load.updated.to_string(),
        load.removed.to_string(),
        load.derived.len().to_string(),
        if load.synthetic { "yes" } else { "no" }.to_owned(),
        printable(&load.loaded_by),
        printable(&load.source),
    ]
}

/// Replaces control characters and line ends: a loader's text can neither steer the terminal nor break the line.
fn printable(text: &str) -> String {
    let shown = |character: char| {
        if character.is_control() || is_line_end(character) {
            char::REPLACEMENT_CHARACTER
        } else {
            character
        }
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use water_domain::Timestamp;

    use super::*;

    fn load(dataset: &str, rows: i64) -> Provenance {
        Provenance {
            dataset: dataset.to_owned(),
            loaded_at: Timestamp::parse("2026-07-03T06:00:00Z").unwrap(),
            as_of: Timestamp::parse("2026-07-02T00:00:00Z").ok(),
            rows,
            inserted: 1,
            updated: 2,
            removed: 0,
            derived: vec!["34".to_owned()],
            sha256: "ab".repeat(32),
            source: "stress.csv".to_owned(),
            source_url: None,
            licence: Some("Licence Ouverte 2.0".to_owned()),
            synthetic: false,
            loaded_by: "hélène".to_owned(),
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let mut history = load("analyses", 1_200_000_000);
        history.as_of = None;
        history.synthetic = true;
        let expected = "\
LOADED AT                 DATASET   AS OF                     ROWS        INSERTED  UPDATED  REMOVED  DERIVED  SYNTHETIC  LOADED BY  SOURCE
2026-07-03T06:00:00.000Z  stress    2026-07-02T00:00:00.000Z  96          1         2        0        1        no         hélène     stress.csv
2026-07-03T06:00:00.000Z  analyses  -                         1200000000  1         2        0        1        yes        hélène     stress.csv
";
        assert_eq!(table(&[load("stress", 96), history]), expected);
    }

    #[test]
    fn a_loaders_words_do_not_steer_the_terminal() {
        let mut load = load("stress", 96);
        load.source = "\u{1b}[2Jgone\nnext\u{2028}line".to_owned();
        let table = table(&[load]);
        assert!(
            table.ends_with("\u{fffd}[2Jgone\u{fffd}next\u{fffd}line\n"),
            "{table:?}"
        );
    }
}

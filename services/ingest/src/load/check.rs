//! Checks of a file without a database.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;

use serde::Serialize;
use water_database::writer::HistoryRow;

use crate::dataset::{history, risk, stress, vigieau};
use crate::failure::Failure;
use crate::load::job::Content;
use crate::load::reading::Reading;
use crate::load::{Job, print_problems};
use crate::problem::Problems;
use crate::source::Source;
use crate::summary::Ending;

/// Result of `check`.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    dataset: &'static str,
    file: String,
    outcome: Ending,
    rows: u64,
    problems: u64,
    warnings: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    synthetic: bool,
}

/// Checks a file.
pub fn check(source: Source, job: &Job) -> (CheckReport, Result<(), Failure>) {
    let mut reading = Reading::new(&source, job);
    let result = read(source, job, &mut reading);
    print_problems(&reading);
    let outcome = match &result {
        Ok(()) => Ending::Checked,
        Err(Failure::BadData { .. }) => Ending::Refused,
        Err(_) => Ending::Failed,
    };
    let summary = reading.summary(job, outcome);
    let checked = CheckReport {
        dataset: summary.dataset,
        file: summary.file,
        outcome,
        rows: summary.rows,
        problems: summary.problems,
        warnings: summary.warnings,
        sha256: summary.sha256,
        synthetic: summary.synthetic,
    };
    (checked, result)
}

fn read(source: Source, job: &Job, reading: &mut Reading) -> Result<(), Failure> {
    let text = source.text(job.reading.encoding, reading.progress.clone());
    let (text, digesting) = reading.readable(text)?;
    match job.content {
        Content::Stress => {
            let rows = stress::read(text, &mut reading.problems);
            reading.rows(rows)?;
        }
        Content::Risk => {
            let rows = risk::read(text, job.now, &mut reading.problems);
            reading.rows(rows)?;
        }
        Content::Vigieau => {
            let answer = vigieau::read(text, &mut reading.problems);
            reading.answer(answer)?;
        }
        Content::History(history) => {
            let (mut seen, mut repeats) = (RecordHashes::default(), Vec::new());
            let each = |row: &HistoryRow<'_>, _: &Problems| repeats.extend(seen.repeats(row));
            let rules = job.rules();
            let rows = history::read(text, history, rules, &mut reading.problems, each);
            reading.row_count = reading.readable(rows)?;
            for (line, first) in repeats {
                reading.problems.refuse_repeated(line, first);
            }
        }
    }
    reading.load(job, &digesting).map(drop)
}

/// The records of a history by a hash of their account and id: 32 bytes a row, whatever they hold.
#[derive(Default)]
struct RecordHashes {
    hashing: RandomState,
    records: HashMap<u128, (u64, u64)>,
}

impl RecordHashes {
    /// The row's line, and that of the same record with different content.
    fn repeats(&mut self, row: &HistoryRow<'_>) -> Option<(u64, u64)> {
        let key = (row.account_id, row.id);
        let wide = u128::from(self.hashing.hash_one(key)) << 64
            | u128::from(self.hashing.hash_one((key, "again")));
        let content = self.hashing.hash_one((
            (row.company_name, row.sector_code, row.dept_code),
            (row.score.get().to_bits(), row.rating),
            row.created_at.as_millis(),
        ));
        match self.records.entry(wide) {
            Entry::Vacant(place) => {
                place.insert((content, row.line));
                None
            }
            Entry::Occupied(first) => {
                let (first_content, first_line) = *first.get();
                (first_content != content).then_some((row.line, first_line))
            }
        }
    }
}

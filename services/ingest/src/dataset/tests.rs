//! Mutated files of every dataset, read in this process: an accepted file has, field by field, the values that an
//! independent reader finds in the same bytes.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use indicatif::ProgressBar;
use serde_json::{Value, json};
use water_database::writer::History;
use water_domain::Timestamp;
use water_harness::Mutator;
use water_kit::independent::records;

use super::{history, risk, stress, vigieau};
use crate::cell::NullWords;
use crate::dataset::history::Rules;
use crate::problem::Problems;
use crate::source::{Encoding, Source, Text};

/// Number of mutated files of each of the five datasets; `WATER_FUZZ_INPUTS` sets another one.
const INPUTS: usize = 2_000;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |number| number.parse().unwrap())
}

fn corpus(dataset: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(dataset);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Rows that the product reads, in the form of the independent reader; `None` where it refuses.
fn accepted(dataset: &str, bytes: &[u8]) -> Option<Vec<Value>> {
    let now = Timestamp::parse("2026-07-02T00:00:00Z").unwrap();
    let source = Source::stream("f", None, Cursor::new(bytes.to_vec()));
    let (text, _) = source.text(Encoding::Utf8, ProgressBar::hidden()).ok()?;
    let mut problems = Problems::new("f");
    let rows = match dataset {
        "stress" => stress(text, &mut problems)?,
        "risk" => risk(text, now, &mut problems)?,
        "vigieau" => levels(text, &mut problems)?,
        "analyses" => rows(text, History::Analyses, now, &mut problems)?,
        _ => rows(text, History::Audits, now, &mut problems)?,
    };
    (problems.count() == 0).then_some(rows)
}

fn stress(text: Text, problems: &mut Problems) -> Option<Vec<Value>> {
    let rows = stress::read(text, problems).ok()?;
    let row = |row: &water_database::writer::StressRow| {
        let level = row.level.map(|level| level.as_str());
        json!([row.departement.code, row.stress_index.get(), level])
    };
    Some(rows.iter().map(row).collect())
}

fn risk(text: Text, now: Timestamp, problems: &mut Problems) -> Option<Vec<Value>> {
    let rows = risk::read(text, now, problems).ok()?;
    let row = |row: &water_database::writer::RiskRow| {
        let [flood, drought, overall] =
            [row.flood, row.drought, row.overall].map(|score| score.get());
        let rating = row.rating.map(|rating| rating.as_str());
        let updated_at = row.updated_at.map(Timestamp::as_millis);
        json!([
            row.departement.code,
            flood,
            drought,
            overall,
            rating,
            updated_at
        ])
    };
    Some(rows.iter().map(row).collect())
}

fn levels(text: Text, problems: &mut Problems) -> Option<Vec<Value>> {
    let answer = vigieau::read(text, problems).ok()?;
    let levels = answer.levels.iter();
    Some(
        levels
            .map(|(departement, level)| {
                json!([departement.code, level.map(|level| level.as_str())])
            })
            .collect(),
    )
}

fn rows(text: Text, of: History, now: Timestamp, problems: &mut Problems) -> Option<Vec<Value>> {
    let mut rows = Vec::new();
    let each = |row: &water_database::writer::HistoryRow<'_>, _: &Problems| {
        let created_at = row.created_at.as_millis();
        rows.push(json!([
            row.account_id,
            row.id,
            row.company_name,
            row.sector_code,
            row.dept_code,
            row.score.get(),
            row.rating,
            created_at
        ]));
    };
    let rules = Rules {
        now,
        company_names: NullWords::Refused,
        allow_empty: false,
    };
    history::read(text, of, rules, problems, each).ok()?;
    Some(rows)
}

fn compare(dataset: &str) {
    let inputs = setting("WATER_FUZZ_INPUTS", INPUTS);
    let corpus = corpus(dataset);
    for bytes in &corpus {
        assert!(
            accepted(dataset, bytes).is_some(),
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
    let mutated = Mutator::new(corpus.clone(), setting("WATER_FUZZ_SEED", 1) as u64);
    let mut good = 0;
    for bytes in corpus.into_iter().chain(mutated.take(inputs)) {
        let Some(rows) = accepted(dataset, &bytes) else {
            continue;
        };
        good += 1;
        let shown = String::from_utf8_lossy(&bytes);
        assert_eq!(Some(rows), records(dataset, &bytes), "{shown:?}");
    }
    println!("{dataset}: {good} of {inputs} mutated files and the good ones were accepted");
    assert!(
        good > inputs / 100,
        "{good} of {inputs} were accepted: nothing is compared"
    );
}

#[test]
fn mutated_stress_files_are_refused_or_read_as_they_are() {
    compare("stress");
}

#[test]
fn mutated_risk_files_are_refused_or_read_as_they_are() {
    compare("risk");
}

#[test]
fn mutated_answers_of_the_register_are_refused_or_read_as_they_are() {
    compare("vigieau");
}

#[test]
fn mutated_analyses_are_refused_or_read_as_they_are() {
    compare("analyses");
}

#[test]
fn mutated_audits_are_refused_or_read_as_they_are() {
    compare("audits");
}

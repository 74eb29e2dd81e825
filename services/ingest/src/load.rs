//! One load from end to end: read and check, write in one transaction, report.

mod history;
mod job;
mod progress;
mod reading;

use std::io;

use water_database::writer::{Outcome, Writer};

use crate::dataset::{risk, stress, vigieau};
use crate::failure::{self, Failure};
use crate::load::job::Content;
use crate::load::reading::Reading;
use crate::source::Source;
use crate::summary::{Ending, Summary};

pub use job::Job;

/// Loads a file and reports: the problems are printed, the summary is returned, and the result is
/// the command's own.
pub async fn run(writer: &mut Writer, source: Source, job: Job) -> (Summary, Result<(), Failure>) {
    let mut reading = Reading::of(&source, &job);
    let result = attempt(writer, source, &job, &mut reading).await;
    reading.progress.finish_and_clear();
    // Nothing else can be said where even standard error cannot be written.
    let _ = reading.problems.print(&mut io::stderr().lock());
    match result {
        Ok(outcome) => {
            report_levels(&reading.file, &outcome);
            (reading.summary(&job, Ending::Failed).with(&outcome), Ok(()))
        }
        Err(failure @ (Failure::BadData { .. } | Failure::Refused(_))) => {
            (reading.summary(&job, Ending::Refused), Err(failure))
        }
        Err(failure) => (reading.summary(&job, Ending::Failed), Err(failure)),
    }
}

async fn attempt(
    writer: &mut Writer,
    source: Source,
    job: &Job,
    reading: &mut Reading,
) -> Result<Outcome, Failure> {
    let text = source.text(reading.progress.clone());
    let (text, digesting) = reading.readable(text)?;
    let loaded = match job.content {
        Content::Stress { as_of } => {
            let rows = stress::read(text, &mut reading.problems);
            let rows = reading.rows(rows)?;
            let load = reading.load(job, &digesting)?;
            writer.replace_stress(&rows, as_of, &load).await
        }
        Content::Risk { as_of } => {
            let rows = risk::read(text, job.now, &mut reading.problems);
            let rows = reading.rows(rows)?;
            let load = reading.load(job, &digesting)?;
            writer.replace_risk(&rows, as_of, &load).await
        }
        Content::Vigieau { as_of } => {
            let levels = vigieau::read(text, &mut reading.problems);
            let levels = reading.rows(levels)?;
            let load = reading.load(job, &digesting)?;
            writer.update_levels(&levels, as_of, &load).await
        }
        Content::History(history) => {
            return history::load(writer, history, text, &digesting, job, reading).await;
        }
    };
    loaded.map_err(|error| failure::of_load(error, &reading.file))
}

/// Says which levels a file did not change, where that may surprise.
fn report_levels(file: &str, outcome: &Outcome) {
    if !outcome.without_record.is_empty() {
        let codes = outcome.without_record.join(", ");
        eprintln!(
            "{file}: not stored, for there is no stress record of these départements: {codes}"
        );
    }
    if !outcome.kept.is_empty() {
        let codes = outcome.kept.join(", ");
        eprintln!("{file}: the stored level was kept, for the file gives none: {codes}");
    }
}

//! A load from end to end: read and check, write in one transaction, report.

mod check;
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
use crate::report;
use crate::source::Source;
use crate::summary::{Ending, Summary};

pub use check::check;
pub use job::{Job, Origin, in_time};

/// Loads a file and reports: prints the problems, and returns the summary and the command's result.
pub async fn run(writer: &mut Writer, source: Source, job: Job) -> (Summary, Result<(), Failure>) {
    let mut reading = Reading::new(&source, &job);
    let result = attempt(writer, source, &job, &mut reading).await;
    print_problems(&reading);
    match result {
        Ok(outcome) => {
            for note in notes(&outcome, job.guards.dry_run) {
                report::note(job.report.report, Some(&reading.file), &note);
            }
            (reading.summary(&job, Ending::Failed).with(&outcome), Ok(()))
        }
        Err(failure @ (Failure::BadData { .. } | Failure::Refused(_))) => {
            (reading.summary(&job, Ending::Refused), Err(failure))
        }
        Err(failure @ Failure::Uncertain(_)) => {
            (reading.summary(&job, Ending::Unknown), Err(failure))
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
    let text = source.text(job.reading.encoding, reading.progress.clone());
    let (text, digesting) = reading.readable(text)?;
    let loaded = match job.content {
        Content::Stress => {
            let rows = stress::read(text, &mut reading.problems);
            let rows = reading.rows(rows)?;
            let load = reading.load(job, &digesting)?;
            writer.replace_stress(&rows, job.as_of, &load).await
        }
        Content::Risk => {
            let rows = risk::read(text, job.now, &mut reading.problems);
            let rows = reading.rows(rows)?;
            let load = reading.load(job, &digesting)?;
            writer.replace_risk(&rows, job.as_of, &load).await
        }
        Content::Vigieau => {
            let answer = vigieau::read(text, &mut reading.problems);
            let answer = reading.answer(answer)?;
            let load = reading.load(job, &digesting)?;
            let (levels, unnamed) = (&answer.levels, answer.unnamed);
            writer
                .update_levels(levels, unnamed, job.as_of, &load)
                .await
        }
        Content::History(history) => {
            return history::load(writer, history, text, &digesting, job, reading).await;
        }
    };
    loaded.map_err(|error| failure::of_load(error, &reading.file))
}

/// Ends the progress bar and prints the file's problems.
fn print_problems(reading: &Reading) {
    reading.progress.finish_and_clear();
    // A failure of standard error itself cannot be reported.
    let _ = reading.problems.print(&mut io::stderr().lock());
}

/// Remarks about what may surprise in a load's outcome, and about the findings of a dry run.
fn notes(outcome: &Outcome, dry_run: bool) -> Vec<String> {
    let listed = |items: &[String], what: &str| {
        (!items.is_empty()).then(|| format!("{what}: {}", items.join(", ")))
    };
    let counted = |rows: u64, what: &str| (rows > 0).then(|| format!("{what}: {rows}"));
    let would = format!(
        "a load would insert {}, change {} and remove {} of {} rows",
        outcome.inserted, outcome.updated, outcome.removed, outcome.rows
    );
    let largest: Vec<_> = outcome.largest.iter().map(ToString::to_string).collect();
    let lifted = outcome.lifting_refused_at.map(|refused_at| {
        let loaded = if dry_run { "a load would accept that" } else { "are loaded" };
        format!("levels that ended in most départements were refused at {refused_at}: they still end, and {loaded}")
    });
    let notes = [
        dry_run.then_some(would),
        listed(
            &outcome.without_record,
            "stored, and served once there is a stress record of these départements",
        ),
        listed(
            &outcome.kept,
            "the stored level was kept, for the file gives none, an older one or one of the register's day",
        ),
        lifted,
        listed(&largest, "the largest differences"),
        counted(
            outcome.older,
            "rows that a file of a later date had, or that were deleted since: they stay as they are",
        ),
        counted(
            outcome.purged,
            "rows of purged accounts, which were skipped",
        ),
    ];
    notes.into_iter().flatten().collect()
}

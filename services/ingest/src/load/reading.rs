//! State of a file while it is read.

use std::io;

use indicatif::ProgressBar;
use water_database::writer::Load;

use crate::arguments::ReportArguments;
use crate::dataset::vigieau::Answer;
use crate::failure::Failure;
use crate::load::{Job, progress};
use crate::problem::Problems;
use crate::report::Form;
use crate::source::{self, Digesting, Source};
use crate::summary::{Ending, Summary};

/// Percentage of the measured records that may move far, unless the command line says otherwise.
const MAX_CHANGED: u8 = 50;

/// A file that is being read.
pub(super) struct Reading {
    pub(super) file: String,
    /// Name in the provenance, unless the command line gives one.
    label: String,
    pub(super) progress: ProgressBar,
    pub(super) problems: Problems,
    pub(super) row_count: u64,
    /// Départements whose entry in an answer of the register cannot be read.
    unreadable: Vec<String>,
    /// Codes in an answer of the register that are no département's.
    skipped: Vec<String>,
    sha256: Option<[u8; 32]>,
    /// Whether the input does not state its length, as a pipe does not.
    length_unknown: bool,
}

/// An empty list of problems, reported as the command line says.
fn problems(source: &Source, job: &Job) -> Problems {
    let problems = Problems::new(source.name.clone());
    let ReportArguments {
        report,
        all_problems,
    } = job.report;
    if all_problems || report == Form::Json {
        problems.written_to(report, io::stderr())
    } else {
        problems
    }
}

impl Reading {
    /// State before anything is read.
    pub(super) fn new(source: &Source, job: &Job) -> Self {
        Self {
            file: source.name.clone(),
            label: source.label.clone(),
            progress: progress::bar(job.content.name(), source.length),
            problems: problems(source, job),
            row_count: 0,
            unreadable: Vec::new(),
            skipped: Vec::new(),
            sha256: None,
            length_unknown: source.length.is_none(),
        }
    }

    /// Returns what was read; damaged gzip is the file's problem, any other failure to read is not.
    pub(super) fn readable<T>(&mut self, read: io::Result<T>) -> Result<T, Failure> {
        match read {
            Err(error) if source::is_damage(&error) => {
                self.problems.refuse_line(1, &source::damage(&error));
                Err(self.bad_data())
            }
            read => read.map_err(Failure::reading(self.file.as_ref())),
        }
    }

    /// Counts and returns all rows of a small file.
    pub(super) fn rows<R>(&mut self, read: io::Result<Vec<R>>) -> Result<Vec<R>, Failure> {
        let rows = self.readable(read)?;
        self.row_count = rows.len() as u64;
        Ok(rows)
    }

    /// Returns an answer of the register; its unreadable and skipped entries are noted for the summary.
    pub(super) fn answer(&mut self, read: io::Result<Answer>) -> Result<Answer, Failure> {
        let answer = self.readable(read)?;
        self.row_count = answer.levels.len() as u64;
        self.unreadable.clone_from(&answer.unreadable);
        self.skipped.clone_from(&answer.skipped);
        Ok(answer)
    }

    /// Returns the load's provenance and guards, once all bytes were read without a problem.
    pub(super) fn load(&mut self, job: &Job, digesting: &Digesting) -> Result<Load, Failure> {
        self.sha256 = digesting.digest();
        self.check_completeness(job, digesting);
        if self.problems.count() > 0 {
            return Err(self.bad_data());
        }
        // A reader without a problem has reached the end of its file.
        let sha256 = self.sha256.ok_or_else(|| {
            Failure::reading(self.file.as_ref())(io::ErrorKind::UnexpectedEof.into())
        })?;
        Ok(Load {
            sha256,
            source: job
                .origin
                .source
                .clone()
                .unwrap_or_else(|| self.label.clone()),
            source_url: job.origin.source_url.clone(),
            licence: job.origin.licence.clone(),
            synthetic: self.is_synthetic(job),
            loaded_by: job.guards.loaded_by.clone(),
            allow_missing: job.guards.allow_missing,
            allow_lifting: job.guards.allow_lifting,
            force: job.guards.force,
            max_changed: job.guards.max_changed.unwrap_or(MAX_CHANGED),
            dry_run: job.guards.dry_run,
        })
    }

    /// Refuses a file that seems cut off, or has another number of rows than `--rows` says.
    fn check_completeness(&mut self, job: &Job, digesting: &Digesting) {
        if let Some(rows) = job.reading.rows.filter(|&rows| rows != self.row_count) {
            let why = format!(
                "rows: {}, and --rows says {rows}: fetch the file again, or correct --rows",
                self.row_count
            );
            self.problems.refuse_line(1, &why);
        }
        if job.content.is_json() || self.sha256.is_none() {
            return;
        }
        match digesting.line_without_end() {
            Some((line, _)) if self.length_unknown => {
                self.problems.refuse_line(line, source::CUT_OFF);
            }
            Some((line, text)) => {
                let why = format!("{}: {text}", source::MAY_BE_CUT_OFF);
                self.problems.warn_line(line, &why);
            }
            None => {}
        }
    }

    fn is_synthetic(&self, job: &Job) -> bool {
        job.synthetic || self.problems.calls_itself_synthetic()
    }

    /// Failure of a file whose problems were noted.
    pub(super) fn bad_data(&self) -> Failure {
        Failure::BadData {
            file: self.file.clone(),
        }
    }

    /// The summary of a load that did nothing, which an [`Outcome`](water_database::writer::Outcome)
    /// fills in.
    pub(super) fn summary(&self, job: &Job, outcome: Ending) -> Summary {
        Summary {
            dataset: job.content.name(),
            file: self.file.clone(),
            outcome,
            as_of: job.as_of,
            rows: self.row_count,
            inserted: 0,
            updated: 0,
            unchanged: 0,
            removed: 0,
            derived: 0,
            kept: 0,
            unreadable: self.unreadable.clone(),
            skipped: self.skipped.clone(),
            without_record: Vec::new(),
            largest: Vec::new(),
            lifting_refused_at: None,
            older: 0,
            purged: 0,
            problems: self.problems.count(),
            warnings: self.problems.warning_count(),
            sha256: self.sha256.map(hex::encode),
            synthetic: self.is_synthetic(job),
            dry_run: job.guards.dry_run,
        }
    }
}

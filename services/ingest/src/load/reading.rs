//! A file while it is read: what is known of it so far.

use std::io;

use indicatif::ProgressBar;
use water_database::writer::Load;

use crate::arguments::ReportArguments;
use crate::failure::Failure;
use crate::load::{Job, progress};
use crate::problem::Problems;
use crate::report::Form;
use crate::source::{self, Digesting, Source};
use crate::summary::{Ending, Summary};
use crate::windows_1252::IsUtf8;

/// How many percent of the measured records may move far, unless the command line says otherwise.
const MAX_CHANGED: u8 = 50;

/// A file that is being read.
pub(super) struct Reading {
    pub(super) file: String,
    /// What the provenance calls it, if the command line does not.
    label: String,
    pub(super) progress: ProgressBar,
    pub(super) problems: Problems,
    pub(super) row_count: u64,
    sha256: Option<[u8; 32]>,
}

/// None yet, to be told as the command line says.
fn problems(source: &Source, job: &Job) -> Problems {
    let problems = Problems::of(source.name.clone());
    let ReportArguments {
        report,
        all_problems,
    } = job.report;
    match all_problems || report == Form::Json {
        true => problems.written_to(report, io::stderr()),
        false => problems,
    }
}

impl Reading {
    /// Nothing is read yet.
    pub(super) fn of(source: &Source, job: &Job) -> Self {
        Self {
            file: source.name.clone(),
            label: source.label.clone(),
            progress: progress::bar(job.content.name(), source.length),
            problems: problems(source, job),
            row_count: 0,
            sha256: None,
        }
    }

    /// What was read; damaged gzip is the file's problem, any other failure to read is not.
    pub(super) fn readable<T>(&mut self, read: io::Result<T>) -> Result<T, Failure> {
        match read {
            Err(error) if source::is_damage(&error) => {
                let why = match error.get_ref() {
                    Some(cause) if cause.is::<IsUtf8>() => cause.to_string(),
                    _ => "the gzip data is damaged or cut off".to_owned(),
                };
                self.problems.refuse_line(1, &why);
                Err(self.bad_data())
            }
            read => read.map_err(Failure::reading(self.file.as_ref())),
        }
    }

    /// All rows of a small file.
    pub(super) fn rows<R>(&mut self, read: io::Result<Vec<R>>) -> Result<Vec<R>, Failure> {
        let rows = self.readable(read)?;
        self.row_count = rows.len() as u64;
        Ok(rows)
    }

    /// The load's circumstances, once all bytes were read without a problem.
    pub(super) fn load(&mut self, job: &Job, digesting: &Digesting) -> Result<Load, Failure> {
        self.sha256 = digesting.digest();
        if self.problems.count() > 0 {
            return Err(self.bad_data());
        }
        // A reader without a problem has met the end of its file.
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
            force: job.guards.force,
            max_changed: job.guards.max_changed.unwrap_or(MAX_CHANGED),
            dry_run: job.guards.dry_run,
        })
    }

    fn is_synthetic(&self, job: &Job) -> bool {
        job.synthetic || self.problems.calls_itself_synthetic()
    }

    /// The file has the problems that were noted.
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
            without_record: Vec::new(),
            largest: Vec::new(),
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

//! What is to be loaded, and how carefully.

use water_database::writer::History;
use water_domain::Timestamp;

use crate::arguments::{CheckArguments, Dataset, GuardArguments, LoadArguments, ReportArguments};
use crate::cell::{NullWords, plausible};
use crate::dataset::history::Rules;
use crate::failure::Failure;

/// A load that was asked for.
pub struct Job {
    pub(super) content: Content,
    /// The moment that the data describes.
    pub(super) as_of: Timestamp,
    pub(super) source: Option<String>,
    pub(super) synthetic: bool,
    pub(super) company_names: NullWords,
    pub(super) report: ReportArguments,
    pub(super) guards: GuardArguments,
    pub(super) now: Timestamp,
}

/// What a file holds.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Stress,
    Risk,
    Vigieau,
    History(History),
}

impl Job {
    /// The job that a command line describes.
    pub fn of(arguments: &LoadArguments, now: Timestamp) -> Result<Self, Failure> {
        let content = Content::of(arguments.dataset);
        let as_of = arguments.as_of.ok_or(Failure::Usage(
            "--as-of is required: the date that the data describes, such as 2026-07-01",
        ))?;
        match content {
            Content::History(_) if arguments.guards.allow_missing => Err(Failure::Usage(
                "--allow-missing is of no use here: a history only adds and updates rows",
            )),
            Content::History(_) if arguments.guards.max_changed.is_some() => Err(Failure::Usage(
                "--max-changed is of no use here: a history has no records that could move",
            )),
            _ => Ok(()),
        }?;
        Ok(Self {
            content,
            as_of: in_time(as_of, now)?,
            source: arguments.source.clone(),
            synthetic: arguments.synthetic,
            company_names: content.company_names(arguments.allow_null_words)?,
            report: arguments.report,
            guards: arguments.guards.clone(),
            now,
        })
    }

    /// The judgement of a file that is not loaded, and has no date.
    pub fn to_check(arguments: &CheckArguments, now: Timestamp) -> Result<Self, Failure> {
        let content = Content::of(arguments.dataset);
        Ok(Self {
            content,
            as_of: now,
            source: None,
            synthetic: false,
            company_names: content.company_names(arguments.allow_null_words)?,
            report: arguments.report,
            guards: GuardArguments::default(),
            now,
        })
    }

    /// A load of generated data; `source` is its label.
    pub fn synthetic(
        dataset: Dataset,
        source: String,
        as_of: Timestamp,
        guards: &GuardArguments,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        Ok(Self {
            content: Content::of(dataset),
            as_of: in_time(as_of, now)?,
            source: Some(source),
            synthetic: true,
            company_names: NullWords::Refused,
            report: ReportArguments::default(),
            guards: guards.clone(),
            now,
        })
    }

    /// What the values of a history are judged by.
    pub(super) fn rules(&self) -> Rules {
        Rules {
            now: self.now,
            company_names: self.company_names,
        }
    }
}

fn in_time(as_of: Timestamp, now: Timestamp) -> Result<Timestamp, Failure> {
    plausible(as_of, now).map(|()| as_of).map_err(|_| {
        Failure::Usage("--as-of must be from the year 2000 on and at most a day ahead")
    })
}

impl Content {
    fn of(dataset: Dataset) -> Self {
        match dataset {
            Dataset::Stress => Self::Stress,
            Dataset::Risk => Self::Risk,
            Dataset::Vigieau => Self::Vigieau,
            Dataset::Analyses => Self::History(History::Analyses),
            Dataset::Audits => Self::History(History::Audits),
        }
    }

    fn company_names(self, allow_null_words: bool) -> Result<NullWords, Failure> {
        match (self, allow_null_words) {
            (_, false) => Ok(NullWords::Refused),
            (Self::History(_), true) => Ok(NullWords::Accepted),
            (Self::Stress | Self::Risk | Self::Vigieau, true) => Err(Failure::Usage(
                "--allow-null-words is of no use here: it is about companyName",
            )),
        }
    }

    /// The dataset's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stress => "stress",
            Self::Risk => "risk",
            Self::Vigieau => "vigieau",
            Self::History(history) => history.as_str(),
        }
    }
}

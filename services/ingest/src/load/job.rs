//! A load's content, settings and guards.

use water_database::writer::History;
use water_domain::Timestamp;

use crate::arguments::{
    CheckArguments, Dataset, GuardArguments, LoadArguments, ReadingArguments, ReportArguments,
};
use crate::as_of::AsOf;
use crate::cell::{NullWords, plausible};
use crate::dataset::history::Rules;
use crate::failure::Failure;
use crate::source::Encoding;

/// A requested load.
pub struct Job {
    pub(super) content: Content,
    /// The moment that the data describes.
    pub(super) as_of: Timestamp,
    pub(super) origin: Origin,
    pub(super) synthetic: bool,
    pub(super) reading: ReadingArguments,
    pub(super) report: ReportArguments,
    pub(super) guards: GuardArguments,
    pub(super) now: Timestamp,
}

/// Origin of data, in its loader's words.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Label; the file's name by default.
    pub source: Option<String>,
    /// Public link.
    pub source_url: Option<String>,
    /// Licence of the data.
    pub licence: Option<String>,
}

/// Content of a file.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Stress,
    Risk,
    Vigieau,
    History(History),
}

impl Job {
    /// The job that a command line describes.
    pub fn from_arguments(arguments: &LoadArguments, now: Timestamp) -> Result<Self, Failure> {
        let content = Content::from(arguments.dataset);
        let as_of = arguments.as_of.ok_or(Failure::Usage(
            "--as-of is required: the date that the data describes, such as 2026-07-01, or today",
        ))?;
        match content {
            Content::History(_) if arguments.guards.allow_missing => Err(Failure::Usage(
                "--allow-missing is of no use here: a history only adds and updates rows",
            )),
            Content::History(_) if arguments.guards.max_changed.is_some() => Err(Failure::Usage(
                "--max-changed is of no use here: a history has no records that could move",
            )),
            Content::Risk | Content::History(_) if arguments.guards.allow_lifting => {
                Err(Failure::Usage(
                    "--allow-lifting is of no use here: it is about alert levels, in vigieau and stress",
                ))
            }
            _ => Ok(()),
        }?;
        Ok(Self {
            content,
            as_of: in_time(as_of, now)?,
            origin: Origin {
                source: arguments.source.clone(),
                source_url: arguments.source_url.clone(),
                licence: arguments.licence.clone(),
            },
            synthetic: arguments.synthetic,
            reading: content.applicable(arguments.reading)?,
            report: arguments.report,
            guards: arguments.guards.clone(),
            now,
        })
    }

    /// The check of a file that is not loaded, and has no date.
    pub fn to_check(arguments: &CheckArguments, now: Timestamp) -> Result<Self, Failure> {
        let content = Content::from(arguments.dataset);
        Ok(Self {
            content,
            as_of: now,
            origin: Origin::default(),
            synthetic: false,
            reading: content.applicable(arguments.reading)?,
            report: arguments.report,
            guards: GuardArguments::default(),
            now,
        })
    }

    /// A load of the program's own data.
    pub fn built_in(
        dataset: Dataset,
        origin: Origin,
        synthetic: bool,
        as_of: AsOf,
        guards: &GuardArguments,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        Ok(Self {
            content: Content::from(dataset),
            as_of: in_time(as_of, now)?,
            origin,
            synthetic,
            reading: ReadingArguments::default(),
            report: ReportArguments::default(),
            guards: guards.clone(),
            now,
        })
    }

    /// Rules for the values of a history.
    pub(super) fn rules(&self) -> Rules {
        Rules {
            now: self.now,
            company_names: if self.reading.allow_null_words {
                NullWords::Accepted
            } else {
                NullWords::Refused
            },
            allow_empty: self.reading.allow_empty,
        }
    }
}

/// Returns the moment that a command names, unless it is implausible.
pub fn in_time(as_of: AsOf, now: Timestamp) -> Result<Timestamp, Failure> {
    let as_of = as_of.at(now);
    plausible(as_of, now).map(|()| as_of).map_err(|_| {
        Failure::Usage("--as-of must be from the year 2000 on and at most a day ahead")
    })
}

impl From<Dataset> for Content {
    fn from(dataset: Dataset) -> Self {
        match dataset {
            Dataset::Stress => Self::Stress,
            Dataset::Risk => Self::Risk,
            Dataset::Vigieau => Self::Vigieau,
            Dataset::Analyses => Self::History(History::Analyses),
            Dataset::Audits => Self::History(History::Audits),
        }
    }
}

impl Content {
    /// Returns `reading`, unless a flag of it has no meaning for such a file.
    fn applicable(self, reading: ReadingArguments) -> Result<ReadingArguments, Failure> {
        let history = matches!(self, Self::History(_));
        match self {
            _ if reading.allow_null_words && !history => Err(Failure::Usage(
                "--allow-null-words is of no use here: it is about companyName",
            )),
            _ if reading.allow_empty && !history => Err(Failure::Usage(
                "--allow-empty is of no use here: a file without rows would remove everything",
            )),
            Self::Vigieau if reading.encoding != Encoding::Utf8 => Err(Failure::Usage(
                "--encoding is of no use here: JSON is UTF-8",
            )),
            _ => Ok(reading),
        }
    }

    /// Whether a file with this content is JSON, whose last bracket is its end.
    pub(super) fn is_json(self) -> bool {
        matches!(self, Self::Vigieau)
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

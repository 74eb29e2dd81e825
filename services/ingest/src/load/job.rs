//! What is to be loaded, and how carefully.

use water_database::writer::History;
use water_domain::Timestamp;

use crate::arguments::{Dataset, GuardArguments, LoadArguments};
use crate::cell::plausible;
use crate::failure::Failure;

/// A load that was asked for.
pub struct Job {
    pub(super) content: Content,
    pub(super) source: Option<String>,
    pub(super) synthetic: bool,
    pub(super) guards: GuardArguments,
    pub(super) now: Timestamp,
}

/// What a file holds; the départements' datasets have a date.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Stress { as_of: Timestamp },
    Risk { as_of: Timestamp },
    Vigieau { as_of: Timestamp },
    History(History),
}

impl Job {
    /// The job that a command line describes.
    pub fn of(arguments: &LoadArguments, now: Timestamp) -> Result<Self, Failure> {
        Ok(Self {
            content: Content::of(arguments.dataset, arguments.as_of, now)?,
            source: arguments.source.clone(),
            synthetic: arguments.synthetic,
            guards: arguments.guards.clone(),
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
            content: Content::of(dataset, Some(as_of), now)?,
            source: Some(source),
            synthetic: true,
            guards: guards.clone(),
            now,
        })
    }
}

impl Content {
    fn of(dataset: Dataset, as_of: Option<Timestamp>, now: Timestamp) -> Result<Self, Failure> {
        let dated = |content: fn(Timestamp) -> Self| match as_of {
            None => Err(Failure::Usage(
                "--as-of is required: the date that the data describes, such as 2026-07-01",
            )),
            Some(date) if plausible(date, now).is_err() => Err(Failure::Usage(
                "--as-of must be from the year 2000 on and at most a day ahead",
            )),
            Some(date) => Ok(content(date)),
        };
        match dataset {
            Dataset::Stress => dated(|as_of| Self::Stress { as_of }),
            Dataset::Risk => dated(|as_of| Self::Risk { as_of }),
            Dataset::Vigieau => dated(|as_of| Self::Vigieau { as_of }),
            Dataset::Analyses => Ok(Self::History(History::Analyses)),
            Dataset::Audits => Ok(Self::History(History::Audits)),
        }
    }

    /// The dataset's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stress { .. } => "stress",
            Self::Risk { .. } => "risk",
            Self::Vigieau { .. } => "vigieau",
            Self::History(history) => history.as_str(),
        }
    }

    /// The date that the data describes.
    pub(super) fn as_of(self) -> Option<Timestamp> {
        match self {
            Self::Stress { as_of } | Self::Risk { as_of } | Self::Vigieau { as_of } => Some(as_of),
            Self::History(_) => None,
        }
    }
}

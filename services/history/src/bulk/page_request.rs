//! Parameters of a request for a bulk page.

use water_database::walk::{Cursor, Start, Token};
use water_domain::Page;
use water_http::problem::{Text, texts};
use water_http::{Problem, Query};

use crate::bulk::opaque::{self, Unusable, Whose};

/// The requested page.
pub struct PageRequest {
    /// Starting point of the page.
    pub start: Start,
    /// Parameter that gives the starting point.
    pub parameter: &'static str,
    /// Largest number of rows.
    pub limit: u16,
}

const CURSOR: &str = "cursor";
const CHANGED_SINCE: &str = "changedSince";

impl PageRequest {
    /// Reads `limit`, `cursor` and `changedSince`, and refuses an `offset` other than 0.
    pub fn read(query: &Query<'_>, whose: Whose<'_>) -> Result<Self, Problem> {
        // Clients that are generated send 0 by themselves. It passes over nothing, so there is nothing to refuse.
        let offset = Page::parse(None, query.get("offset")?);
        if !matches!(offset, Ok(Page { offset: 0, .. })) {
            let detail = texts::offset_with_json_only();
            return Err(Problem::invalid_parameter("offset", detail));
        }
        let limit = Page::bulk_limit(query.get("limit")?).map_err(|error| {
            Problem::invalid_parameter(error.parameter(), texts::page_rule(error))
        })?;
        let (cursor, since) = (query.get(CURSOR)?, query.get(CHANGED_SINCE)?);
        let (start, parameter) = match (cursor, since) {
            (None, None) => (Start::Rows, CURSOR),
            (Some(text), None) => (Start::At(read_cursor(text, whose)?), CURSOR),
            (None, Some(text)) => (Start::Changes(read_token(text, whose)?), CHANGED_SINCE),
            (Some(_), Some(_)) => {
                let detail = texts::cursor_or_token();
                return Err(Problem::invalid_parameter(CHANGED_SINCE, detail));
            }
        };
        Ok(Self {
            start,
            parameter,
            limit,
        })
    }
}

/// Refuses the parameters of bulk pages in a request for JSON.
pub fn refuse_with_json(query: &Query<'_>) -> Result<(), Problem> {
    for parameter in [CURSOR, CHANGED_SINCE] {
        if query.get(parameter)?.is_some() {
            let detail = texts::not_with_json(parameter);
            return Err(Problem::invalid_parameter(parameter, detail));
        }
    }
    Ok(())
}

fn read_cursor(text: &str, whose: Whose<'_>) -> Result<Cursor, Problem> {
    opaque::read_cursor(text, whose).map_err(|why| unusable(why, CURSOR, texts::foreign_cursor()))
}

fn read_token(text: &str, whose: Whose<'_>) -> Result<Token, Problem> {
    opaque::read_token(text, whose)
        .map_err(|why| unusable(why, CHANGED_SINCE, texts::foreign_token()))
}

fn unusable(why: Unusable, parameter: &'static str, detail: Text) -> Problem {
    match why {
        Unusable::Foreign => Problem::invalid_parameter(parameter, detail),
        Unusable::OtherRelease => Problem::cursor_expired(parameter),
    }
}

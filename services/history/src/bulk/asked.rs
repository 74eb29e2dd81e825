//! What a request for a bulk page asks for.

use water_database::walk::{Cursor, Start, Token};
use water_domain::Page;
use water_http::{Problem, Query};

use crate::bulk::opaque::{self, Whose};

/// The page that is asked for.
pub struct Asked {
    /// Where it starts.
    pub start: Start,
    /// Whether it is the first of its walk.
    pub begins: bool,
    /// The parameter that says where it starts.
    pub parameter: &'static str,
    /// Its largest number of rows.
    pub limit: u16,
}

const CURSOR: &str = "cursor";
const CHANGED_SINCE: &str = "changedSince";

impl Asked {
    /// Reads `limit`, `cursor` and `changedSince`.
    pub fn read(query: &Query<'_>, whose: Whose<'_>) -> Result<Self, Problem> {
        if query.get("offset")?.is_some() {
            let detail = "offset is for JSON only; here pages follow each other by the Link \
                          header's next.";
            return Err(Problem::invalid_parameter("offset", detail));
        }
        let limit = Page::bulk_limit(query.get("limit")?)
            .map_err(|error| Problem::invalid_parameter(error.parameter(), error.to_string()))?;
        let (cursor, since) = (query.get(CURSOR)?, query.get(CHANGED_SINCE)?);
        let (start, parameter) = match (cursor, since) {
            (None, None) => (Start::Rows, CURSOR),
            (Some(text), None) => (Start::At(read_cursor(text, whose)?), CURSOR),
            (None, Some(text)) => (Start::Changes(read_token(text, whose)?), CHANGED_SINCE),
            (Some(_), Some(_)) => {
                let detail = "changedSince begins a walk and cursor goes on with one: \
                              send one of them.";
                return Err(Problem::invalid_parameter(CHANGED_SINCE, detail));
            }
        };
        Ok(Self {
            begins: cursor.is_none(),
            start,
            parameter,
            limit,
        })
    }
}

/// Refuses the parameters of bulk pages where JSON is answered.
pub fn refuse_with_json(query: &Query<'_>) -> Result<(), Problem> {
    for parameter in [CURSOR, CHANGED_SINCE] {
        if query.get(parameter)?.is_some() {
            let detail = format!(
                "{parameter} needs another form than JSON: \
                 send Accept: text/csv or Accept: application/x-ndjson."
            );
            return Err(Problem::invalid_parameter(parameter, detail));
        }
    }
    Ok(())
}

fn read_cursor(text: &str, whose: Whose<'_>) -> Result<Cursor, Problem> {
    opaque::read_cursor(text, whose).ok_or_else(|| {
        let detail = "cursor must be that of a Link header of this resource and account, \
                      unchanged.";
        Problem::invalid_parameter(CURSOR, detail)
    })
}

fn read_token(text: &str, whose: Whose<'_>) -> Result<Token, Problem> {
    opaque::read_token(text, whose).ok_or_else(|| {
        let detail = "changedSince must be an X-Changes-Token of this resource and account, \
                      unchanged; it is no time.";
        Problem::invalid_parameter(CHANGED_SINCE, detail)
    })
}

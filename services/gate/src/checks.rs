//! Checks before authentication, free of charge: refuses requests that two parties could read differently, that are too
//! large, or that would leave a key in a log.

mod query;

use water_http::{Head, Problem, Query, RequestHead};

pub use query::KeyInQuery;

/// Runs all checks, in the order of their cost, and returns the decoded query.
pub fn before_authentication<'a>(
    request: &'a RequestHead,
    keys: &KeyInQuery<'_>,
) -> Result<Query<'a>, Problem> {
    let query = Head::default().check(request)?;
    keys.refuse(&query)?;
    Ok(query)
}

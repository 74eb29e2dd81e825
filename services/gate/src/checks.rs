//! What the gate refuses before authentication, free of charge: requests that two parties could
//! read differently, that are too large, or that would leave a key in a log.

mod query;

use water_http::{Head, Problem, Query, Received};

pub use query::KeyInQuery;

/// All checks, in the order of their cost; the decoded query is what is left of them.
pub fn before_authentication<'a>(
    request: &'a Received,
    keys: &KeyInQuery<'_>,
) -> Result<Query<'a>, Problem> {
    let query = Head::default().check(request)?;
    keys.refuse(&query)?;
    Ok(query)
}

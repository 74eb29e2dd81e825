//! Differences between the two histories.

use serde::Serialize;
use water_database::history::Slice;
use water_database::walk;
use water_database::writer::History;
use water_database::{Database, Error};
use water_domain::{AccountId, Page};
use water_http::Route;

/// A record of a history; serialised in the API's order of fields.
pub trait Record: Serialize + Send + Sync + Sized {
    /// Route of the history.
    const ROUTE: &'static Route;
    /// The history.
    const HISTORY: History;
    /// Names of the fields, as they are serialised.
    const FIELDS: [&'static str; 7];

    /// A page of an account's records, newest first.
    fn page(
        database: &Database,
        account: &AccountId,
        page: Page,
    ) -> impl Future<Output = Result<Slice<Self>, Error>> + Send;

    /// Converts a row of a walk.
    fn met(row: walk::Record<'_>) -> Self;
}

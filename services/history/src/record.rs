//! What the two histories differ in.

use serde::Serialize;
use water_database::history::Slice;
use water_database::walk;
use water_database::writer::History;
use water_database::{Database, Error};
use water_domain::{AccountId, Page};

/// A record that stands in a history; serialised in the API's order of fields.
pub trait Record: Serialize + Send + Sync + Sized {
    /// Where the history is asked for.
    const PATH: &'static str;
    /// The history.
    const HISTORY: History;
    /// The names of its fields, as they are serialised.
    const FIELDS: [&'static str; 7];

    /// A page of an account's records, newest first.
    fn page(
        database: &Database,
        account: &AccountId,
        page: Page,
    ) -> impl Future<Output = Result<Slice<Self>, Error>> + Send;

    /// A row that a walk met.
    fn met(row: walk::Record<'_>) -> Self;
}

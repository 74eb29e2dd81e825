//! The route of one history: a page of the calling account's records.

use serde::Serialize;
use warp::{Filter, Rejection, Reply};
use water_database::history::Slice;
use water_database::{Database, Error};
use water_domain::{AccountId, Page};
use water_http::{Identity, Problem, Query, Representation};

use crate::envelope;

/// A record that stands in a history; serialised in the API's order of fields.
pub trait Record: Serialize + Send + Sync + Sized {
    /// Where the history is asked for.
    const PATH: &'static str;

    /// A page of an account's records, newest first.
    fn page(
        database: &Database,
        account: &AccountId,
        page: Page,
    ) -> impl Future<Output = Result<Slice<Self>, Error>> + Send;
}

/// `GET PATH?limit=&offset=` answers `{total, limit, offset, data}` with a page of the calling
/// account's records, newest first.
pub fn route<R: Record>(
    database: Database,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    water_http::get(R::PATH)
        .and(water_http::identity())
        .and(water_http::query())
        .and(warp::any().map(move || database.clone()))
        .then(list::<R>)
}

async fn list<R: Record>(
    identity: Identity,
    query: Query<'static>,
    database: Database,
) -> Result<Representation, Problem> {
    let page = query.page()?;
    let slice = R::page(&database, &identity.account, page).await?;
    Ok(envelope::answer(R::PATH, page, &slice))
}

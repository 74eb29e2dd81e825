//! The route of one history: a page of the calling account's records.

use warp::{Filter, Rejection, Reply};
use water_database::Database;
use water_domain::Format;
use water_http::{Identity, Problem, Query, Representation};

use crate::bulk::{self, Bulk};
use crate::record::Record;
use crate::{envelope, links};

/// `GET ROUTE?limit=&offset=` answers `{total, limit, offset, data}` with a page of the calling
/// account's records, newest first; in another form than JSON, a bulk page.
pub fn route<R: Record>(
    database: Database,
    bulk: Bulk,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    water_http::get(R::ROUTE)
        .and(water_http::identity())
        .and(water_http::format())
        .and(warp::any().map(move || database.clone()))
        .and(warp::any().map(move || bulk.clone()))
        .then(list::<R>)
}

async fn list<R: Record>(
    query: Result<Query<'static>, Problem>,
    identity: Identity,
    format: Format,
    database: Database,
    bulk: Bulk,
) -> Result<Representation, Problem> {
    let query = query?;
    if format != Format::Json {
        return bulk.page::<R>(&identity, &query, format).await;
    }
    bulk::refuse_with_json(&query)?;
    let page = query.page()?;
    let form = links::form(&query, format)?;
    let slice = R::page(&database, &identity.account, page).await?;
    Ok(envelope::answer(R::ROUTE.path, page, &slice, form))
}

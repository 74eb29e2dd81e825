//! `GET /api/v1/sources`: origin and licence of each dataset.

use serde::Serialize;
use warp::{Filter, Rejection, Reply};
use water_database::Database;
use water_domain::SourceRecord;
use water_http::representation::CACHE_HISTORY;
use water_http::route::SOURCES;
use water_http::{Identity, Problem, Query, Representation, json};

/// `{data: [source]}`: one for each dataset that was ever loaded.
#[derive(Serialize)]
struct Envelope {
    data: Vec<SourceRecord>,
}

/// `GET /api/v1/sources` answers `{data}`; a history's count is the calling account's.
pub fn route(
    database: Database,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    water_http::get(&SOURCES)
        .and(water_http::identity())
        .and(warp::any().map(move || database.clone()))
        .then(list)
}

async fn list(
    query: Result<Query<'static>, Problem>,
    identity: Identity,
    database: Database,
) -> Result<Representation, Problem> {
    query?;
    let data = water_database::sources::sources(&database, &identity.account).await?;
    Ok(Representation::new(
        json::to_vec(&Envelope { data }),
        CACHE_HISTORY,
    ))
}

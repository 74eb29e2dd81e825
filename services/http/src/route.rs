//! A route is one path, compared byte for byte: nothing is normalised.

use warp::path::FullPath;
use warp::{Filter, Rejection};

/// Accepts a GET of exactly `path`, without a trailing slash, dots or percent-encoding (warp's own path filters would
/// let a trailing slash pass). The method is checked before the path.
pub fn get(path: &'static str) -> impl Filter<Extract = (), Error = Rejection> + Clone {
    let exact = move |asked: FullPath| async move {
        if asked.as_str() == path {
            Ok(())
        } else {
            Err(warp::reject::not_found())
        }
    };
    warp::get()
        .and(warp::path::full())
        .and_then(exact)
        .untuple_one()
}

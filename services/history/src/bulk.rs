//! Bulk pages of a history, CSV or NDJSON: all of an account's rows, or its changes since a token, in few requests.

mod body;
mod opaque;
mod page_request;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use water_database::Database;
use water_database::walk::{Cursor, Place, Walk, WalkError};
use water_domain::Format;
use water_http::representation::{CACHE_HISTORY, DESCRIBED_BY};
use water_http::{Identity, Problem, Query, Representation};

use crate::bulk::body::Body;
use crate::bulk::opaque::Whose;
use crate::bulk::page_request::PageRequest;
use crate::bulk::turns::Turns;
use crate::links;
use crate::record::Record;

pub use page_request::refuse_with_json;

/// Rows read at once: a page of thousands neither waits for its last row nor is in memory twice, and pages of JSON,
/// which the same thread answers, wait for few rows. With 500 the slowest of 100 took four times as long during a
/// walk as without, with 100 two to three times; the walk is slower by a fifth.
const PORTION: usize = 100;

/// Longest time until an answer, with the wait for a turn. It is below the gate's 5 s, so that the gate receives the
/// reason for a missing answer. A page that takes longer is refused and not cut: a client whose history fits the limit
/// would take the rows that came for all of them.
const DEADLINE: Duration = Duration::from_millis(4500);

/// State shared by all bulk pages. Cheap to clone.
#[derive(Clone)]
pub struct Bulk {
    database: Database,
    turns: Arc<Turns>,
}

impl Bulk {
    /// Makes bulk pages that use at most a quarter of the pool's connections.
    pub fn new(database: Database, connections: usize) -> Self {
        let turns = Arc::new(Turns::new((connections / 4).max(1)));
        Self { database, turns }
    }

    /// Answers a page of the calling account's history in this form.
    pub async fn page<R: Record>(
        &self,
        identity: &Identity,
        query: &Query<'_>,
        format: Format,
    ) -> Result<Representation, Problem> {
        let whose = Whose {
            history: R::HISTORY,
            account: &identity.account,
        };
        let asked = PageRequest::read(query, whose)?;
        let form = links::form(query, format)?;
        let page = timeout(DEADLINE, self.read::<R>(whose, asked, format, form)).await;
        page.unwrap_or_else(|_| Err(Problem::bulk_slow()))
    }

    async fn read<R: Record>(
        &self,
        whose: Whose<'_>,
        asked: PageRequest,
        format: Format,
        form: &str,
    ) -> Result<Representation, Problem> {
        let Some(_turn) = Arc::clone(&self.turns).take(whose.account).await else {
            return Err(Problem::bulk_busy());
        };
        let PageRequest {
            start,
            parameter,
            limit,
        } = asked;
        let problem = |error: WalkError| match error {
            WalkError::Expired => Problem::cursor_expired(parameter),
            WalkError::Database(error) => error.into(),
        };
        let walk = Walk::start(&self.database, whose.history, whose.account, start);
        let walk = walk.await.map_err(problem)?;
        let total = walk.total();
        let body = Body::new::<R>(format, walk.tells_changes());
        let (walk, body, last) = fill(walk, body, limit.into()).await?;
        let (token, next) = walk.end(last).await.map_err(problem)?;
        let page = off_thread(move || Representation::new(body.end(), CACHE_HISTORY)).await?;
        let page = page
            .in_format(format)
            .with_link(link::<R>(limit, next, whose, form))
            .with_changes_token(ascii(opaque::token(&token, whose)));
        Ok(match total {
            Some(total) => page.with_total(total),
            None => page,
        })
    }
}

/// Fills a page up to its limit or its largest size, and returns its last place if another page follows. While rows are
/// written, the next ones are read.
async fn fill(
    walk: Walk,
    mut body: Body,
    limit: usize,
) -> Result<(Walk, Body, Option<Place>), Problem> {
    let mut left = limit;
    let (mut walk, mut portion) = walk.portion(left.min(PORTION)).await?;
    let mut last = None;
    loop {
        left -= portion.len();
        let more = portion.has_more();
        let writing = off_thread(move || {
            let added = body.add(&portion)?;
            Ok::<_, water_database::Error>((body, added))
        });
        let next = if more && left > 0 {
            walk.portion(left.min(PORTION))
        } else {
            let (body, added) = writing.await??;
            last = added.last.or(last);
            return Ok((walk, body, last.filter(|_| more || added.full)));
        };
        let (written, next) = tokio::join!(writing, next);
        let added;
        ((body, added), (walk, portion)) = (written??, next?);
        last = added.last.or(last);
        if added.full {
            return Ok((walk, body, last));
        }
    }
}

/// Runs work on thousands of rows where it does not delay other requests.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    spawn_blocking(work).await.map_err(Problem::internal)
}

fn link<R: Record>(limit: u16, next: Option<Cursor>, whose: Whose<'_>, form: &str) -> HeaderValue {
    let next = next.map_or_else(String::new, |cursor| {
        let cursor = opaque::cursor(&cursor, whose);
        format!(
            "<{}?limit={limit}&cursor={cursor}{form}>; rel=\"next\", ",
            R::ROUTE.path
        )
    });
    ascii(format!("{next}{DESCRIBED_BY}"))
}

fn ascii(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("paths, digits and base64 are visible ASCII")
}

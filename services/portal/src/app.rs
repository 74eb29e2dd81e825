//! The portal: every request passes the same checks, in the order of the lines in
//! [`Portal::decide`].

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::{Stream, TryStreamExt};
use http::Method;
use tokio::time::timeout;
use warp::{Filter, Rejection};
use water_domain::{KeyPrefix, Timestamp};
use water_http::problem::or_internal;
use water_http::{Head, Problem, Query, Received, Spans};
use water_keystore::Quotas;

use crate::asked::{Asked, Response};
use crate::clock;
use crate::data::{self, Data};
use crate::journal::Journal;
use crate::keys::{self, Keys};
use crate::member::Member;
use crate::origin::PortalUrl;
use crate::pages::Pages;
use crate::plans::Plans;
use crate::route::Route;
use crate::session::Session;
use crate::{quota, usage};

/// The largest body.
const MAX_BODY: usize = 4 * 1024;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(10);
/// The longest target of the callback: some providers' codes exceed 2 KiB.
const MAX_CALLBACK: usize = 8 * 1024;

/// What requests are judged by and answered from.
#[derive(Debug)]
pub struct Portal {
    /// The portal's own origin.
    pub url: PortalUrl,
    /// What generated keys begin with.
    pub prefix: KeyPrefix,
    /// The plans of the WaterDataApi.
    pub plans: Plans,
    /// The accounts' keys.
    pub keys: Keys,
    /// What the accounts have left of their plans.
    pub quotas: Quotas,
    /// The services' answers.
    pub data: Data,
    /// The pages.
    pub pages: Pages,
    /// Makes spans of requests, if they are exported.
    pub spans: Spans,
}

/// The portal as a warp filter. It takes every request: one that has no route gets its answer too.
pub fn filter(
    portal: Arc<Portal>,
) -> impl Filter<Extract = (Response,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    warp::ext::get::<Arc<Received>>()
        .and(warp::body::stream())
        .then(move |request: Arc<Received>, body| {
            let portal = Arc::clone(&portal);
            Box::pin(async move { portal.answer(&request, body).await })
        })
}

impl Portal {
    async fn answer<B: Buf>(
        &self,
        request: &Received,
        body: impl Stream<Item = Result<B, warp::Error>>,
    ) -> Response {
        let mut journal = Journal::begin(request, &self.spans);
        let outcome = or_internal(self.decide(request, body, &mut journal)).await;
        let outcome = outcome.flatten();
        let reason = outcome.as_ref().err().map(Problem::code);
        let answer = outcome.unwrap_or_else(|problem| problem.into_response(&request.id));
        journal.close(request, &answer, reason);
        answer
    }

    async fn decide<B: Buf>(
        &self,
        request: &Received,
        body: impl Stream<Item = Result<B, warp::Error>>,
        journal: &mut Journal,
    ) -> Result<Response, Problem> {
        let path = request.uri.path();
        let route = Route::of(path);
        let query = head(&route, &request.method).check(request)?;
        journal.route = route.name();
        if let Some(methods) = route.methods() {
            let has = |method| method == request.method.as_str();
            if !methods.split(", ").any(has) {
                return Err(Problem::only(methods));
            }
        }
        let body = read(body, MAX_BODY).await?;
        match route {
            Route::Account { account, rest } => {
                self.url.check(&request.method, &request.headers)?;
                let session = self.session(request).await?;
                let member = Member::of(&session, account, &self.plans).ok_or_else(not_found)?;
                let asked = Asked {
                    received: request,
                    path: &rest,
                    query: &query,
                    body: &body,
                };
                journal.account = Some((member.account().clone(), member.plan().clone()));
                self.account(&member, &asked, clock::now()).await
            }
            _ => Err(not_found()),
        }
    }

    /// What an account has.
    async fn account(
        &self,
        member: &Member,
        asked: &Asked<'_>,
        now: Timestamp,
    ) -> Result<Response, Problem> {
        match asked.path {
            ["keys", ..] => keys::answer(&self.keys, member, asked, now).await,
            ["quota"] => quota::answer(&self.quotas, &self.plans, member, asked).await,
            ["usage"] => usage::answer(&self.keys.usage, member, asked, now).await,
            path => match data::route(path) {
                Some(route) => data::answer(&self.data, route, member, asked, now).await,
                None => Err(not_found()),
            },
        }
    }

    async fn session(&self, _request: &Received) -> Result<Session, Problem> {
        Err(Problem::sign_in_required())
    }
}

/// What a request's head may be.
fn head(route: &Route<'_>, method: &Method) -> Head {
    let target = match route {
        Route::Callback => MAX_CALLBACK,
        _ => Head::default().target,
    };
    Head {
        target,
        body: !matches!(*method, Method::GET | Method::HEAD),
    }
}

async fn read<B: Buf>(
    body: impl Stream<Item = Result<B, warp::Error>>,
    most: usize,
) -> Result<Bytes, Problem> {
    let collected = body
        .map_err(|_| Problem::invalid_body("It ends early."))
        .try_fold(BytesMut::new(), async |mut read, mut piece| {
            if read.len() + piece.remaining() > most {
                return Err(Problem::body_too_large(most));
            }
            read.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
            Ok(read)
        });
    match timeout(BODY_TIME, collected).await {
        Ok(read) => Ok(read?.freeze()),
        Err(_) => Err(Problem::invalid_body("It did not arrive in time.")),
    }
}

fn not_found() -> Problem {
    Problem::not_found("There is no such path.")
}

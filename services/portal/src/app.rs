//! The portal: every request passes the same checks, in the order of the lines in
//! [`Portal::decide`].

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::{Stream, TryStreamExt};
use http::header::CONNECTION;
use http::{HeaderName, HeaderValue, Method};
use tokio::time::timeout;
use warp::{Filter, Rejection};
use water_domain::{KeyPrefix, Timestamp};
use water_http::problem::{or_internal, texts};
use water_http::{Code, Head, Language, Problem, RequestHead, Spans};
use water_keystore::Quotas;

use crate::account_request::{AccountRequest, Response};
use crate::budgets::Budgets;
use crate::clock;
use crate::data::{self, Data};
use crate::journal::Journal;
use crate::keys::{self, Keys};
use crate::member::Member;
use crate::metrics::Metrics;
use crate::origin::PortalUrl;
use crate::pages::{self, Pages};
use crate::plans::Plans;
use crate::route::Route;
use crate::session::Session;
use crate::sessions::{Sessions, Use};
use crate::sign_in::SignIn;
use crate::sign_out::SignOut;
use crate::{headers, key_text, origin, quota, reader, usage};

/// The largest body.
const MAX_BODY: usize = 4 * 1024;
/// The largest form with a logout token of 16 KiB.
const MAX_LOGOUT: usize = 20 * 1024;
/// Time within which a body has to arrive.
const BODY_TIME: Duration = Duration::from_secs(10);
/// The longest target of the callback: some providers' codes exceed 2 KiB.
const MAX_CALLBACK: usize = 8 * 1024;
/// Header field of requests that a page sends by itself, which are no sign of its reader.
const X_POLL: HeaderName = HeaderName::from_static("x-poll");

/// Parts that judge and answer requests.
#[derive(Debug)]
pub struct Portal {
    /// The portal's own origin.
    pub url: PortalUrl,
    /// Prefix of generated keys.
    pub prefix: KeyPrefix,
    /// The plans of the WaterDataApi.
    pub plans: Plans,
    /// The accounts' keys.
    pub keys: Keys,
    /// Remaining requests of the accounts' plans.
    pub quotas: Quotas,
    /// The services' answers.
    pub data: Data,
    /// Signs people in.
    pub sign_in: SignIn,
    /// Signs people out.
    pub sign_out: SignOut,
    /// Sessions of the people who are signed in.
    pub sessions: Sessions,
    /// Limits on requests of addresses and sessions.
    pub budgets: Budgets,
    /// The pages.
    pub pages: Pages,
    /// Counters.
    pub metrics: Metrics,
    /// Makes spans of requests, if they are exported.
    pub spans: Spans,
}

/// The portal as a warp filter. It takes every request: one that has no route gets its answer too.
pub fn filter(
    portal: Arc<Portal>,
) -> impl Filter<Extract = (Response,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    warp::ext::get::<Arc<RequestHead>>()
        .and(warp::body::stream())
        .then(move |request: Arc<RequestHead>, body| {
            let portal = Arc::clone(&portal);
            Box::pin(async move { portal.answer(&request, body).await })
        })
}

impl Portal {
    async fn answer<B: Buf>(
        &self,
        request: &RequestHead,
        body: impl Stream<Item = Result<B, warp::Error>>,
    ) -> Response {
        let mut journal = Journal::begin(request, &self.spans);
        // A panic is a bug like any other: answered, counted and logged.
        let outcome = or_internal(self.decide(request, body, &mut journal)).await;
        let outcome = outcome.flatten();
        let reason = outcome.as_ref().err().map(Problem::code);
        let mut answer = outcome.unwrap_or_else(|problem| {
            problem.into_response(&request.id, Language::preferred(&request.headers))
        });
        headers::protect(answer.headers_mut(), &request.id);
        if matches!(reason, Some(Code::BodyNotAllowed | Code::BodyTooLarge)) {
            // Two parties could read the beginning of the next request differently.
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        self.metrics.request(journal.route, answer.status());
        journal.close(request, &answer, reason);
        answer
    }

    async fn decide<B: Buf>(
        &self,
        request: &RequestHead,
        body: impl Stream<Item = Result<B, warp::Error>>,
        journal: &mut Journal,
    ) -> Result<Response, Problem> {
        let route = Route::from_path(request.uri.path());
        let query = head(&route, &request.method).check(request)?;
        key_text::refuse_in_head(request, &query, &self.prefix)?;
        journal.route = route.name();
        is_method(&route, &request.method)?;
        let body = read(body, longest(&route)).await?;
        key_text::refuse_in_body(&body, &self.prefix)?;
        let now = clock::now();
        match route {
            Route::SignIn => {
                // Whatever other sites' pages ask for is refused before it costs the address anything.
                origin::check_navigation(&request.headers)?;
                if let Some(elsewhere) = self.url.redirect(request)? {
                    return Ok(elsewhere);
                }
                if let Some(busy) = self.budgets.sign_in(request) {
                    return Ok(busy);
                }
                Ok(self.sign_in.begin(request, &query, now).await)
            }
            Route::Callback => {
                origin::check_navigation(&request.headers)?;
                let Some(pending) = self.sign_in.pending(request, &query, now) else {
                    return Ok(self.sign_in.refuse(request, now).await);
                };
                match self.budgets.callback(request) {
                    Some(busy) => Ok(busy),
                    None => Ok(self.sign_in.finish(request, &query, &pending, now).await),
                }
            }
            Route::SignOut => {
                self.url.check(&request.method, &request.headers)?;
                query.only(&[])?;
                self.sign_out.by_reader(request, now).await
            }
            Route::BackChannel => self.sign_out.by_provider(request, &body, now).await,
            Route::Session => {
                query.only(&[])?;
                self.reader(request, now).await
            }
            Route::Account { account, rest } => {
                self.url.check(&request.method, &request.headers)?;
                let session = self.session(request, &rest, now).await?;
                let member = Member::find(&session, account, &self.plans).ok_or_else(not_found)?;
                let asked = AccountRequest {
                    received: request,
                    path: &rest,
                    query: &query,
                    body: &body,
                };
                journal.account = Some((member.account().clone(), member.plan().clone()));
                self.account(&member, &asked, now).await
            }
            Route::Page(path) => {
                // An asset is the same under every name.
                let elsewhere = if pages::is_page(path) {
                    self.url.redirect(request)?
                } else {
                    None
                };
                let found = elsewhere.or_else(|| self.pages.answer(request));
                found.ok_or_else(not_found)
            }
        }
    }

    /// Answers with the signed-in person, if there is one.
    async fn reader(&self, request: &RequestHead, now: Timestamp) -> Result<Response, Problem> {
        let opened = self.sessions.find(&request.headers, now, Use::Poll).await?;
        if let Some(opened) = &opened {
            self.budgets.request(opened.name, request.at)?;
        }
        let session = opened.as_ref().map(|opened| &opened.session);
        Ok(reader::answer(session, &self.keys))
    }

    async fn session(
        &self,
        request: &RequestHead,
        rest: &[&str],
        now: Timestamp,
    ) -> Result<Session, Problem> {
        let used = match rest {
            // The page polls it every five seconds.
            ["quota"] => Use::Poll,
            _ if request.headers.contains_key(X_POLL) => Use::Poll,
            _ => Use::Active,
        };
        let opened = self.sessions.find(&request.headers, now, used).await?;
        let opened = opened.ok_or_else(Problem::sign_in_required)?;
        self.budgets.request(opened.name, request.at)?;
        Ok(opened.session)
    }

    /// Answers a path of an account.
    async fn account(
        &self,
        member: &Member,
        asked: &AccountRequest<'_>,
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
}

/// Bounds of a request's head.
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

/// Routes other than an account's have fixed methods.
fn is_method(route: &Route<'_>, method: &Method) -> Result<(), Problem> {
    let Some(methods) = route.methods() else {
        return Ok(());
    };
    let has = methods.split(", ").any(|has| has == method.as_str());
    has.then_some(()).ok_or_else(|| Problem::only(methods))
}

/// The largest body that a route takes.
fn longest(route: &Route<'_>) -> usize {
    match route {
        Route::BackChannel => MAX_LOGOUT,
        _ => MAX_BODY,
    }
}

async fn read<B: Buf>(
    body: impl Stream<Item = Result<B, warp::Error>>,
    most: usize,
) -> Result<Bytes, Problem> {
    let collected = body
        .map_err(|_| Problem::invalid_body(texts::body_ends_early()))
        .try_fold(BytesMut::new(), async |mut read, mut piece| {
            if read.len() + piece.remaining() > most {
                return Err(Problem::body_too_large(most));
            }
            read.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
            Ok(read)
        });
    match timeout(BODY_TIME, collected).await {
        Ok(read) => Ok(read?.freeze()),
        Err(_) => Err(Problem::invalid_body(texts::body_is_late())),
    }
}

fn not_found() -> Problem {
    Problem::not_found(texts::no_such_path())
}

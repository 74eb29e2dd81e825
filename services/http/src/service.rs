//! Handling around the routes of a service. Before them: request id, identity, query; after them: the answer's bytes
//! and headers, a line of the access log, and a span.
//!
//! Handlers know GET only; a HEAD is answered as a GET whose body hyper omits.

use std::convert::Infallible;
use std::mem;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::service::{Service as HyperService, service_fn};
use hyper_util::service::TowerToHyperService;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tracing::warn;
use warp::{Filter, Rejection, Reply};
use water_domain::{Format, Timestamp};

use crate::identity::{IdentityError, VerifiedIdentity};
use crate::problem::{or_internal, texts};
use crate::representation::Conditions;
use crate::request_id::X_REQUEST_ID;
use crate::{Access, ClockSkew, Code, Identity, Language, Problem, Query, Representation};
use crate::{HttpSpan, RequestId, RequestIds, Spans, TraceContext, TraceId, Verifier};

/// Route of a request without a valid identity: a client's text is not repeated in the log.
const UNKNOWN_ROUTE: &str = "-";

/// Puts routes behind the identity check. A request without a valid identity is 401; handlers
/// find the identity by [`identity`], the form by [`format`], the decoded query by [`crate::get`].
///
/// Each filter's reply is a [`Representation`] or a [`Problem`]; a rejection means 404.
pub fn service<F, R>(
    verifier: Verifier,
    clock_skew: ClockSkew,
    ids: RequestIds,
    spans: Spans,
    routes: F,
) -> impl HyperService<
    Request<Incoming>,
    Response = Response<Full<Bytes>>,
    Error = Infallible,
    Future: Send,
> + Clone
+ Send
+ 'static
where
    F: Filter<Extract = (R,), Error = Rejection, Future: Send> + Clone + Send + Sync + 'static,
    R: Reply + 'static,
{
    let routes = TowerToHyperService::new(warp::service(routes.recover(no_route)));
    let front = Arc::new(Front {
        verifier,
        clock_skew,
        ids,
        spans,
    });
    service_fn(move |request| {
        let (front, routes) = (Arc::clone(&front), routes.clone());
        async move { Ok(front.answer(request, routes).await) }
    })
}

/// Extracts the identity that the gate signed.
pub fn identity() -> impl Filter<Extract = (Identity,), Error = Rejection> + Copy {
    warp::ext::get()
}

/// Extracts the answer's format that the gate names.
pub fn format() -> impl Filter<Extract = (Format,), Error = Rejection> + Copy {
    warp::ext::get()
}

/// State that all requests of a service share.
struct Front {
    verifier: Verifier,
    clock_skew: ClockSkew,
    ids: RequestIds,
    spans: Spans,
}

/// Parts of a request that are needed after the routes have taken it.
struct RequestContext {
    id: RequestId,
    trace: Option<TraceId>,
    span: Option<HttpSpan>,
    method: Method,
    conditions: Conditions,
    language: Language,
    started: Instant,
}

impl Front {
    async fn answer<S>(&self, request: Request<Incoming>, routes: S) -> Response<Full<Bytes>>
    where
        S: HyperService<Request<Incoming>, Response = warp::reply::Response, Error = Infallible>,
    {
        let context = TraceContext::from_headers(request.headers());
        let span = self.spans.server(request.method(), context.as_ref());
        let asked = RequestContext {
            id: self.ids.for_request(request.headers()),
            trace: span
                .as_ref()
                .map(HttpSpan::trace)
                .or(context.map(|context| context.trace)),
            span,
            method: request.method().clone(),
            conditions: Conditions::from_headers(request.headers()),
            language: Language::preferred(request.headers()),
            started: Instant::now(),
        };
        let (identity, request) = match self.identify(request) {
            Ok(known) => known,
            Err(problem) => return asked.refuse(problem, UNKNOWN_ROUTE, None),
        };
        let path = request.uri().path().to_owned();
        let request = match prepare(request, &identity) {
            Ok(request) => request,
            Err(problem) => return asked.refuse(problem, &path, Some(&identity)),
        };
        match or_internal(routes.call(request)).await {
            Ok(Ok(reply)) => asked.finish(reply, &path, &identity).await,
            Ok(Err(never)) => match never {},
            Err(problem) => asked.refuse(problem, &path, Some(&identity)),
        }
    }

    fn identify(
        &self,
        request: Request<Incoming>,
    ) -> Result<(Identity, Request<Incoming>), Problem> {
        let target = request
            .uri()
            .path_and_query()
            .map_or("", |target| target.as_str());
        let verified = self
            .verifier
            .verify(request.headers(), request.method(), target, now());
        match verified {
            Ok(VerifiedIdentity { identity, ahead }) => {
                self.clock_skew.note(ahead);
                Ok((identity, request))
            }
            Err(error) => {
                if let IdentityError::OutsideLeeway { ahead } = error {
                    self.clock_skew.note(ahead);
                }
                Err(Problem::invalid_identity().caused_by(error))
            }
        }
    }
}

/// Prepares the request for the routes; to them a HEAD is a GET.
fn prepare(
    mut request: Request<Incoming>,
    identity: &Identity,
) -> Result<Request<Incoming>, Problem> {
    let query = Query::parse(request.uri().query())?.into_owned();
    let format = crate::format::named(request.headers());
    let extensions = request.extensions_mut();
    extensions.insert(format);
    extensions.insert(query);
    extensions.insert(identity.clone());
    if request.method() == Method::HEAD {
        *request.method_mut() = Method::GET;
    }
    Ok(request)
}

/// Answers a request that no filter took; of the reasons only the method gets another answer than 404.
async fn no_route(rejection: Rejection) -> Result<Problem, Infallible> {
    if rejection.find::<warp::reject::MethodNotAllowed>().is_some() {
        return Ok(Problem::method_not_allowed());
    }
    if !rejection.is_not_found() {
        warn!(
            ?rejection,
            "a filter rejected a request for another reason than its route"
        );
    }
    Ok(Problem::not_found(texts::no_such_path()))
}

impl RequestContext {
    fn refuse(
        self,
        problem: Problem,
        route: &str,
        identity: Option<&Identity>,
    ) -> Response<Full<Bytes>> {
        let reason = problem.code();
        let response = problem.into_response(&self.id, self.language);
        self.close(route, Some(reason), &response, identity);
        response
    }

    async fn finish(
        mut self,
        mut reply: warp::reply::Response,
        route: &str,
        identity: &Identity,
    ) -> Response<Full<Bytes>> {
        if let Some(problem) = reply.extensions_mut().remove::<Problem>() {
            return self.refuse(problem, route, Some(identity));
        }
        let Some(representation) = reply.extensions_mut().remove::<Representation>() else {
            let problem = Problem::internal("the reply is neither a Representation nor a Problem");
            return self.refuse(problem, route, Some(identity));
        };
        let conditions = mem::take(&mut self.conditions);
        let response = if representation.is_slow() {
            spawn_blocking(move || representation.answer(&conditions)).await
        } else {
            Ok(representation.answer(&conditions))
        };
        let mut response = match response {
            Ok(response) => response.map(Full::new),
            Err(error) => return self.refuse(Problem::internal(error), route, Some(identity)),
        };
        response
            .headers_mut()
            .insert(X_REQUEST_ID, self.id.header());
        self.close(route, None, &response, Some(identity));
        response
    }

    fn close(
        self,
        route: &str,
        reason: Option<Code>,
        response: &Response<Full<Bytes>>,
        identity: Option<&Identity>,
    ) {
        let access = Access {
            request_id: &self.id,
            trace: self.trace,
            method: &self.method,
            route,
            status: response.status(),
            reason,
            bytes: match self.method {
                Method::HEAD => 0,
                _ => response.body().size_hint().lower() as usize,
            },
            duration: self.started.elapsed(),
            gate: None,
            upstream: None,
            account: identity.map(|identity| &identity.account),
            key: identity.map(|identity| &identity.key),
            plan: identity.map(|identity| &identity.plan),
        };
        access.log();
        if let Some(mut span) = self.span {
            if route != UNKNOWN_ROUTE {
                span.route(&self.method, route);
            }
            span.close(Some(response.status()), reason.map(Code::as_str));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "here a service meets the world: identities are checked against this clock"
)]
fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since_epoch.map_or(0, |elapsed| elapsed.as_millis() as i64);
    Timestamp::from_millis(millis).expect("the clock is before the year 10000")
}

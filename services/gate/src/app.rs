//! The gate: every request passes the same checks, in the order of the lines in [`Gate::decide`].

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use warp::{Filter, Rejection};
use water_domain::{KeyPrefix, Timestamp};
use water_http::problem::or_internal;
use water_http::{HttpSpan, Identity, Problem, Query, Representation, Signer, Spans};
use water_keystore::{Limiter, Record, Replica};

use crate::admit::admit;
use crate::authenticate::authenticate;
use crate::body_budget::BodyBudget;
use crate::checks::{KeyInQuery, before_authentication};
use crate::cors::Cors;
use crate::forward::{Forwarding, forward, reachable};
use crate::grace::Grace;
use crate::guessing::Guessing;
use crate::journal::Journal;
use crate::last_use::Notes;
use crate::limit::limit;
use crate::metrics::Metrics;
use crate::openapi;
use crate::route::route;
use crate::upstream::Upstreams;
use water_http::RequestHead;

/// The gate of one worker: everything that checks its requests and forwards them.
#[derive(Debug)]
pub struct Gate {
    /// Prefix of generated keys.
    pub prefix: KeyPrefix,
    /// The key directory in memory, shared by all workers.
    pub directory: Arc<Replica>,
    /// Time for which the copy may serve while Redis is down, shared by all workers.
    pub grace: Arc<Grace>,
    /// Slows down addresses that try wrong keys, shared by all workers.
    pub guessing: Arc<Guessing>,
    /// Records when each key was last used, and counts each account's requests.
    pub last_use: Notes,
    /// Counts requests in Redis.
    pub limiter: Limiter,
    /// Signs the caller's identity.
    pub signer: Signer,
    /// The services.
    pub upstreams: Upstreams,
    /// Memory for large answers, shared by all workers.
    pub budget: BodyBudget,
    /// Web pages that may read answers.
    pub cors: Cors,
    /// The API's description.
    pub openapi: Arc<Representation>,
    /// Metrics of this worker.
    pub metrics: Metrics,
    /// Makes spans of requests, if they are exported.
    pub spans: Spans,
}

/// Makes the gate a warp filter. It accepts every request: one without a route is answered too.
pub fn filter(
    gate: Arc<Gate>,
) -> impl Filter<Extract = (Response<Bytes>,), Error = Rejection, Future: Send> + Clone + Send + Sync
{
    warp::ext::get::<Arc<RequestHead>>().then(move |request: Arc<RequestHead>| {
        let gate = Arc::clone(&gate);
        // Boxed: each layer between here and hyper's connection would copy its state.
        Box::pin(async move { gate.answer(&request).await })
    })
}

impl Gate {
    async fn answer(&self, request: &RequestHead) -> Response<Bytes> {
        let mut journal = Journal::begin(request, &self.spans);
        // A panic is a bug like any other: answered, counted and logged.
        let outcome = or_internal(self.decide(request, &mut journal)).await;
        let outcome = outcome.flatten();
        if let (Some(record), Some(now)) = (&journal.record, self.directory.now()) {
            let decision = journal.charge.and_then(|charge| charge.decision);
            let accepted = decision.map(|decision| decision.accepted);
            self.last_use.note(record, accepted, now);
        }
        journal.close(request, outcome, &self.cors, &self.metrics)
    }

    /// Runs the steps in order; each may refuse the request, and none can be left out. A step's results are recorded in
    /// the journal before the next one begins.
    async fn decide(
        &self,
        request: &RequestHead,
        journal: &mut Journal,
    ) -> Result<Response<Bytes>, Problem> {
        let Journal {
            record,
            route: routed,
            charge,
            span,
            visit,
        } = journal;
        let query = before_authentication(request, &self.keys_in_query(request))?;
        if let Some(free) = self.free_of_charge(request, &query)? {
            return Ok(free);
        }
        let (found, view) = authenticate(request, &self.prefix, &self.grace)
            .map_err(|refusal| self.guessing.slow_down(refusal, request.client, request.at))?;
        let record = &*record.insert(found);
        let (limits, now) = (admit(record, &view)?, view.now());
        // Held across the waits below, it would keep an old copy of the directory in memory.
        drop(view);
        let route = *routed.insert(route(request)?);
        reachable(route, &self.upstreams, request.at)?;
        limit(record, limits, now, &self.limiter, charge).await?;
        let with = self.forwarding(now, span.as_ref());
        forward(request, &query, route, &identity(record), with, visit).await
    }

    /// Answers requests that need no key: for the API's description, and a browser's preflight.
    fn free_of_charge(
        &self,
        request: &RequestHead,
        query: &Query<'_>,
    ) -> Result<Option<Response<Bytes>>, Problem> {
        let description = openapi::answer(request, &self.openapi);
        if description.is_some() {
            query.only(&[])?;
        }
        Ok(description.or_else(|| self.cors.preflight(request)))
    }

    fn forwarding<'a>(&'a self, now: Timestamp, span: Option<&'a HttpSpan>) -> Forwarding<'a> {
        Forwarding {
            upstreams: &self.upstreams,
            signer: &self.signer,
            budget: &self.budget,
            now,
            spans: &self.spans,
            span,
        }
    }

    fn keys_in_query(&self, request: &RequestHead) -> KeyInQuery<'_> {
        KeyInQuery {
            prefix: &self.prefix,
            directory: &self.directory,
            guessing: &self.guessing,
            client: request.client,
            at: request.at,
        }
    }
}

/// Returns the identity that a service receives.
fn identity(record: &Record) -> Identity {
    Identity {
        account: record.account.clone(),
        key: record.key_id.clone(),
        plan: record.plan.clone(),
    }
}

#[cfg(test)]
mod tests;

//! `/account/v1/accounts/{account}/{stress,risque,hydrorisk,conformite,sources}`: the services' own
//! answers, for the pages. They are not charged to the account's plan, and so there are few of them
//! and they are for browsers only.

use std::sync::Arc;

use http::HeaderValue;
use http::header::CACHE_CONTROL;
use tokio::time::Instant;
use water_domain::{KeyId, Timestamp};
use water_gate::body_budget::BodyBudget;
use water_gate::forward::{Forwarding, forward, reachable};
use water_gate::upstream::Upstreams;
use water_http::route::{ROUTES, Route};
use water_http::{Identity, Problem, Signer, Spans};
use water_keystore::{Allowance, Allowances, Reply};

use crate::account_request::{AccountRequest, Response};
use crate::member::Member;

/// The key id that the services log for the portal's requests. No account's key has it.
pub const PORTAL_KEY: &str = "portal000000";

/// Parts that answer requests for data.
#[derive(Debug)]
pub struct Data {
    /// The services.
    pub upstreams: Arc<Upstreams>,
    /// Signs the reader's identity, as the gates' is signed.
    pub signer: Signer,
    /// Memory that large answers may use.
    pub budget: BodyBudget,
    /// Limits on an account's requests.
    pub allowances: Allowances,
    /// Makes spans of the exchanges, if they are exported.
    pub spans: Spans,
}

/// Returns the API's route for an account's path.
pub fn route(path: &[&str]) -> Option<&'static Route> {
    match path {
        [name] => ROUTES.into_iter().find(|route| route.name == *name),
        _ => None,
    }
}

/// Forwards the request to the route's service: parameters, forms and entity tags are the service's.
pub async fn answer(
    data: &Data,
    route: &'static Route,
    member: &Member,
    asked: &AccountRequest<'_>,
    now: Timestamp,
) -> Result<Response, Problem> {
    if !asked.received.only_reads() {
        return Err(Problem::method_not_allowed());
    }
    if !member.access() {
        return Err(Problem::plan_insufficient());
    }
    reachable(route, &data.upstreams, Instant::now())?;
    let taken = data.allowances.take(member.account(), Allowance::Reads);
    if let Reply::Full(wait) = taken.await? {
        return Err(Problem::too_many_requests(wait.as_secs() + 1));
    }
    let identity = Identity {
        account: member.account().clone(),
        key: portal_key(),
        plan: member.plan().clone(),
    };
    let with = Forwarding {
        upstreams: &data.upstreams,
        signer: &data.signer,
        budget: &data.budget,
        now,
        spans: &data.spans,
        span: None,
    };
    let mut visit = None;
    let answer = forward(
        asked.received,
        asked.query,
        route,
        &identity,
        with,
        &mut visit,
    )
    .await;
    let mut answer = answer?;
    let no_store = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(CACHE_CONTROL, no_store);
    Ok(answer)
}

fn portal_key() -> KeyId {
    PORTAL_KEY.parse().expect("it has 12 letters and digits")
}

#[cfg(test)]
pub(crate) mod tests;

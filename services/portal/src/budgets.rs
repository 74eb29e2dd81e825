//! Limits on the sign-ins of addresses and on the requests of sessions, in the memory of the process.

use std::net::IpAddr;

use tokio::time::Instant;
use water_http::client_address::network;
use water_http::{Buckets, Problem, RequestHead};
use water_keystore::WebName;

use crate::account_request::Response;
use crate::notice::Notice;

/// Sign-ins a minute from one address; as many returns from the provider.
const SIGN_INS: f64 = 20.0;
/// Requests a minute of one session.
const REQUESTS: f64 = 240.0;

/// Recent sign-ins of addresses and requests of sessions.
#[derive(Debug)]
pub struct Budgets {
    sign_ins: Buckets<IpAddr>,
    callbacks: Buckets<IpAddr>,
    requests: Buckets<WebName>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            sign_ins: Buckets::new(SIGN_INS / 60.0, SIGN_INS),
            callbacks: Buckets::new(SIGN_INS / 60.0, SIGN_INS),
            requests: Buckets::new(REQUESTS / 60.0, REQUESTS),
        }
    }
}

impl Budgets {
    /// Counts the beginning of a sign-in; returns the page to answer with if it is one too many.
    pub fn sign_in(&self, request: &RequestHead) -> Option<Response> {
        refusal(&self.sign_ins, request)
    }

    /// Counts a return from the provider; returns the page to answer with if it is one too many.
    pub fn callback(&self, request: &RequestHead) -> Option<Response> {
        refusal(&self.callbacks, request)
    }

    /// Counts a request of a session.
    pub fn request(&self, session: WebName, at: Instant) -> Result<(), Problem> {
        let taken = self.requests.take(session, at);
        taken.map_err(|wait| Problem::too_many_requests(wait.as_secs() + 1))
    }
}

fn refusal(buckets: &Buckets<IpAddr>, request: &RequestHead) -> Option<Response> {
    let wait = buckets.take(network(request.client), request.at).err()?;
    let retry_after = wait.as_secs() + 1;
    Some(Notice::TooMany { retry_after }.into_response(&request.headers, &request.id))
}

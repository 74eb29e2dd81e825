//! How often addresses may sign in and sessions may ask, in the memory of the process.

use std::net::IpAddr;

use tokio::time::Instant;
use water_http::client_address::network;
use water_http::{Buckets, Problem, Received};
use water_keystore::WebName;

use crate::asked::Response;
use crate::notice::Notice;

/// Sign-ins a minute from one address, and ways back from the provider.
const SIGN_INS: f64 = 20.0;
/// Requests a minute of one session.
const REQUESTS: f64 = 240.0;

/// Who has asked how often of late.
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
    /// Counts the beginning of a sign-in; the page to answer with where it is one too many.
    pub fn sign_in(&self, request: &Received) -> Option<Response> {
        refusal(&self.sign_ins, request)
    }

    /// Counts a way back from the provider; the page to answer with where it is one too many.
    pub fn callback(&self, request: &Received) -> Option<Response> {
        refusal(&self.callbacks, request)
    }

    /// Counts a request of a session.
    pub fn request(&self, session: WebName, at: Instant) -> Result<(), Problem> {
        let taken = self.requests.take(session, at);
        taken.map_err(|wait| Problem::too_many_requests(wait.as_secs() + 1))
    }
}

fn refusal(buckets: &Buckets<IpAddr>, request: &Received) -> Option<Response> {
    let wait = buckets.take(network(request.client), request.at).err()?;
    let retry_after = wait.as_secs() + 1;
    Some(Notice::TooMany { retry_after }.into_response(&request.headers, &request.id))
}

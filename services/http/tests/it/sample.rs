//! A service with one route of each kind, and a client that signs as the gate does.

use std::io;
use std::sync::Once;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use http::{HeaderValue, Method};
use warp::{Filter, Rejection, Reply};
use water_domain::{Fault, Timestamp};
use water_harness::{Answer, HttpClient};
use water_http::representation::CACHE_HISTORY;
use water_http::route::{Route, ServiceName};
use water_http::{
    ClockSkew, Identity, IdentityKey, Problem, Query, Representation, RequestIds, Signer, Spans,
    Verifier,
};
use water_runtime::listener::listen;
use water_runtime::telemetry::{Lines, subscriber};
use water_runtime::{Connections, Server, Shutdown};

/// Gives every test a log that nobody reads. tracing asks once for each log line of the code whether anybody wants it.
/// If a test without a log came first, the line would be off for tests with one that run in parallel.
fn log_in_every_test() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let unread = subscriber("info", Lines::start(io::sink())).expect("a filter");
        tracing::subscriber::set_global_default(unread).expect("the only one of the process");
    });
}

static PAGE: Route = route("/api/v1/page", &["limit", "offset"]);
static STORE: Route = route("/api/v1/store", &[]);
static BUG: Route = route("/api/v1/bug", &[]);

const fn route(path: &'static str, parameters: &'static [&'static str]) -> Route {
    Route {
        path,
        name: path,
        service: ServiceName::History,
        parameters,
        formats: &[],
        deprecation: None,
    }
}

/// A running service, called as the gate would.
pub struct Sample {
    client: HttpClient,
}

impl Sample {
    pub async fn start() -> Result<Self> {
        log_in_every_test();
        let listener = listen(([127, 0, 0, 1], 0).into())?;
        let address = listener.local_addr()?;
        let verifier = Verifier::new(&key(), None);
        let (skew, ids, spans) = (ClockSkew::default(), RequestIds::new(0), Spans::new(None));
        let service = water_http::service(verifier, skew, ids, spans, routes());
        tokio::spawn(async move {
            let server = Server::new(Connections::default(), Shutdown::default(), Duration::ZERO);
            server.serve(listener, |_| service.clone()).await
        });
        let client = HttpClient::connect(address).await?;
        Ok(Self { client })
    }

    /// Sends a request with a valid identity.
    pub async fn ask(
        &mut self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        let identity = sign(&method, target);
        let mut headers = headers.to_vec();
        headers.push(("X-Water-Identity", identity.to_str()?));
        self.client.request(method.as_str(), target, &headers).await
    }

    /// Sends a request unchanged.
    pub async fn ask_unsigned(&mut self, target: &str, headers: &[(&str, &str)]) -> Result<Answer> {
        self.client.request("GET", target, headers).await
    }
}

/// Signs an identity that is valid for one request.
pub fn sign(method: &Method, target: &str) -> HeaderValue {
    let identity = Identity {
        account: "acme".parse().expect("an account id"),
        key: "0123456789ab".parse().expect("a key id"),
        plan: "Enterprise".parse().expect("a plan name"),
    };
    Signer::new(&key()).sign(&identity, soon(), method, target)
}

fn key() -> IdentityKey {
    "5".repeat(64).parse().expect("64 hex digits")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the service compares with the real clock"
)]
fn soon() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since_epoch.expect("the clock is after 1970").as_millis() as i64;
    Timestamp::from_millis(millis + 30_000).expect("the clock is before 10000")
}

fn routes() -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone {
    let page = water_http::get(&PAGE)
        .and(water_http::identity())
        .then(page);
    let store = water_http::get(&STORE).then(store);
    let bug = water_http::get(&BUG).then(bug);
    page.or(store).or(bug)
}

/// Echoes the page and the account in a body that is long enough to be compressed.
async fn page(
    query: Result<Query<'static>, Problem>,
    identity: Identity,
) -> Result<Representation, Problem> {
    let page = query?.page()?;
    let (limit, offset, account) = (page.limit, page.offset, identity.account);
    let padding = " ".repeat(1024);
    let body = format!(r#"{{"account":"{account}","limit":{limit},"offset":{offset}}}{padding}"#);
    Ok(Representation::new(body, CACHE_HISTORY))
}

/// Fails as if a store were down.
async fn store(_: Result<Query<'static>, Problem>) -> Result<Representation, Problem> {
    #[derive(Debug, thiserror::Error)]
    #[error("connection to store.internal refused")]
    struct Away;
    impl Fault for Away {
        fn is_transient(&self) -> bool {
            true
        }
    }
    Err(Away)?
}

/// Panics, as a handler with a bug.
async fn bug(_: Result<Query<'static>, Problem>) -> Result<Representation, Problem> {
    panic!("planted")
}

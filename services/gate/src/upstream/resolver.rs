//! Addresses of a service's name.
//!
//! No request asks a name server: the name is resolved in the background, repeatedly, and an answer is used until the
//! next one. A name server that is down, or hangs, costs no request.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};
use water_runtime::Process;
use water_runtime::telemetry::chain;

use super::ServiceAddress;

/// Interval of the queries: for so long the requests of a service that moved may go to its old address. A Service of
/// Kubernetes keeps its address while it exists.
const EVERY: Duration = Duration::from_secs(5);
/// Interval after a query without an answer.
const AGAIN: Duration = Duration::from_secs(1);

/// Wait for the first answer of a name server: twice the 5 s after which the system's resolver repeats a query.
const NAMED_WITHIN: Duration = Duration::from_secs(10);

/// A service's name, and its known addresses. Shared by all workers.
#[derive(Debug)]
pub struct Resolver {
    name: ServiceAddress,
    /// Addresses in the order in which they are tried; none before the first answer.
    known: watch::Sender<Arc<[SocketAddr]>>,
}

impl Resolver {
    /// Resolves a service's name while the process runs, which is not ready before the first answer: its first requests
    /// would wait for a name server that loses a query, and fail. A name server that never answers keeps no process
    /// from serving. `latch` names what is missing until then.
    pub fn start(name: ServiceAddress, latch: &'static str, process: &mut Process) -> Arc<Self> {
        let resolver = Arc::new(Self::new(name));
        let [running, first] = [&resolver, &resolver].map(Arc::clone);
        process
            .tasks
            .spawn("resolver", async move { match running.run().await {} });
        let latch = process.readiness.latch(latch);
        process
            .tasks
            .spawn("readiness of a service's name", async move {
                let _ = timeout(NAMED_WITHIN, first.addresses()).await;
                latch.set();
                pending().await
            });
        resolver
    }

    /// Makes a resolver that knows an IP address at once, and those of a name once [`Resolver::run`] is polled.
    pub fn new(name: ServiceAddress) -> Self {
        let literal: Option<SocketAddr> = name.as_str().parse().ok();
        Self {
            known: watch::Sender::new(literal.into_iter().collect()),
            name,
        }
    }

    /// Returns `host:port` as configured.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Returns the addresses, at least one. Waits only if the name has never been resolved.
    pub(super) async fn addresses(&self) -> Arc<[SocketAddr]> {
        let known = Arc::clone(&self.known.borrow());
        if !known.is_empty() {
            return known;
        }
        let mut known = self.known.subscribe();
        let first = known.wait_for(|addresses| !addresses.is_empty()).await;
        Arc::clone(&first.expect("the sender lives as long as this resolver"))
    }

    /// Keeps the addresses up to date while it is polled.
    pub async fn run(&self) -> Infallible {
        let service = self.name();
        let mut failing = false;
        loop {
            match look_up(service.to_owned()).await {
                Ok(addresses) => {
                    self.known.send_replace(addresses);
                    if std::mem::take(&mut failing) {
                        info!(service, "a service's name can be resolved again");
                    }
                    sleep(EVERY).await;
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        let error = chain(&error);
                        warn!(
                            service,
                            error,
                            "a service's name cannot be resolved; using its last known addresses"
                        );
                    }
                    sleep(AGAIN).await;
                }
            }
        }
    }
}

/// Asks the system's resolver, which may take half a minute to fail, on a separate thread: the end of the process would
/// wait for one of Tokio's.
async fn look_up(name: String) -> io::Result<Arc<[SocketAddr]>> {
    let (tell, told) = oneshot::channel();
    let resolve = move || {
        let found = name.to_socket_addrs().map(Iterator::collect);
        // The receiver is gone when the process is ending.
        let _ = tell.send(found);
    };
    let thread = thread::Builder::new().name("resolver".to_owned());
    thread.spawn(resolve)?;
    let found: Arc<[SocketAddr]> = told.await.map_err(io::Error::other)??;
    if found.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(found)
}

//! The addresses that a service's name stands for.
//!
//! No request asks a name server: the name is resolved beside them, again and again, and an answer
//! holds until the next one. A name server that is away, or hangs, costs no request.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::sleep;
use tracing::{info, warn};
use water_runtime::telemetry::chain;

use super::ServiceAddress;

/// Between two questions: so long the requests of a service that moved may go to where it was. A
/// Service of Kubernetes keeps its address for as long as it lives.
const EVERY: Duration = Duration::from_secs(5);
/// The same after a question without an answer.
const AGAIN: Duration = Duration::from_secs(1);

/// A service's name, and its addresses as far as they are known. Shared by all workers.
#[derive(Debug)]
pub struct Resolver {
    name: ServiceAddress,
    /// In the order in which they are tried; none before the first answer.
    known: watch::Sender<Arc<[SocketAddr]>>,
}

impl Resolver {
    /// Knows the addresses of a name once it is kept up to date, and an IP address at once.
    pub fn new(name: ServiceAddress) -> Self {
        let literal: Option<SocketAddr> = name.as_str().parse().ok();
        Self {
            known: watch::Sender::new(literal.into_iter().collect()),
            name,
        }
    }

    /// `host:port` as it was set.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The addresses, at least one. Waits only where the name has never been resolved.
    pub(super) async fn addresses(&self) -> Arc<[SocketAddr]> {
        let known = Arc::clone(&self.known.borrow());
        if !known.is_empty() {
            return known;
        }
        let mut known = self.known.subscribe();
        let first = known.wait_for(|addresses| !addresses.is_empty()).await;
        Arc::clone(&first.expect("the sender lives as long as this resolver"))
    }

    /// Keeps the addresses up to date for as long as it is polled.
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

/// Asks the system's resolver, which may take half a minute to fail, on a thread of its own: the end
/// of the process would wait for one of Tokio's.
async fn look_up(name: String) -> io::Result<Arc<[SocketAddr]>> {
    let (tell, told) = oneshot::channel();
    let resolve = move || {
        let found = name.to_socket_addrs().map(Iterator::collect);
        // Nobody is there to hear it when the process is ending.
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

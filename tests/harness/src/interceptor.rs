//! A proxy that sees whole requests to an API server and to Redis: it counts them over both, and at
//! those that a test names it cuts the connection, lets it hang, kills a process or answers itself,
//! before or after delivery.

mod framing;
mod ledger;
mod listener;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

pub use framing::Protocol;
use ledger::Ledger;
pub use ledger::{Fault, Moment, Which};
use listener::Server;

/// A running interceptor; dropping it ends its connections.
#[derive(Default)]
pub struct Interceptor {
    ledger: Arc<Ledger>,
    cuts: watch::Sender<()>,
    accepting: Vec<AbortHandle>,
}

/// Result of an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Course {
    /// Requests since the order, each in a few words.
    pub requests: Vec<String>,
    /// Whether the fault happened: otherwise there were fewer requests.
    pub happened: bool,
}

impl Interceptor {
    /// Listens before the Redis at this address. Its tasks live on the calling runtime.
    pub async fn before_redis(&mut self, address: SocketAddr) -> Result<SocketAddr> {
        self.listen(Server {
            address,
            protocol: Protocol::Redis,
            tls: None,
        })
        .await
    }

    /// Listens before the API server at this address, for plain HTTP. TLS begins behind it: the
    /// server shows a certificate that this authority has signed, in PEM.
    pub async fn before_api_server(
        &mut self,
        address: SocketAddr,
        authority_pem: &str,
    ) -> Result<SocketAddr> {
        self.listen(Server {
            address,
            protocol: Protocol::Http,
            tls: Some(listener::tls(authority_pem)?),
        })
        .await
    }

    async fn listen(&mut self, server: Server) -> Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("open the interceptor's port")?;
        let address = listener.local_addr()?;
        let (ledger, cuts) = (Arc::clone(&self.ledger), self.cuts.subscribe());
        let accepting = tokio::spawn(listener::accept(listener, server, ledger, cuts));
        self.accepting.push(accepting.abort_handle());
        Ok(address)
    }

    /// Lets `fault` happen to these requests, from now on.
    pub fn order(&self, which: Which, moment: Moment, fault: Fault) {
        self.ledger.order(which, moment, fault);
    }

    /// Ends all present connections.
    pub fn cut(&self) {
        self.cuts.send_replace(());
    }

    /// Takes the last order back, if it has not been carried out, and counts from 0 again.
    pub fn recall(&self) -> Course {
        let (requests, is_left) = self.ledger.recall();
        Course {
            requests,
            happened: !is_left,
        }
    }

    /// Returns the requests since the last order, each in a few words.
    pub fn requests(&self) -> Vec<String> {
        self.ledger.requests()
    }

    /// Asks `judge` from now on which fault happens to each request; an order counts where it names none.
    pub fn judge(
        &self,
        judge: impl FnMut(Protocol, &[u8]) -> Option<(Moment, Fault)> + Send + 'static,
    ) {
        self.ledger.judge(Box::new(judge));
    }

    /// Shows `witness` every request from now on before it is delivered, which waits for it.
    pub fn show(&self, witness: impl FnMut(Protocol, &[u8]) + Send + 'static) {
        self.ledger.show(Box::new(witness));
    }
}

impl Drop for Interceptor {
    fn drop(&mut self) {
        self.accepting.iter().for_each(AbortHandle::abort);
    }
}

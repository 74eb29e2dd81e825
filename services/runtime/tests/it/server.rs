//! A server whose answers a test can hold back.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use water_harness::{HttpClient, wait_until};
use water_runtime::listener::listen;
use water_runtime::shutdown::Stage;
use water_runtime::{ConnectionLimits, Connections, DrainOutcome, Server, Shutdown};

/// Length of deadlines that a test does not expect to pass.
pub const LONG: Duration = Duration::from_secs(600);
/// Length of deadlines that a test waits for.
pub const SHORT: Duration = Duration::from_millis(300);
/// Time within which comes what a test waits for; shorter than [`LONG`], whose end must not be taken for it.
pub const SOON: Duration = Duration::from_secs(60);

/// The length of `/large`: more than the sockets' buffers of both sides hold.
pub const LARGE: usize = 64 << 20;

/// A running server.
pub struct Running {
    pub address: SocketAddr,
    pub connections: Connections,
    pub shutdown: Shutdown,
    /// Permits, each of which lets one `/held` be answered.
    pub held: Arc<Semaphore>,
    pub ended: JoinHandle<DrainOutcome>,
}

/// Returns deadlines that no test waits for, and the default bounds.
pub fn patient() -> ConnectionLimits {
    ConnectionLimits {
        head: LONG,
        idle: LONG,
        write: LONG,
        linger: SHORT,
        ..ConnectionLimits::default()
    }
}

/// Serves with these limits, and `drain` to end what is under way.
pub fn start(limits: ConnectionLimits, drain: Duration) -> Running {
    let listener = listen(([127, 0, 0, 1], 0).into()).expect("loopback has free ports");
    on(listener, limits, drain, Shutdown::default())
}

/// Serves with other limits than [`patient`].
pub fn start_with(change: impl FnOnce(&mut ConnectionLimits)) -> Running {
    let mut limits = patient();
    change(&mut limits);
    start(limits, LONG)
}

/// Serves with these limits on a given listener.
pub fn on(
    listener: TcpListener,
    limits: ConnectionLimits,
    drain: Duration,
    shutdown: Shutdown,
) -> Running {
    let address = listener.local_addr().expect("a listener has an address");
    let connections = Connections::new(limits);
    let held = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&held);
    let server = Server::new(connections.clone(), shutdown.clone(), drain);
    let ended = tokio::spawn(async move {
        let service = |_| {
            let permits = Arc::clone(&permits);
            service_fn(move |request| answer(request, Arc::clone(&permits)))
        };
        server.serve(listener, service).await
    });
    Running {
        address,
        connections,
        shutdown,
        held,
        ended,
    }
}

async fn answer(
    request: Request<Incoming>,
    held: Arc<Semaphore>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::CONNECT {
        let mut refusal = Response::default();
        *refusal.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return Ok(refusal);
    }
    let body = match request.uri().path() {
        "/held" => {
            held.acquire()
                .await
                .expect("the semaphore stays open")
                .forget();
            Bytes::from_static(b"released")
        }
        "/never" => pending().await,
        "/large" => Bytes::from(vec![b'x'; LARGE]),
        _ => Bytes::from_static(b"hello"),
    };
    Ok(Response::new(Full::new(body)))
}

impl Running {
    pub async fn client(&self) -> HttpClient {
        let client = HttpClient::connect(self.address).await;
        client.expect("the server accepts connections")
    }

    /// Waits until that many connections are open.
    pub async fn wait_for_open(&self, count: usize) {
        let check = async || {
            let open = self.connections.open();
            ensure!(open == count, "{open} connections are open, not {count}");
            Ok(())
        };
        let waited = wait_until("connections to open or close", SOON, check).await;
        waited.expect("connections open and close in time");
    }

    /// Asks the server to drain and waits until it has.
    pub async fn drain(self) -> DrainOutcome {
        self.shutdown.advance(Stage::Draining);
        self.ended.await.expect("the server does not panic")
    }
}

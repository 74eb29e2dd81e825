//! Accept loops before the same service: ours with its deadlines, a plain one before hyper's
//! connection with the deadline that hyper has, and warp's own server.
//!
//! hyper's one deadline is for a request's head, and runs while a connection is idle too; warp's
//! server has none.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use warp::{Filter, Reply};
use water_runtime::listener::listen;
use water_runtime::{Connections, Server, Shutdown};

use super::child::Child;
use super::orders::serve;
use crate::gate::{BODY, TARGET};
use crate::load::{Expected, Load, Requests, Slice};
use crate::rounds::Turn;

/// As many as the gate is measured with.
const CONNECTIONS: usize = 64;

/// As long as our idle connections stay: a shorter one would close those.
const HEAD_OR_IDLE: Duration = Duration::from_secs(75);

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Never begun.
const DRAIN: Duration = Duration::from_secs(1);

/// A server, and what is sent to it.
pub struct Asked {
    pub child: Child,
    load: Load,
}

impl Asked {
    /// The server that this child is.
    pub fn new(child: Child) -> Result<Self> {
        let load = Load {
            address: child.greeting.parse()?,
            connections: CONNECTIONS,
            requests: Arc::new(Requests::new(TARGET, Arc::new(["a key".into()]))),
            expected: Expected {
                status: 200,
                length: Some(BODY.len()),
            },
            pace: None,
        };
        Ok(Self { child, load })
    }

    /// Sends requests for one slice.
    pub async fn turn(&self, slice: Slice) -> Result<Turn> {
        let sample = self.load.send(self.child.id(), slice).await?;
        Ok(Turn {
            cost: sample.cost(),
            counted: 0.0,
        })
    }
}

/// Our accept loop.
pub async fn ours() -> Result<()> {
    let (listener, address) = open()?;
    let server = server();
    let serving = server.serve(listener, |_| service_fn(answer));
    serve(address, serving).await
}

/// Our accept loop before warp's routes, as the gate has them.
pub async fn ours_routes() -> Result<()> {
    let (listener, address) = open()?;
    let routes = TowerToHyperService::new(warp::service(routes()));
    let server = server();
    let serving = server.serve(listener, |_| routes.clone());
    serve(address, serving).await
}

/// A plain accept loop before hyper's connection.
pub async fn hyper() -> Result<()> {
    let (listener, address) = open()?;
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_OR_IDLE);
    let serving = async {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    };
    serve(address, serving).await
}

/// warp's own server.
pub async fn warp() -> Result<()> {
    let (listener, address) = open()?;
    serve(address, warp::serve(routes()).incoming(listener).run()).await
}

fn open() -> Result<(TcpListener, SocketAddr)> {
    let listener = listen(([127, 0, 0, 1], 0).into())?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn server() -> Server {
    Server::new(Connections::default(), Shutdown::default(), DRAIN)
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::from(BODY));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    Ok(response)
}

fn routes() -> impl Filter<Extract = (impl Reply,), Error = Infallible> + Clone {
    warp::any().map(|| warp::reply::with_header(BODY, CONTENT_TYPE, JSON))
}

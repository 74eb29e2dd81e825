//! hyper's HTTP/1.1 connection with the smallest pool that does: a stack of idle connections.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::terms::{Client, DEADLINE, MOST_BYTES, UNDER_WAY, fields, kept};

type Connection = SendRequest<Empty<Bytes>>;

/// The pool, and what every request has.
pub struct Small {
    idle: Mutex<Vec<Connection>>,
    address: String,
    host: HeaderValue,
    fields: [(HeaderName, HeaderValue); 4],
}

impl Small {
    /// Of the service at an address.
    pub fn new(address: &str) -> Self {
        Self {
            idle: Mutex::default(),
            address: address.to_owned(),
            host: address.parse().expect("an address is visible ASCII"),
            fields: fields(),
        }
    }

    fn request(&self, target: &str) -> Result<Request<Empty<Bytes>>> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = target.parse()?;
        let headers = request.headers_mut();
        headers.reserve(self.fields.len() + 1);
        headers.insert(HOST, self.host.clone());
        for (name, value) in &self.fields {
            headers.insert(name, value.clone());
        }
        Ok(request)
    }

    /// The connection that was used last, once its last answer's end has been handled, or a new one.
    async fn take(&self) -> Result<Connection> {
        while let Some(mut connection) = self.pop() {
            if connection.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await?;
        // Its end is seen by the next request on this connection.
        tokio::spawn(driver);
        Ok(connection)
    }

    fn pop(&self) -> Option<Connection> {
        self.idle().pop()
    }

    fn put(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < UNDER_WAY && !connection.is_closed() {
            idle.push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client for Small {
    async fn get(&self, target: &str) -> Result<Response<Bytes>> {
        let request = self.request(target)?;
        timeout(DEADLINE, async {
            let mut connection = self.take().await?;
            let (mut head, body) = connection.send_request(request).await?.into_parts();
            let body = Limited::new(body, MOST_BYTES).collect().await;
            let body = body.map_err(anyhow::Error::from_boxed)?.to_bytes();
            self.put(connection);
            head.headers = kept(head.headers);
            Ok(Response::from_parts(head, body))
        })
        .await?
    }
}

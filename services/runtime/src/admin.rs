//! The admin port: `/live`, `/ready`, `/metrics`, and the routes that a binary adds for the operator.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::service::service_fn;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{ConnectionLimits, Connections, Readiness, Server, Shutdown};

/// Answers of the admin port. They ask nothing outside the process.
pub struct Admin {
    readiness: Readiness,
    metrics: Registry,
    routes: Vec<(&'static str, Question)>,
}

type Question = Box<dyn Fn() -> Value + Send + Sync>;

/// The kubelet, Prometheus and the operator, several times over; the longest idle one gives way.
const MAX_CONNECTIONS: usize = 32;

const JSON: &str = "application/json";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Admin {
    /// Answers the three fixed routes.
    pub fn new(readiness: Readiness, metrics: Registry) -> Self {
        Self {
            readiness,
            metrics,
            routes: Vec::new(),
        }
    }

    /// Adds a route that answers with JSON from memory, such as `/data`.
    pub fn json(
        mut self,
        path: &'static str,
        question: impl Fn() -> Value + Send + Sync + 'static,
    ) -> Self {
        self.routes.push((path, Box::new(question)));
        self
    }

    /// Answers until the process ends; it goes on while requests are drained, so that the
    /// operator and the kubelet see how far that is.
    pub async fn serve(self, listener: TcpListener) {
        let connections = Connections::new(ConnectionLimits {
            total: MAX_CONNECTIONS,
            ..ConnectionLimits::default()
        });
        let server = Server::new(connections, Shutdown::default(), Duration::ZERO);
        let admin = Arc::new(self);
        let service = move |_| {
            let admin = Arc::clone(&admin);
            service_fn(move |request: Request<_>| {
                let response = admin.answer(request.method(), request.uri().path());
                async move { Ok::<_, Infallible>(response) }
            })
        };
        server.serve(listener, service).await;
    }

    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if method != Method::GET {
            return response(StatusCode::METHOD_NOT_ALLOWED, JSON, json!({}).to_string());
        }
        match path {
            // Answering is the proof: the thread that runs the background tasks still turns.
            "/live" => response(StatusCode::OK, JSON, json!({"live": true}).to_string()),
            "/ready" => self.ready(),
            "/metrics" => self.metrics(),
            _ => match self.routes.iter().find(|(known, _)| *known == path) {
                Some((_, question)) => response(StatusCode::OK, JSON, question().to_string()),
                None => response(StatusCode::NOT_FOUND, JSON, json!({}).to_string()),
            },
        }
    }

    fn ready(&self) -> Response<Full<Bytes>> {
        let missing = self.readiness.missing();
        let status = if missing.is_empty() {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        let body = json!({"ready": missing.is_empty(), "missing": missing});
        response(status, JSON, body.to_string())
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let mut text = String::new();
        match encode(&mut text, &self.metrics) {
            Ok(()) => response(StatusCode::OK, METRICS, text),
            Err(fmt::Error) => response(StatusCode::INTERNAL_SERVER_ERROR, JSON, "{}".to_owned()),
        }
    }
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

impl fmt::Debug for Admin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes: Vec<_> = self.routes.iter().map(|(path, _)| path).collect();
        formatter
            .debug_struct("Admin")
            .field("readiness", &self.readiness)
            .field("routes", &routes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn get(admin: &Admin, path: &str) -> (StatusCode, String) {
        let (parts, body) = admin.answer(&Method::GET, path).into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readiness_names_what_is_missing() {
        let readiness = Readiness::default();
        let latch = readiness.latch("first snapshot");
        let admin = Admin::new(readiness, Registry::default());
        let unready = r#"{"missing":["first snapshot"],"ready":false}"#.to_owned();
        assert_eq!(
            get(&admin, "/ready").await,
            (StatusCode::SERVICE_UNAVAILABLE, unready)
        );
        assert_eq!(get(&admin, "/live").await.0, StatusCode::OK);
        latch.set();
        assert_eq!(get(&admin, "/ready").await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn a_binary_adds_its_own_answers() {
        let admin = Admin::new(Readiness::default(), Registry::default());
        let admin = admin.json("/data", || json!({"stress": {"rows": 101}}));
        let data = r#"{"stress":{"rows":101}}"#.to_owned();
        assert_eq!(get(&admin, "/data").await, (StatusCode::OK, data));
        assert_eq!(get(&admin, "/other").await.0, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn metrics_tell_the_build() {
        let mut process = crate::Process::start(crate::program!()).unwrap();
        let admin = Admin::new(Readiness::default(), std::mem::take(&mut process.metrics));
        let (_, text) = get(&admin, "/metrics").await;
        let version = crate::version!();
        assert!(
            text.contains(&format!("water_build_info{{version=\"{version}\"}} 1")),
            "{text}"
        );
    }
}

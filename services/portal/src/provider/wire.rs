//! Questions to the identity provider over https: each has a deadline, each answer a largest size,
//! and no redirection is followed.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use tokio::time::timeout;

use super::client::Authority;
use super::failure::ProviderError;

const CONNECT_TIME: Duration = Duration::from_secs(3);
const ANSWER_TIME: Duration = Duration::from_secs(8);
/// The largest answer: key sets of large providers have some 10 KiB, tokens less.
const MAX_ANSWER: usize = 256 * 1024;
/// Characters that a form encodes: those other than the unreserved ones (RFC 3986 §2.3).
pub const FORM: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A client that trusts one private authority, or the public ones.
#[derive(Clone, Debug)]
pub struct Wire(HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>);

/// Error answer of RFC 6749 §5.2.
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl Wire {
    /// Makes a client, which connects when it is first asked something.
    pub fn new(ca: Option<&Authority>) -> Self {
        // rustls wants one provider a process; an earlier choice of the binary is respected.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let roots = match ca {
            Some(ca) => ca.roots().clone(),
            None => RootCertStore {
                roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            },
        };
        let tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIME));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .wrap_connector(tcp);
        Self(HttpClient::builder(TokioExecutor::new()).build(https))
    }

    /// Reads a document.
    pub async fn get(&self, url: &str) -> Result<Bytes, ProviderError> {
        let request = Request::builder()
            .uri(url)
            .header(ACCEPT, "application/json");
        self.send(request.body(Full::default())).await
    }

    /// Posts a form, with an `Authorization` header if there is one.
    pub async fn post(
        &self,
        url: &str,
        form: &[(&str, &str)],
        authorization: Option<String>,
    ) -> Result<Bytes, ProviderError> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(url)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        self.send(request.body(Full::from(encoded(form)))).await
    }

    async fn send(
        &self,
        request: http::Result<Request<Full<Bytes>>>,
    ) -> Result<Bytes, ProviderError> {
        let request = request.map_err(|_| ProviderError::Malformed("the provider's address"))?;
        match timeout(ANSWER_TIME, self.answer(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(ProviderError::Slow),
        }
    }

    async fn answer(&self, request: Request<Full<Bytes>>) -> Result<Bytes, ProviderError> {
        let sent = self.0.request(request).await;
        let (head, body) = sent.map_err(|error| unreachable(&error))?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                ProviderError::Large
            } else {
                unreachable(&*error)
            }
        })?;
        let body = body.to_bytes();
        match head.status {
            StatusCode::OK => Ok(body),
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => Err(refusal(head.status, &body)),
            other => Err(ProviderError::Status(other.as_u16())),
        }
    }
}

/// Percent-encodes a form's pairs.
pub fn encoded(form: &[(&str, &str)]) -> String {
    let pair =
        |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, FORM));
    form.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// Converts an error answer; only words of the standard are repeated.
fn refusal(status: StatusCode, body: &[u8]) -> ProviderError {
    let told = serde_json::from_slice::<Refusal>(body).ok();
    let word = match told.as_ref().map(|told| told.error.as_str()) {
        Some("invalid_grant") => "invalid_grant",
        Some("invalid_client") => "invalid_client",
        Some("unauthorized_client") => "unauthorized_client",
        Some("invalid_request") => "invalid_request",
        Some("invalid_scope") => "invalid_scope",
        Some("unsupported_grant_type") => "unsupported_grant_type",
        _ => return ProviderError::Status(status.as_u16()),
    };
    ProviderError::Refused(word)
}

fn unreachable(error: &(dyn Error + 'static)) -> ProviderError {
    ProviderError::Unreachable(water_runtime::telemetry::chain(error).to_string())
}

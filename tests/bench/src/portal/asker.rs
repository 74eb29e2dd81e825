//! A client that asks one server for the same list again and again, and measures how long 99 of 100 answers
//! take at most. Both sides of the comparison are asked by it.

use std::cell::Cell;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::load::Slice;
use crate::paced;

/// What is asked, in turn.
pub struct Asker {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    requests: Vec<Request<Empty<Bytes>>>,
    next: Cell<usize>,
}

impl Asker {
    /// GET of `url` with a header field of that name and each of these values in turn. `authority` has signed
    /// the server's certificate (PEM), where it has one.
    pub fn new(url: &str, name: &str, values: &[String], authority: &str) -> Result<Self> {
        let request = |value: &String| {
            let request = Request::get(url).header(name, value).body(Empty::new());
            Ok(request?)
        };
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector(authority)?),
            requests: values.iter().map(request).collect::<Result<_>>()?,
            next: Cell::new(0),
        })
    }

    /// The body of the next answer, which has to be 200.
    pub async fn ask(&self) -> Result<Bytes> {
        let number = self.next.replace(self.next.get() + 1);
        let request = self.requests[number % self.requests.len()].clone();
        let answer = self.client.request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        ensure!(
            status == 200,
            "{status}: {}",
            String::from_utf8_lossy(&body)
        );
        Ok(body)
    }

    /// Lets so many ask for a slice. Returns the time that 99 of 100 answers took at most, in milliseconds.
    pub async fn p99(&self, askers: usize, slice: Slice) -> Result<f64> {
        let askers = (0..askers).map(|_| async || self.ask().await.map(drop));
        Ok(paced::p99(askers, slice).await?.as_secs_f64() * 1e3)
    }
}

fn connector(authority: &str) -> Result<HttpsConnector<HttpConnector>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate?)?;
    }
    let ring = rustls::crypto::ring::default_provider();
    let tls = ClientConfig::builder_with_provider(ring.into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp))
}

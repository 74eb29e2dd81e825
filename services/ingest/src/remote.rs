//! A file behind `https://`: bounded in time and size, requested again while its server is away, and never accepted when
//! it was cut off.

mod failure;
mod names;
mod retry;

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use tokio::time::Instant;
use ureq::http::{HeaderMap, Uri, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, BodyReader};
use water_runtime::Secret;

use crate::config::Remote;
use crate::remote::names::Names;

pub use failure::FetchError;

/// Time limit of each step before a connection: looking the host up, TCP and TLS.
const CONNECTING: Duration = Duration::from_secs(10);
/// Time limit of the beginning of an answer: gateways give up earlier, so a server that is silent longer is gone, and half
/// of the usual deadline is left.
const ANSWERING: Duration = Duration::from_secs(300);
/// Redirects that are followed; credentials go to the first host only.
const REDIRECTS: u32 = 5;
/// A thousand times the size of any of the datasets; a larger file has to come from a volume.
const MAX_BYTES: u64 = 4 << 30;

/// Address of a file.
pub struct Address {
    /// The address with its query, which may hold a token.
    uri: Secret<Uri>,
    /// The address without its query.
    pub label: String,
    /// The last part of the path, or the host: names the file in problems.
    pub name: String,
}

/// Reason for which something like a URL cannot be fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidAddress {
    /// The scheme is another one.
    #[error("a file is fetched from an https:// address only: others are not encrypted")]
    Scheme,
    /// The URL has a password, which the machine's list of processes shows.
    #[error(
        "the address has credentials in it: set WATER_SOURCE_USERNAME and WATER_SOURCE_PASSWORD instead"
    )]
    Credentials,
    /// The text is no URL.
    #[error("the address cannot be read: write https://host/path")]
    Form,
}

impl Address {
    /// Returns the address, unless the argument names a file.
    pub fn from_argument(argument: &Path) -> Option<Result<Self, InvalidAddress>> {
        let text = argument.to_str()?;
        let (scheme, _) = text.split_once("://")?;
        let scheme_like = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        scheme.bytes().all(scheme_like).then(|| Self::parse(text))
    }

    fn parse(text: &str) -> Result<Self, InvalidAddress> {
        let uri: Uri = text.parse().map_err(|_| InvalidAddress::Form)?;
        if uri.scheme_str() != Some("https") {
            return Err(InvalidAddress::Scheme);
        }
        let authority = uri.authority().ok_or(InvalidAddress::Form)?.as_str();
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or(InvalidAddress::Form)?.to_owned();
        if authority.contains('@') {
            return Err(InvalidAddress::Credentials);
        }
        let label = format!("https://{authority}{}", uri.path());
        let last = uri
            .path()
            .rsplit('/')
            .next()
            .filter(|last| !last.is_empty());
        let name = last.map_or(host, str::to_owned);
        Ok(Self {
            uri: Secret::new(uri),
            label,
            name,
        })
    }
}

/// A file that is being fetched.
pub struct Download {
    /// Number of bytes, where the server states it.
    pub length: Option<u64>,
    /// The bytes as the server has them.
    pub bytes: Body,
}

/// Requests a file, and returns once its first bytes may be read. `pause` gets each failure that may pass, and waits for
/// the given time before the next attempt; all attempts and the file share the deadline.
pub fn fetch(
    address: &Address,
    settings: &Remote,
    pause: impl FnMut(&FetchError, Duration),
) -> Result<Download, FetchError> {
    let begun = Instant::now();
    let attempt = |left| request(address, settings, left);
    retry::repeat(settings.deadline, || begun.elapsed(), pause, attempt)
}

fn request(address: &Address, settings: &Remote, left: Duration) -> Result<Download, FetchError> {
    let agent = agent(settings, left)?;
    let mut request = agent.get(address.uri.expose());
    if let Some((username, password)) = &settings.credentials {
        let credentials = BASE64.encode(format!("{username}:{}", password.expose()));
        request = request.header(header::AUTHORIZATION, format!("Basic {credentials}"));
    }
    let response = request.call().map_err(FetchError::from)?;
    let status = response.status();
    if status.is_client_error() || status.is_server_error() {
        let retry_after = retry_after(response.headers());
        return Err(FetchError::Status(status.as_u16(), retry_after));
    }
    let length = response.body().content_length();
    match length {
        Some(length) if length > MAX_BYTES => return Err(FetchError::TooLarge),
        None if !is_chunked(response.headers()) => return Err(FetchError::Unbounded),
        _ => {}
    }
    let body = response.into_body().into_with_config();
    // The reader refuses a file with exactly as many bytes as its limit.
    let bytes = Body(body.limit(MAX_BYTES + 1).reader());
    Ok(Download { length, bytes })
}

/// Seconds of `Retry-After`. Its other form, a date, is ignored: it needs clocks that agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u32 = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds.into()))
}

fn is_chunked(headers: &HeaderMap) -> bool {
    let coding = headers.get(header::TRANSFER_ENCODING);
    let coding = coding.and_then(|coding| coding.to_str().ok());
    coding.is_some_and(|coding| coding.to_ascii_lowercase().ends_with("chunked"))
}

fn agent(settings: &Remote, left: Duration) -> Result<Agent, FetchError> {
    let roots = match &settings.ca_file {
        None => RootCerts::WebPki,
        Some(path) => certificates(path)?,
    };
    let config = Agent::config_builder()
        .https_only(true)
        .http_status_as_error(false)
        .user_agent("water-ingest")
        .max_redirects(REDIRECTS)
        .proxy(settings.proxy.as_ref().map(|proxy| proxy.0.clone()))
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .timeout_resolve(Some(CONNECTING))
        .timeout_connect(Some(CONNECTING))
        .timeout_recv_response(Some(ANSWERING))
        .timeout_global(Some(left))
        .build();
    let connector = DefaultConnector::default();
    Ok(Agent::with_parts(config, connector, Names::default()))
}

fn certificates(path: &Path) -> Result<RootCerts, FetchError> {
    let shown = || path.display().to_string();
    let pem = fs::read(path).map_err(|error| FetchError::CaFile(shown(), error))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        Err(FetchError::NoCertificate(shown()))
    } else {
        Ok(RootCerts::from(certificates))
    }
}

/// The bytes of a file. An early end is an error of the connection, never of the file.
pub struct Body(BodyReader<'static>);

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer);
        read.map_err(|error| io::Error::other(FetchError::of_io(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<Result<(String, String), InvalidAddress>> {
        let address = Address::from_argument(Path::new(text))?;
        Some(address.map(|address| (address.label, address.name)))
    }

    #[test]
    fn an_address_is_told_without_its_query() {
        let whole = address("https://data.example/api/departements?token=hunter2");
        let (label, name) = whole.unwrap().unwrap();
        assert_eq!(label, "https://data.example/api/departements");
        assert_eq!(name, "departements");
        let (_, name) = address("https://data.example").unwrap().unwrap();
        assert_eq!(name, "data.example");
    }

    #[test]
    fn what_is_not_encrypted_or_shows_a_password_is_refused() {
        for (text, why) in [
            ("http://data.example/x", InvalidAddress::Scheme),
            ("ftp://data.example/x", InvalidAddress::Scheme),
            ("https://u:p@data.example/x", InvalidAddress::Credentials),
            ("https:///x", InvalidAddress::Form),
            ("https://a b/x", InvalidAddress::Form),
        ] {
            assert_eq!(address(text), Some(Err(why)), "{text}");
        }
        for file in ["stress.csv", "-", "/data/stress.csv", "./a b://c"] {
            assert_eq!(address(file), None, "{file}");
        }
    }
}

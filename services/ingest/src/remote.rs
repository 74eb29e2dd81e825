//! A file behind `https://`: bounded in time and size, and never taken for whole when it was cut off.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use ureq::http::{HeaderMap, Uri, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, BodyReader};
use water_runtime::Secret;

use crate::config::Remote;

/// Until a connection is there: looking the host up, TCP and TLS each.
const CONNECTING: Duration = Duration::from_secs(10);
/// Redirects that are followed; credentials go to the first host only.
const REDIRECTS: u32 = 5;
/// A thousand times what any of the datasets weighs; a larger file comes from a volume.
const MAX_BYTES: u64 = 4 << 30;

/// Where a file is.
pub struct Address {
    /// Its query may hold a token.
    uri: Secret<Uri>,
    /// The address without its query.
    pub label: String,
    /// The last part of the path, or the host: what problems are reported under.
    pub name: String,
}

/// Why something like a URL cannot be fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidAddress {
    /// It has another scheme.
    #[error("a file is fetched from an https:// address only: others are not encrypted")]
    Scheme,
    /// It has a password, which the machine's list of processes shows.
    #[error(
        "the address has credentials in it: set WATER_SOURCE_USERNAME and WATER_SOURCE_PASSWORD instead"
    )]
    Credentials,
    /// It is not one.
    #[error("the address cannot be read: write https://host/path")]
    Form,
}

impl Address {
    /// The address, unless the argument names a file.
    pub fn of(argument: &Path) -> Option<Result<Self, InvalidAddress>> {
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

/// A file that did not come.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The CA file cannot be read.
    #[error("reading the file {0} that WATER_SOURCE_CA_FILE names")]
    CaFile(String, #[source] io::Error),
    /// The CA file has no certificate.
    #[error("the file {0} that WATER_SOURCE_CA_FILE names has no certificate: it must be PEM")]
    NoCertificate(String),
    /// The server answered something else.
    #[error("the server answered status {0}")]
    Status(u16),
    /// It is larger than anything that is loaded.
    #[error("the file has more than 4 GiB: load it from a volume")]
    TooLarge,
    /// Its end could not be told from a lost connection.
    #[error(
        "the server tells neither the file's length nor its end: a cut-off file would look whole"
    )]
    Unbounded,
    /// It took too long.
    #[error("the file did not come in time, which WATER_SOURCE_DEADLINE_SECONDS sets")]
    Deadline,
    /// A redirect to a place that is not encrypted.
    #[error("the server redirects to an address that is not https://")]
    Redirect,
    /// The connection.
    #[error("{0}")]
    Connection(&'static str),
    /// The connection, in the words of the machine.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The server's certificate.
    #[error("the server's certificate is not trusted")]
    Certificate(#[source] rustls::Error),
}

impl FetchError {
    /// No text of the library's own: it may repeat the address, whose query may hold a token.
    fn of(error: ureq::Error) -> Self {
        match error {
            ureq::Error::StatusCode(code) => Self::Status(code),
            ureq::Error::Timeout(_) => Self::Deadline,
            ureq::Error::Io(error) => Self::of_io(error),
            ureq::Error::Rustls(error) => Self::Certificate(error),
            ureq::Error::RequireHttpsOnly(_) => Self::Redirect,
            ureq::Error::BodyExceedsLimit(_) => Self::TooLarge,
            ureq::Error::HostNotFound => Self::Connection("the host's name is not known"),
            ureq::Error::TooManyRedirects => Self::Connection("the server redirects without end"),
            ureq::Error::ConnectProxyFailed(_) => {
                Self::Connection("the proxy refused the connection")
            }
            _ => Self::Connection("the server's answer is not HTTP as it should be"),
        }
    }

    /// The library hides its own errors in those of reading.
    fn of_io(error: io::Error) -> Self {
        match error.downcast::<ureq::Error>() {
            Ok(error) => Self::of(error),
            Err(error) => match error.downcast::<rustls::Error>() {
                Ok(error) => Self::Certificate(error),
                Err(error) => Self::Io(error),
            },
        }
    }
}

/// A file that is on its way.
pub struct Fetched {
    /// How many bytes it has, where the server tells.
    pub length: Option<u64>,
    /// The bytes as the server has them.
    pub bytes: Body,
}

/// Asks for a file, and returns once its first bytes may be read.
pub fn fetch(address: &Address, settings: &Remote) -> Result<Fetched, FetchError> {
    let agent = agent(settings)?;
    let mut request = agent.get(address.uri.expose());
    if let Some((username, password)) = &settings.credentials {
        let credentials = BASE64.encode(format!("{username}:{}", password.expose()));
        request = request.header(header::AUTHORIZATION, format!("Basic {credentials}"));
    }
    let response = request.call().map_err(FetchError::of)?;
    let length = response.body().content_length();
    match length {
        Some(length) if length > MAX_BYTES => return Err(FetchError::TooLarge),
        None if !is_chunked(response.headers()) => return Err(FetchError::Unbounded),
        _ => {}
    }
    let body = response.into_body().into_with_config();
    // The reader calls a file too large that has exactly as many bytes as its limit.
    let bytes = Body(body.limit(MAX_BYTES + 1).reader());
    Ok(Fetched { length, bytes })
}

fn is_chunked(headers: &HeaderMap) -> bool {
    let coding = headers.get(header::TRANSFER_ENCODING);
    let coding = coding.and_then(|coding| coding.to_str().ok());
    coding.is_some_and(|coding| coding.to_ascii_lowercase().ends_with("chunked"))
}

fn agent(settings: &Remote) -> Result<Agent, FetchError> {
    let roots = match &settings.ca_file {
        None => RootCerts::WebPki,
        Some(path) => certificates(path)?,
    };
    let config = Agent::config_builder()
        .https_only(true)
        .user_agent("water-ingest")
        .max_redirects(REDIRECTS)
        .proxy(settings.proxy.as_ref().map(|proxy| proxy.0.clone()))
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .timeout_resolve(Some(CONNECTING))
        .timeout_connect(Some(CONNECTING))
        .timeout_global(Some(settings.deadline))
        .build();
    Ok(config.new_agent())
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
    match certificates.is_empty() {
        true => Err(FetchError::NoCertificate(shown())),
        false => Ok(RootCerts::from(certificates)),
    }
}

/// The bytes of a file. Whatever ends them early is an error of the connection, never of the file.
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
        let address = Address::of(Path::new(text))?;
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

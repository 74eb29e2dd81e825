//! Address of the server and encryption of the connection: a URL and an optional CA file.

use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Attempt, Error, SettingsError};

/// Longest silence of a server before it counts as down.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Limit for a new connection: TCP, TLS, authentication and the session's settings together.
    connecting: Duration,
    /// Limit while the server takes no bytes of an open connection.
    silence: Duration,
}

impl Patience {
    /// Limits of a service, whose client waits for an answer.
    pub(crate) const SERVICE: Self = Self {
        connecting: Duration::from_secs(2),
        silence: Duration::from_secs(10),
    };
    /// Limits of a load: a server that writes a checkpoint may not read its rows for minutes.
    pub(crate) const LOAD: Self = Self {
        connecting: Duration::from_secs(5),
        silence: Duration::from_secs(300),
    };
}

/// Certificate authorities that replace the public ones, as PEM.
#[derive(Clone, Copy, Debug)]
pub enum Authority<'a> {
    /// A file of certificates.
    File(&'a Path),
    /// The certificates' text.
    Pem(&'a str),
}

/// Address and settings of the server. No `Debug`: the configuration holds the password.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) tls: Option<MakeRustlsConnect>,
    patience: Patience,
}

impl Server {
    /// Reads `postgresql://…`. `sslmode` `require`, `verify-ca` and `verify-full` all mean a verified certificate and
    /// host name: against the authority if there is one, otherwise against the public ones. Without `sslmode`, an
    /// authority asks for TLS.
    ///
    /// The driver also reads `host=db user=…`, which is refused: its `sslmode` would be missed here.
    pub(crate) fn new(
        url: &str,
        authority: Option<Authority<'_>>,
        patience: Patience,
    ) -> Result<Self, SettingsError> {
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            return Err(SettingsError::Url);
        }
        let (url, ssl_mode) = split_ssl_mode(url);
        let encrypted = match ssl_mode.as_deref() {
            None => authority.is_some(),
            Some("disable") if authority.is_some() => return Err(SettingsError::CaWithoutTls),
            Some("disable") => false,
            Some("require" | "verify-ca" | "verify-full") => true,
            Some(_) => return Err(SettingsError::SslMode),
        };
        let mut config: Config = url.parse().map_err(|_| SettingsError::Url)?;
        if config.get_hosts().is_empty() {
            return Err(SettingsError::Url);
        }
        config
            .ssl_mode(if encrypted {
                SslMode::Require
            } else {
                SslMode::Disable
            })
            .connect_timeout(patience.connecting)
            .tcp_user_timeout(patience.silence)
            .keepalives_idle(patience.silence);
        let tls = encrypted.then(|| tls(authority)).transpose()?;
        Ok(Self {
            config,
            tls,
            patience,
        })
    }

    /// Opens a connection outside any pool, which lives as long as its client. `settings` are statements that it
    /// begins with: as start-up options a pooler would refuse them. Each notification puts a hint into `hints`,
    /// unless one is waiting there.
    pub(crate) async fn connect(
        &self,
        settings: &str,
        hints: Option<mpsc::Sender<()>>,
    ) -> Result<Client, Error> {
        const ATTEMPT: &str = "connecting to PostgreSQL";
        let connecting = async {
            let client = self.open(hints).await?;
            client.batch_execute(settings).await?;
            Ok::<_, tokio_postgres::Error>(client)
        };
        // The driver's own deadline covers only TCP: a server that accepts may then stay silent.
        match timeout(self.patience.connecting, connecting).await {
            Ok(connected) => connected.attempting(ATTEMPT),
            Err(_) => Err(Error::deadline(ATTEMPT)),
        }
    }

    async fn open(&self, hints: Option<mpsc::Sender<()>>) -> Result<Client, tokio_postgres::Error> {
        match &self.tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                tokio::spawn(drive(connection, hints));
                Ok(client)
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(drive(connection, hints));
                Ok(client)
            }
        }
    }
}

/// Moves a connection's bytes until it ends. The client's next query fails with the same cause, so that the end is
/// only logged for debugging.
async fn drive<T>(mut connection: Connection<Socket, T>, hints: Option<mpsc::Sender<()>>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match (message, &hints) {
            (Ok(AsyncMessage::Notification(_)), Some(hints)) => drop(hints.try_send(())),
            (Ok(_), _) => {}
            (Err(error), _) => {
                tracing::debug!(%error, "a PostgreSQL connection ended");
                return;
            }
        }
    }
}

/// Splits `sslmode` off the URL's query: the driver knows neither `verify-ca` nor `verify-full`.
fn split_ssl_mode(url: &str) -> (String, Option<String>) {
    let Some((base, query)) = url.split_once('?') else {
        return (url.to_owned(), None);
    };
    let (modes, others): (Vec<&str>, Vec<&str>) = query
        .split('&')
        .partition(|parameter| parameter.starts_with("sslmode="));
    let mode = modes
        .last()
        .and_then(|parameter| parameter.strip_prefix("sslmode="))
        .map(str::to_owned);
    let url = if others.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", others.join("&"))
    };
    (url, mode)
}

fn tls(authority: Option<Authority<'_>>) -> Result<MakeRustlsConnect, SettingsError> {
    let roots = match authority {
        None => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
        Some(Authority::File(path)) => certificates_of(path)?,
        Some(Authority::Pem(pem)) => {
            let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
            roots(certificates)
                .ok()
                .flatten()
                .ok_or(SettingsError::Certificate)?
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn certificates_of(file: &Path) -> Result<RootCertStore, SettingsError> {
    let path = file.display().to_string();
    let read = CertificateDer::pem_file_iter(file).and_then(roots);
    match read {
        Ok(Some(roots)) => Ok(roots),
        Ok(None) => Err(SettingsError::NoCertificate { path }),
        Err(source) => Err(SettingsError::CaFile { path, source }),
    }
}

/// Collects the usable certificates; `None` without any.
fn roots(
    certificates: impl Iterator<Item = Result<CertificateDer<'static>, pem::Error>>,
) -> Result<Option<RootCertStore>, pem::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let (_added, _ignored) = roots.add_parsable_certificates([certificate?]);
    }
    Ok((!roots.is_empty()).then_some(roots))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str, ca_file: Option<&str>) -> String {
        let server = Server::new(
            url,
            ca_file.map(|path| Authority::File(Path::new(path))),
            Patience::SERVICE,
        );
        server.err().expect("the URL must be refused").to_string()
    }

    #[test]
    fn tls_is_used_when_sslmode_or_a_ca_file_asks_for_it() {
        let encrypted = |mode: &str| {
            Server::new(
                &format!("postgresql://u:p@db/w{mode}"),
                None,
                Patience::SERVICE,
            )
            .map(|server| server.tls.is_some())
        };
        assert!(!encrypted("").unwrap());
        assert!(!encrypted("?sslmode=disable").unwrap());
        for mode in ["require", "verify-ca", "verify-full"] {
            assert!(
                encrypted(&format!("?application_name=x&sslmode={mode}")).unwrap(),
                "{mode}"
            );
        }
    }

    #[test]
    fn a_load_survives_a_server_that_reads_nothing_for_minutes() {
        let silence = |patience| {
            let server = Server::new("postgresql://u:p@db/w", None, patience).unwrap();
            server.config.get_tcp_user_timeout().copied()
        };
        assert_eq!(silence(Patience::LOAD), Some(Duration::from_secs(300)));
        assert_eq!(silence(Patience::SERVICE), Some(Duration::from_secs(10)));
    }

    #[test]
    fn a_mode_that_promises_nothing_is_refused() {
        for mode in ["prefer", "allow", "yes", ""] {
            let message = error(&format!("postgresql://u:p@db/w?sslmode={mode}"), None);
            assert!(
                message.starts_with("sslmode of the PostgreSQL URL must be disable, require"),
                "{message}"
            );
        }
    }

    #[test]
    fn no_error_repeats_the_url() {
        for url in [
            "",
            "postgresql://u:secret@db:port/w",
            "postgresql:///w",
            "u:secret@db",
            "host=db user=u password=secret sslmode=require",
            " postgresql://u:secret@db/w?sslmode=require",
        ] {
            let message = error(url, None);
            assert!(
                message.starts_with("the PostgreSQL URL cannot be read: write "),
                "{message}"
            );
            assert!(!message.contains("secret"));
        }
    }

    #[test]
    fn a_ca_file_that_is_missing_empty_or_useless_is_named() {
        let url = "postgresql://u:p@db/w";
        assert_eq!(
            error(url, Some("/none.crt")),
            "reading the PostgreSQL CA file /none.crt"
        );
        assert_eq!(
            error(url, Some("/dev/null")),
            "the PostgreSQL CA file /dev/null has no usable certificate: it must be PEM"
        );
        assert_eq!(
            error("postgresql://u:p@db/w?sslmode=disable", Some("/dev/null")),
            "the PostgreSQL URL says sslmode=disable and a CA file is set: remove one of the two"
        );
        let text = Server::new(url, Some(Authority::Pem("no PEM")), Patience::LOAD);
        let why = "the PostgreSQL CA certificate cannot be used: it must be PEM";
        assert_eq!(text.err().expect("it must be refused").to_string(), why);
    }
}

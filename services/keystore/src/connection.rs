//! A connection to Redis that reconnects by itself, never repeats a command, answers within a stated time and cannot be
//! printed. Redis may be one server or a Redis Cluster.

mod lazy;
mod looks;
mod manager;
mod redirection;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use redis::cluster::ClusterClient;
use redis::io::tcp::TcpSettings;
use redis::{
    Client, Cmd, ConnectionInfo, ErrorKind, FromRedisValue, IntoConnectionInfo, Pipeline,
    ProtocolVersion, RedisError, RedisResult, Script, ScriptInvocation, ServerErrorKind,
    TlsCertificates,
};
use tokio::time::timeout;

use crate::failure::{Reason, StoreError};
use lazy::{LazyConnection, Server};
use looks::Looks;

/// Address of Redis and credentials. Has no `Display`, and a `Debug` without content.
#[derive(Clone)]
pub struct ConnectionSettings {
    server: Server,
    store: Box<str>,
    user: Box<str>,
}

/// Problem of a Redis URL or its CA. Repeats neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidConnectionSettings {
    /// The text is not a URL of Redis.
    #[error(
        "the Redis URL is malformed; it must read redis://<user>:<password>@<host>:<port> (rediss:// \
         for TLS, redis-cluster:// and rediss-cluster:// for a Redis Cluster), with reserved \
         characters of the password percent-encoded"
    )]
    Url,
    /// A CA without TLS would be ignored silently.
    #[error(
        "a CA certificate is given, but the Redis URL begins neither with rediss:// nor with rediss-cluster://"
    )]
    CaWithoutTls,
    /// The CA holds no certificate.
    #[error("the CA certificate for Redis is not PEM")]
    Ca,
}

/// Purpose of a connection; it decides how long an answer may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Script on the path of every request: 75 ms. A gate that has no answer by then decides by its own share of the
    /// limits.
    Limiter,
    /// Feed, loads, leases and the operator's writes: 2 s, twice the time that the feed blocks.
    Directory,
}

impl Purpose {
    /// Time limits of making a connection, and of an answer.
    fn timeouts(self) -> (Duration, Duration) {
        let millis = Duration::from_millis;
        match self {
            Self::Limiter => (millis(500), millis(75)),
            Self::Directory => (millis(1000), millis(2000)),
        }
    }

    fn open(self, server: &Server) -> LazyConnection {
        let (connect, response) = self.timeouts();
        // `Looks` keep the time.
        let backstop = 2 * response.max(connect);
        server.open(connect, backstop)
    }
}

/// Time for which sent bytes may stay unacknowledged before the kernel gives the connection up. Without it, a
/// connection through a network that came back would wait for TCP's doubling retransmissions.
const UNACKNOWLEDGED: Duration = Duration::from_secs(2);

impl ConnectionSettings {
    /// Reads a URL, and the PEM text of the CA that signed the server's certificate (public roots
    /// otherwise).
    pub fn new(url: &str, ca: Option<&[u8]>) -> Result<Self, InvalidConnectionSettings> {
        let (url, cluster) = without_cluster(url);
        let info = connection_info(&url).map_err(|_| InvalidConnectionSettings::Url)?;
        let tls = matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. });
        if ca.is_some() && !tls {
            return Err(InvalidConnectionSettings::CaWithoutTls);
        }
        if tls {
            // rustls wants one provider a process; an earlier choice of the binary is respected.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let user = info.redis_settings().username().unwrap_or("default").into();
        let store = format!("{}/{}", info.addr(), info.redis_settings().db()).into();
        let authority = ca.map(|ca| TlsCertificates {
            client_tls: None,
            root_cert: Some(ca.to_vec()),
        });
        let failure = match ca {
            Some(_) => InvalidConnectionSettings::Ca,
            None => InvalidConnectionSettings::Url,
        };
        let server = match (cluster, authority) {
            (true, authority) => cluster_of(info, authority),
            (false, None) => Client::open(info).map(Server::one),
            (false, Some(authority)) => Client::build_with_tls(info, authority).map(Server::one),
        };
        let server = server.map_err(|_| failure)?;
        Ok(Self {
            server,
            store,
            user,
        })
    }

    /// Location of the data, as `<host>:<port>/<database>`: a URL without user and password. Two names of one host
    /// differ here, and so do two nodes of one Redis Cluster.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// The Redis user that the URL names.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// A connection, made when first used. Must be called within a Tokio runtime, on which the
    /// connection then lives.
    pub fn connect(&self, purpose: Purpose) -> Connection {
        let (_, response) = purpose.timeouts();
        Connection {
            inner: Arc::new(ArcSwap::from_pointee(purpose.open(&self.server))),
            looks: Arc::new(Looks::for_answers_within(response)),
            server: self.server.clone(),
            purpose,
        }
    }
}

impl fmt::Debug for ConnectionSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ConnectionSettings")
    }
}

/// Returns the URL of a single node, and whether it was a cluster's. A cluster's host is any of its nodes; the others
/// are learned from it.
fn without_cluster(url: &str) -> (String, bool) {
    match url.split_once("-cluster://") {
        Some((scheme, rest)) => (format!("{scheme}://{rest}"), true),
        None => (url.to_owned(), false),
    }
}

fn connection_info(url: &str) -> RedisResult<ConnectionInfo> {
    let info = url.into_connection_info()?;
    let redis = info
        .redis_settings()
        .clone()
        // RESP3 announces a closed connection at once, so that the next command finds a new one.
        .set_protocol(ProtocolVersion::RESP3)
        .set_skip_set_lib_name();
    Ok(info
        .set_redis_settings(redis)
        .set_tcp_settings(tcp_settings()))
}

fn tcp_settings() -> TcpSettings {
    TcpSettings::default()
        .set_nodelay(true)
        .set_user_timeout(UNACKNOWLEDGED)
}

fn cluster_of(node: ConnectionInfo, authority: Option<TlsCertificates>) -> RedisResult<Server> {
    let cluster = ClusterClient::builder([node.clone()])
        .retries(0)
        .tcp_settings(tcp_settings());
    let (cluster, node) = match authority {
        None => (cluster.build()?, Client::open(node)?),
        Some(authority) => (
            cluster.certs(authority.clone()).build()?,
            Client::build_with_tls(node, authority)?,
        ),
    };
    Ok(Server::cluster(cluster, node))
}

/// A multiplexed connection; clones share it. Commands are sent once: after a failure it is unknown
/// whether they were carried out.
///
/// On a Redis Cluster all keys of a command, a script or a pipeline lie in one slot.
#[derive(Clone)]
pub struct Connection {
    server: Server,
    inner: Arc<ArcSwap<LazyConnection>>,
    looks: Arc<Looks>,
    purpose: Purpose,
}

impl Connection {
    /// Runs one command. `attempt` completes "cannot …" in the error.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        attempt: &'static str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        self.answer(attempt, async |inner| command.query_async(inner).await)
            .await
    }

    /// Runs one command that no request waits for: there is time to make a connection first.
    pub(crate) async fn run_patiently<T: FromRedisValue>(
        &self,
        attempt: &'static str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        let current = self.inner.load_full();
        let mut inner = LazyConnection::clone(&current);
        let (connect, _) = self.purpose.timeouts();
        let answer = timeout(connect, command.query_async(&mut inner)).await;
        let result =
            answer.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()));
        result.map_err(|error| self.failed(attempt, error, &current))
    }

    /// Sends all commands at once and waits for all answers. They only read: while a slot of a Redis
    /// Cluster moves, some are carried out twice.
    pub(crate) async fn run_all<T: FromRedisValue>(
        &self,
        attempt: &'static str,
        commands: &Pipeline,
    ) -> Result<T, StoreError> {
        self.answer(attempt, async |inner| commands.query_async(inner).await)
            .await
    }

    /// Runs `script` by a command that names its hash, and loads it first where Redis does not know it.
    /// Costs less than [`Connection::run_script`], which copies each argument twice.
    pub(crate) async fn run_by_hash<T: FromRedisValue>(
        &self,
        attempt: &'static str,
        script: &Script,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        let ask = async |inner: &mut LazyConnection| match command.query_async(inner).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                script.load_async(inner).await?;
                command.query_async(inner).await
            }
            answer => answer,
        };
        self.answer(attempt, ask).await
    }

    /// Runs a script by its hash, and loads it first where Redis does not know it.
    pub(crate) async fn run_script<T: FromRedisValue>(
        &self,
        attempt: &'static str,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        self.answer(attempt, async |inner| script.invoke_async(inner).await)
            .await
    }

    /// Returns the answer of Redis to `ask`, if it comes in time.
    async fn answer<T>(
        &self,
        attempt: &'static str,
        ask: impl AsyncFnOnce(&mut LazyConnection) -> RedisResult<T>,
    ) -> Result<T, StoreError> {
        let current = self.inner.load_full();
        let mut inner = LazyConnection::clone(&current);
        let result = self.looks.answered(ask(&mut inner)).await;
        result.map_err(|error| self.failed(attempt, error, &current))
    }

    /// Gives the connection up for a new one, made when next used.
    pub(crate) fn reopen(&self) {
        self.inner.store(Arc::new(self.purpose.open(&self.server)));
    }

    /// Replaces the connection after a failure, where another one may help. Without this, a connection would repeat a
    /// refused handshake (a wrong password, too many clients) forever, and go on asking a server that vanished silently
    /// or is no longer the primary. The limiter's questions may be late for none of these reasons: it decides itself
    /// when to [`Connection::reopen`].
    fn failed(
        &self,
        attempt: &'static str,
        error: RedisError,
        current: &Arc<LazyConnection>,
    ) -> StoreError {
        let error = StoreError::new(attempt, error);
        let gone = match error.reason() {
            Reason::WrongPassword | Reason::Unexpected => true,
            // The right server has answered this very question: another connection would get the same answer.
            Reason::OutOfMemory | Reason::Denied => false,
            _ => self.purpose == Purpose::Directory,
        };
        if gone {
            let next = Arc::new(self.purpose.open(&self.server));
            self.inner.compare_and_swap(current, next);
        }
        error
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connection")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_never_print_their_password() {
        let url = "redis://operator:very-secret@redis:6379";
        let settings = ConnectionSettings::new(url, None).unwrap();
        assert_eq!(format!("{settings:?}"), "ConnectionSettings");
    }

    #[test]
    fn a_store_is_told_by_host_port_and_database_and_not_by_who_asks() {
        let store = |url| ConnectionSettings::new(url, None).unwrap().store;
        assert_eq!(
            &*store("redis://operator:very-secret@redis"),
            "redis:6379/0"
        );
        assert_eq!(
            store("redis://gate:other@redis"),
            store("redis://redis:6379/0")
        );
        assert_ne!(store("redis://redis"), store("redis://redis:6380"));
        assert_ne!(store("redis://redis"), store("redis://redis/1"));
        assert_eq!(store("redis-cluster://redis"), store("redis://redis"));
    }

    #[test]
    fn a_bad_url_is_refused_without_being_repeated() {
        for url in [
            "",
            "very-secret",
            "http://u:very-secret@redis",
            "redis://u:p@h:notaport",
            "http-cluster://u:very-secret@redis",
            "unix-cluster:///very-secret",
        ] {
            let error = ConnectionSettings::new(url, None).unwrap_err();
            assert_eq!(error, InvalidConnectionSettings::Url, "{url}");
            assert!(!error.to_string().contains("very-secret"));
        }
    }

    #[test]
    fn a_cluster_is_told_by_its_scheme() {
        for (url, single) in [
            ("redis-cluster://u:p@h:1", "redis://u:p@h:1"),
            ("rediss-cluster://h", "rediss://h"),
        ] {
            assert_eq!(without_cluster(url), (single.to_owned(), true));
        }
        let same = "redis://u:p-cluster@h:1";
        assert_eq!(without_cluster(same), (same.to_owned(), false));
    }

    #[test]
    fn a_ca_needs_tls_and_a_certificate() {
        let refused =
            |url, ca: &str| ConnectionSettings::new(url, Some(ca.as_bytes())).unwrap_err();
        assert_eq!(
            refused("redis://redis", "x"),
            InvalidConnectionSettings::CaWithoutTls
        );
    }
}

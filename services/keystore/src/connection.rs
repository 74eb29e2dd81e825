//! A connection to Redis that comes back by itself, never repeats a command, answers within a
//! stated time and cannot be printed.

use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{
    Client, Cmd, ConnectionInfo, FromRedisValue, IntoConnectionInfo, Pipeline, ProtocolVersion,
    RedisError, RedisResult, ScriptInvocation, TlsCertificates,
};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::failure::{Reason, StoreError};

/// Where Redis is and how to be let in. Has no `Display`, and a `Debug` without content.
#[derive(Clone)]
pub struct ConnectionSettings(Client);

/// What is wrong with a Redis URL or its CA. Repeats neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidConnectionSettings {
    /// Not a URL of Redis.
    #[error(
        "the Redis URL is malformed; it must read redis://<user>:<password>@<host>:<port> (rediss:// \
         for TLS), with reserved characters of the password percent-encoded"
    )]
    Url,
    /// A CA without TLS would be ignored silently.
    #[error("a CA certificate is given, but the Redis URL does not begin with rediss://")]
    CaWithoutTls,
    /// The CA holds no certificate.
    #[error("the CA certificate for Redis is not PEM")]
    Ca,
}

/// What a connection is for; it decides how long an answer may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// One script on the path of every request: 500 ms. While Redis is slow the only other thing to
    /// do is to refuse, and an answer that late is still better for the client.
    Limiter,
    /// Feed, loads, leases and the operator's writes: 2 s, twice the time that the feed blocks.
    Directory,
}

impl Purpose {
    fn response_timeout(self) -> Duration {
        match self {
            Self::Limiter => Duration::from_millis(500),
            Self::Directory => Duration::from_secs(2),
        }
    }

    fn connect_timeout(self) -> Duration {
        match self {
            Self::Limiter => Duration::from_millis(500),
            Self::Directory => Duration::from_secs(1),
        }
    }
}

/// How long sent bytes may stay unacknowledged before the kernel gives the connection up. Without
/// it, a connection through a network that came back would wait for TCP's doubling retransmissions.
const UNACKNOWLEDGED: Duration = Duration::from_secs(2);
/// Commands that may wait for the socket; the client's default of 50 is less than a burst.
const QUEUE: usize = 1024;

impl ConnectionSettings {
    /// Reads a URL, and the PEM text of the CA that signed the server's certificate (public roots
    /// otherwise).
    pub fn new(url: &str, ca: Option<&[u8]>) -> Result<Self, InvalidConnectionSettings> {
        let info = connection_info(url).map_err(|_| InvalidConnectionSettings::Url)?;
        let tls = matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. });
        let opened = match ca {
            None => Client::open(info),
            Some(_) if !tls => return Err(InvalidConnectionSettings::CaWithoutTls),
            Some(ca) => Client::build_with_tls(
                info,
                TlsCertificates {
                    client_tls: None,
                    root_cert: Some(ca.to_vec()),
                },
            ),
        };
        if tls {
            // rustls wants one provider a process; an earlier choice of the binary is respected.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        opened.map(Self).map_err(|_| InvalidConnectionSettings::Ca)
    }

    /// The Redis user that the URL names.
    pub fn user(&self) -> &str {
        let redis = self.0.get_connection_info().redis_settings();
        redis.username().unwrap_or("default")
    }

    /// A connection, made when first used. Must be called within a Tokio runtime, on which the
    /// connection then lives.
    pub fn connect(&self, purpose: Purpose) -> Connection {
        let link = Link {
            client: self.0.clone(),
            config: ConnectionManagerConfig::new()
                .set_number_of_retries(0)
                // `answered` keeps this time, and looks twice.
                .set_response_timeout(None)
                .set_connection_timeout(Some(purpose.connect_timeout()))
                .set_pipeline_buffer_size(QUEUE),
        };
        Connection {
            manager: Arc::new(ArcSwap::from_pointee(link.open())),
            link: Arc::new(link),
            timeout: purpose.response_timeout(),
        }
    }
}

impl fmt::Debug for ConnectionSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ConnectionSettings")
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
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_user_timeout(UNACKNOWLEDGED);
    Ok(info.set_redis_settings(redis).set_tcp_settings(tcp))
}

/// A multiplexed connection; clones share it. Commands are sent once: after a failure it is unknown
/// whether they were carried out.
#[derive(Clone)]
pub struct Connection {
    link: Arc<Link>,
    manager: Arc<ArcSwap<ConnectionManager>>,
    timeout: Duration,
}

struct Link {
    client: Client,
    config: ConnectionManagerConfig,
}

impl Link {
    fn open(&self) -> ConnectionManager {
        ConnectionManager::new_lazy_with_config(self.client.clone(), self.config.clone())
            .expect("only push senders and subscriptions can be misconfigured, and neither is used")
    }
}

impl Connection {
    /// Runs one command. `attempt` completes "cannot …" in the error.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        attempt: &'static str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        let current = self.manager.load_full();
        let mut manager = ConnectionManager::clone(&current);
        let result = self.answered(command.query_async(&mut manager)).await;
        result.map_err(|error| self.failed(attempt, error, &current))
    }

    /// Sends all commands at once and waits for all answers.
    pub(crate) async fn run_all<T: FromRedisValue>(
        &self,
        attempt: &'static str,
        commands: &Pipeline,
    ) -> Result<T, StoreError> {
        let current = self.manager.load_full();
        let mut manager = ConnectionManager::clone(&current);
        let result = self.answered(commands.query_async(&mut manager)).await;
        result.map_err(|error| self.failed(attempt, error, &current))
    }

    /// Runs a script by its hash, and loads it first where Redis does not know it.
    pub(crate) async fn run_script<T: FromRedisValue>(
        &self,
        attempt: &'static str,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let current = self.manager.load_full();
        let mut manager = ConnectionManager::clone(&current);
        let result = self.answered(script.invoke_async(&mut manager)).await;
        result.map_err(|error| self.failed(attempt, error, &current))
    }

    /// The answer, if it comes in time. When this process itself was stalled, time has run out
    /// before what arrived meanwhile was read: a last look comes after the sockets were.
    async fn answered<T>(&self, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let mut answer = pin!(answer);
        if let Ok(answer) = timeout(self.timeout, &mut answer).await {
            return answer;
        }
        yield_now().await;
        let late = answer.now_or_never();
        late.unwrap_or_else(|| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }

    /// The manager makes a new connection after I/O errors only. When Redis refused the handshake
    /// (a wrong password, too many clients), it would repeat that refusal for ever.
    fn failed(
        &self,
        attempt: &'static str,
        error: RedisError,
        current: &Arc<ConnectionManager>,
    ) -> StoreError {
        let error = StoreError::new(attempt, error);
        if matches!(error.reason(), Reason::WrongPassword | Reason::Unexpected) {
            self.manager
                .compare_and_swap(current, Arc::new(self.link.open()));
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
    fn a_bad_url_is_refused_without_being_repeated() {
        for url in [
            "",
            "very-secret",
            "http://u:very-secret@redis",
            "redis://u:p@h:notaport",
        ] {
            let error = ConnectionSettings::new(url, None).unwrap_err();
            assert_eq!(error, InvalidConnectionSettings::Url, "{url}");
            assert!(!error.to_string().contains("very-secret"));
        }
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

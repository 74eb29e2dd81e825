//! A network that fails on demand.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use water_harness::{Network, Proxy, Redis};

/// Exchanges of another client, after which an answer would have come: they begin later and end before.
const EXCHANGES: usize = 10;

/// Client that sends a PING at a time to a Redis behind a proxy.
struct Client(TcpStream);

impl Client {
    async fn connect(proxy: &Proxy) -> Result<Self> {
        Ok(Self(TcpStream::connect(proxy.address()).await?))
    }

    async fn ask(&mut self) -> Result<String> {
        self.0.write_all(b"PING\r\n").await?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<String> {
        let mut answer = [0; 7];
        let length = self.0.read(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    /// Whether nothing has come while another client, whose connection is good, was answered again and again.
    async fn is_silent_beside(&self, other: &mut Client) -> Result<bool> {
        for _ in 0..EXCHANGES {
            let answer = other.ask().await?;
            ensure!(answer == "+PONG\r\n", "the other client got {answer:?}");
        }
        let came = self.0.try_read(&mut [0; 7]);
        Ok(came.is_err_and(|error| error.kind() == ErrorKind::WouldBlock))
    }
}

async fn proxy() -> Result<Proxy> {
    Proxy::before(Redis::shared().await?.address()).await
}

#[tokio::test]
async fn what_passes_is_counted() -> Result<()> {
    let proxy = proxy().await?;
    let mut client = Client::connect(&proxy).await?;
    assert_eq!(client.ask().await?, "+PONG\r\n");
    assert_eq!((proxy.connections(), proxy.answers()), (1, 7));
    Ok(())
}

#[tokio::test]
async fn a_black_hole_is_silent_and_delivers_afterwards() -> Result<()> {
    let (proxy, good) = (proxy().await?, proxy().await?);
    let mut client = Client::connect(&proxy).await?;
    let mut other = Client::connect(&good).await?;
    client.ask().await?;
    proxy.set(Network::BlackHole);
    client.0.write_all(b"PING\r\n").await?;
    assert!(client.is_silent_beside(&mut other).await?);
    proxy.set(Network::Good);
    assert_eq!(client.answer().await?, "+PONG\r\n");
    Ok(())
}

#[tokio::test]
async fn a_reset_ends_old_and_new_connections() -> Result<()> {
    let proxy = proxy().await?;
    let mut client = Client::connect(&proxy).await?;
    client.ask().await?;
    proxy.set(Network::Reset);
    assert!(client.answer().await.is_err());
    assert!(Client::connect(&proxy).await?.ask().await.is_err());
    proxy.set(Network::Good);
    assert!(Client::connect(&proxy).await?.ask().await.is_ok());
    Ok(())
}

#[tokio::test]
async fn a_delay_delays_each_answer_and_not_one_after_the_other() -> Result<()> {
    let proxy = proxy().await?;
    let delay = Duration::from_secs(5);
    proxy.set(Network::Delay(delay));
    let mut apart = Vec::new();
    // A machine that stands still between two answers delays the second one, too: they are asked for again.
    for _ in 0..3 {
        let mut client = Client::connect(&proxy).await?;
        let began = Instant::now();
        client.0.write_all(b"PING\r\n").await?;
        client.0.write_all(b"PING\r\n").await?;
        client.answer().await?;
        let first = began.elapsed();
        client.answer().await?;
        let second = began.elapsed();
        assert!(first >= delay, "{first:?}");
        if second < first + delay {
            return Ok(());
        }
        apart.push((first, second));
    }
    bail!("one after the other each time: {apart:?}");
}

#[tokio::test]
async fn a_rate_slows_each_answer_down_until_the_network_is_good() -> Result<()> {
    let proxy = proxy().await?;
    proxy.set(Network::Rate(20));
    let mut client = Client::connect(&proxy).await?;
    let (began, mut pong) = (Instant::now(), [0; 7]);
    client.0.write_all(b"PING\r\n").await?;
    client.0.read_exact(&mut pong).await?;
    assert_eq!(&pong, b"+PONG\r\n");
    // Seven bytes at 20 a second.
    assert!(began.elapsed() >= Duration::from_millis(350));
    proxy.set(Network::Good);
    assert_eq!(client.ask().await?, "+PONG\r\n");
    Ok(())
}

#[tokio::test]
async fn a_half_open_connection_is_dead_for_ever_and_a_new_one_is_good() -> Result<()> {
    let proxy = proxy().await?;
    let mut client = Client::connect(&proxy).await?;
    client.ask().await?;
    proxy.half_open();
    client.0.write_all(b"PING\r\n").await?;
    let mut new = Client::connect(&proxy).await?;
    assert_eq!(new.ask().await?, "+PONG\r\n");
    assert!(client.is_silent_beside(&mut new).await?);
    Ok(())
}

#[tokio::test]
async fn a_truncated_answer_ends_with_the_connection() -> Result<()> {
    let proxy = proxy().await?;
    proxy.set(Network::Truncate(3));
    let mut client = Client::connect(&proxy).await?;
    assert_eq!(client.ask().await?, "+PO");
    assert_eq!(client.answer().await.unwrap_or_default(), "");
    Ok(())
}

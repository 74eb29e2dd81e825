//! Deadlines of a connection, shortened, against real sockets.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, interval};
use water_harness::HttpClient;
use water_runtime::listener::listen;
use water_runtime::{ConnectionLimits, Shutdown};

use crate::server::{LARGE, LONG, SHORT, on, patient, start, start_with};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn an_idle_connection_is_closed_at_its_deadline() -> Result<()> {
    let server = start_with(|limits| limits.idle = SHORT);
    let mut client = server.client().await;
    let begun = Instant::now();
    assert!(client.closed().await?.is_empty());
    assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn idle_time_counts_from_the_last_answer() -> Result<()> {
    // Long enough for a busy machine, which may be late with a request.
    const IDLE: Duration = Duration::from_secs(3);
    let server = start_with(|limits| limits.idle = IDLE);
    // A machine that stands still for so long closes the connection rightly: the next one is asked.
    'connections: loop {
        let begun = Instant::now();
        let mut client = server.client().await;
        let mut pace = interval(SHORT);
        let mut last = begun;
        while begun.elapsed() < IDLE + SHORT {
            pace.tick().await;
            let asked = Instant::now();
            match client.request("GET", "/", &[]).await {
                Ok(answer) => assert_eq!(answer.status, 200),
                Err(_) if last.elapsed() >= IDLE => continue 'connections,
                Err(error) => return Err(error),
            }
            last = asked;
        }
        client.closed().await?;
        return Ok(());
    }
}

#[tokio::test]
async fn a_request_under_way_is_not_idle() -> Result<()> {
    let limits = ConnectionLimits {
        idle: SHORT,
        head: SHORT,
        ..patient()
    };
    // The request is there before the server: however busy the machine, it does not come after a deadline.
    let listener = listen(([127, 0, 0, 1], 0).into())?;
    let mut client = HttpClient::connect(listener.local_addr()?).await?;
    client.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n").await?;
    let server = on(listener, limits, LONG, Shutdown::default());
    // Another connection meets its deadline meanwhile, twice.
    server.client().await.closed().await?;
    server.client().await.closed().await?;
    server.held.add_permits(1);
    assert_eq!(client.answer().await?.text()?, "released");
    Ok(())
}

#[tokio::test]
async fn a_head_that_trickles_in_is_closed_at_its_deadline() -> Result<()> {
    let server = start_with(|limits| limits.head = SHORT);
    let mut client = server.client().await;
    let begun = Instant::now();
    let (mut pace, mut sent) = (interval(SHORT / 10), 0);
    client.send("GET / HTTP/1.1\r\nX-Slow: ").await?;
    while client.send("x").await.is_ok() {
        pace.tick().await;
        sent += 1;
        assert!(sent < 2_000, "bytes keep a slow head open");
    }
    assert!(begun.elapsed() >= SHORT);
    server.wait_for_open(0).await;
    Ok(())
}

#[tokio::test]
async fn the_heads_deadline_counts_from_its_first_byte() -> Result<()> {
    let server = start_with(|limits| limits.head = SHORT);
    let mut client = server.client().await;
    server.wait_for_open(1).await;
    // A slow head that comes later ends first: silence is not judged by the head's deadline.
    let mut slow = server.client().await;
    slow.send("GET").await?;
    slow.closed().await?;
    assert_eq!(client.request("GET", "/", &[]).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_head_that_begins_behind_another_request_has_the_heads_deadline() -> Result<()> {
    let server = start_with(|limits| limits.head = SHORT);
    for beginning in ["G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r"] {
        let mut client = server.client().await;
        let begun = Instant::now();
        client
            .send(format!("{REQUEST}{REQUEST}{beginning}"))
            .await?;
        assert_eq!(client.answer().await?.text()?, "hello");
        assert_eq!(client.answer().await?.text()?, "hello");
        assert!(client.closed().await?.is_empty());
        let closed = begun.elapsed();
        assert!(closed >= SHORT, "{beginning:?}: {closed:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_head_that_began_behind_another_request_leaves_no_deadline_when_it_is_complete()
-> Result<()> {
    let (beginning, rest) = REQUEST.split_at(REQUEST.len() - 1);
    let mut deadline = SHORT;
    loop {
        ensure!(deadline < 64 * SHORT, "closed even after {deadline:?}");
        let server = start_with(|limits| limits.head = deadline);
        let mut client = server.client().await;
        let begun = Instant::now();
        let complete = async {
            client.send(format!("{REQUEST}{beginning}")).await?;
            assert_eq!(client.answer().await?.text()?, "hello");
            client.send(rest).await?;
            assert_eq!(client.answer().await?.text()?, "hello");
            anyhow::Ok(())
        };
        match complete.await {
            // The rest of the head came too late, on a busy machine.
            Err(_) if begun.elapsed() >= deadline => {
                deadline *= 2;
                continue;
            }
            complete => complete?,
        }
        // A slow head that comes later ends first: silence is not judged by the head's deadline.
        let mut slow = server.client().await;
        slow.send("GET").await?;
        slow.closed().await?;
        assert_eq!(client.request("GET", "/", &[]).await?.status, 200);
        return Ok(());
    }
}

#[tokio::test]
async fn a_slow_reader_has_one_deadline_for_a_whole_large_answer() -> Result<()> {
    let server = start_with(|limits| limits.write = SHORT);
    let mut client = TcpStream::connect(server.address).await?;
    client
        .write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        .await?;
    let (mut pace, mut piece) = (interval(SHORT / 10), vec![0; 256 * 1024]);
    let mut read = 0;
    // Reads on, but too slowly for all of it within the deadline.
    while let Ok(1..) = client
        .read(&mut piece)
        .await
        .inspect(|length| read += length)
    {
        pace.tick().await;
    }
    assert!(read < LARGE, "the whole answer was sent");
    server.wait_for_open(0).await;
    Ok(())
}

#[tokio::test]
async fn where_no_side_is_closed_alone_a_peer_that_leaves_ends_the_work() -> Result<()> {
    let server = start_with(|limits| limits.half_close = false);
    let mut client = server.client().await;
    client
        .send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
        .await?;
    server.wait_for_open(1).await;
    drop(client);
    server.wait_for_open(0).await;
    Ok(())
}

#[tokio::test]
async fn who_closes_only_the_sending_side_gets_the_answer() -> Result<()> {
    let server = start(patient(), LONG);
    let mut client = TcpStream::connect(server.address).await?;
    client
        .write_all(b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
        .await?;
    client.shutdown().await?;
    server.held.add_permits(1);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await?;
    assert!(
        answer.ends_with(b"released"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    Ok(())
}

#[tokio::test]
async fn a_head_over_32_kib_is_431_and_what_the_client_still_sends_is_no_error() -> Result<()> {
    let server = start_with(|limits| limits.linger = LONG);
    let mut client = server.client().await;
    let large = "x".repeat(100 * 1024);
    client
        .send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Large: {large}"))
        .await?;
    let answer = client.answer().await?;
    assert_eq!((answer.status, answer.text()?), (431, ""));
    assert!(client.closed().await?.is_empty());
    // A reset, which other systems show before the answer they received, would be an error here.
    client.send(large).await?;
    Ok(())
}

#[tokio::test]
async fn what_follows_a_connect_does_not_cost_the_client_its_answer() -> Result<()> {
    let server = start_with(|limits| limits.linger = LONG);
    let mut client = server.client().await;
    let more = "x".repeat(100 * 1024);
    client
        .send(format!("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n{more}"))
        .await?;
    client.finish().await?;
    // A reset, which may overtake the answer, would be an error here.
    let answer = client.closed().await?;
    assert!(answer.starts_with(b"HTTP/1.1 405"), "{answer:?}");
    Ok(())
}

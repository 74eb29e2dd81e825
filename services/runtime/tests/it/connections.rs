//! Bounds on the number of connections, and the choice of the one that is closed.

use std::time::Duration;

use anyhow::{Result, ensure};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::Instant;
use water_harness::wait_until;
use water_runtime::ConnectionLimits;

use crate::server::{LONG, SOON, patient, start, start_with};

/// Idle times that differ by less than this may count as equal.
const GRAIN: Duration = Duration::from_millis(1);

#[tokio::test]
async fn at_the_cap_the_longest_idle_connection_is_closed() -> Result<()> {
    let server = start_with(|limits| limits.total = 2);
    let (mut first, mut second) = (server.client().await, server.client().await);
    server.wait_for_open(2).await;
    // The first is used again, so that the second is idle longer.
    second.request("GET", "/", &[]).await?;
    let begun = Instant::now();
    let mut differs = false;
    while !differs {
        differs = begun.elapsed() > GRAIN * 2;
        first.request("GET", "/", &[]).await?;
    }
    let mut third = server.client().await;
    assert_eq!(third.request("GET", "/", &[]).await?.status, 200);
    assert!(second.closed().await?.is_empty());
    assert_eq!(first.request("GET", "/", &[]).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_request_under_way_is_never_given_up_for_a_new_connection() -> Result<()> {
    let server = start_with(|limits| limits.total = 1);
    let mut busy = server.client().await;
    busy.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n").await?;
    server.wait_for_open(1).await;
    assert!(server.client().await.closed().await?.is_empty());
    server.held.add_permits(1);
    assert_eq!(busy.answer().await?.text()?, "released");
    Ok(())
}

#[tokio::test]
async fn who_does_not_take_an_answer_gives_way_to_a_new_connection() -> Result<()> {
    let server = start_with(|limits| limits.total = 1);
    let mut reader = TcpStream::connect(server.address).await?;
    let request = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
    reader.write_all(request).await?;
    // The answer has begun to arrive, and is left there.
    reader.readable().await?;
    let served = async || {
        let answer = server.client().await.request("GET", "/", &[]).await?;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    };
    wait_until("a place", SOON, served).await
}

#[tokio::test]
async fn a_good_client_is_served_beside_ten_times_the_cap() -> Result<()> {
    let server = start_with(|limits| {
        limits.total = 50;
        limits.per_peer = 1000;
    });
    let mut idle = Vec::new();
    for _ in 0..500 {
        idle.push(server.client().await);
    }
    let mut good = server.client().await;
    assert_eq!(good.request("GET", "/", &[]).await?.status, 200);
    assert!(server.connections.open() <= 50);
    Ok(())
}

#[tokio::test]
async fn one_peer_has_its_share_and_a_trusted_proxy_more() -> Result<()> {
    let mut limits = ConnectionLimits {
        per_peer: 1,
        ..patient()
    };
    let server = start(limits.clone(), LONG);
    let mut metrics = Registry::default();
    server.connections.register(&mut metrics);
    let mut first = server.client().await;
    first.request("GET", "/", &[]).await?;
    assert!(server.client().await.closed().await?.is_empty());
    let counted = "connections_closed_total{reason=\"peer_limit\"} 1\n";
    assert!(shown(&metrics)?.contains(counted));
    drop(first);
    server.wait_for_open(0).await;
    assert_eq!(
        server.client().await.request("GET", "/", &[]).await?.status,
        200
    );

    limits.trusted = vec!["127.0.0.0/8".parse()?];
    let server = start(limits, LONG);
    let (mut first, mut second) = (server.client().await, server.client().await);
    assert_eq!(first.request("GET", "/", &[]).await?.status, 200);
    assert_eq!(second.request("GET", "/", &[]).await?.status, 200);
    Ok(())
}

/// Returns the text of `/metrics`.
fn shown(metrics: &Registry) -> Result<String> {
    let mut text = String::new();
    encode(&mut text, metrics)?;
    Ok(text)
}

#[tokio::test]
async fn what_the_parser_refuses_is_counted_whether_its_sender_stays_or_leaves() -> Result<()> {
    let server = start(patient(), LONG);
    let mut metrics = Registry::default();
    server.connections.register(&mut metrics);
    let good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let unreadable = [
        "nothing that anybody knows\r\n\r\n".to_owned(),
        format!("{good}G(T / HTTP/1.1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(33 * 1024)),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1} as TLS begins".to_owned(),
    ];
    let mut staying = Vec::new();
    for bytes in &unreadable {
        let (mut stays, mut leaves) = (server.client().await, server.client().await);
        stays.send(bytes).await?;
        leaves.send(bytes).await?;
        leaves.finish().await?;
        let answers = String::from_utf8(leaves.closed().await?.to_vec())?;
        let last = answers.rsplit("HTTP/1.1 ").next().unwrap();
        assert!(last.is_empty() || last.starts_with('4'), "{answers}");
        staying.push(stays);
    }
    // Half a head, and nothing at all, are no refusals of ours.
    server.client().await.send("GET / HT").await?;
    drop(server.client().await);
    let counted = async || {
        let text = shown(&metrics)?;
        ensure!(
            text.contains("connections_closed_total{reason=\"unreadable\"} 10\n"),
            "{text}"
        );
        Ok(())
    };
    wait_until("ten refusals", SOON, counted).await?;
    server.wait_for_open(0).await;
    counted().await
}

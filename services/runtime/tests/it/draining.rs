//! Stopping and draining: nothing that was asked for is lost, and nothing waits for ever.

use anyhow::Result;
use tokio::net::TcpStream;
use water_harness::{HttpClient, Port};
use water_runtime::listener::listen;
use water_runtime::shutdown::Stage;
use water_runtime::{ConnectionLimits, DrainOutcome, Shutdown};

use crate::server::{LONG, SHORT, on, patient, start};

#[tokio::test]
async fn while_stopping_everything_is_served_and_answers_ask_to_close() -> Result<()> {
    let server = start(patient(), LONG);
    let mut client = server.client().await;
    assert_eq!(
        client.request("GET", "/", &[]).await?.header("connection"),
        None
    );
    server.shutdown.advance(Stage::Stopping);
    let mut late = server.client().await;
    assert_eq!(
        late.request("GET", "/", &[]).await?.header("connection"),
        Some("close")
    );
    assert_eq!(
        client.request("GET", "/", &[]).await?.header("connection"),
        Some("close")
    );
    assert!(client.closed().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_request_under_way_is_answered_while_draining() -> Result<()> {
    // Nobody else takes this port once it is closed.
    let port = Port::reserve()?;
    let listener = listen(port.address())?;
    let server = on(listener, patient(), LONG, Shutdown::default());
    let mut client = server.client().await;
    client.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n").await?;
    server.wait_for_open(1).await;
    let mut idle = server.client().await;
    idle.request("GET", "/", &[]).await?;
    server.shutdown.advance(Stage::Draining);
    assert!(idle.closed().await?.is_empty());
    assert!(TcpStream::connect(server.address).await.is_err());
    server.held.add_permits(1);
    let answer = client.answer().await?;
    assert_eq!(
        (answer.text()?, answer.header("connection")),
        ("released", Some("close"))
    );
    client.closed().await?;
    drop((client, idle));
    assert_eq!(server.ended.await?, DrainOutcome { cut: 0 });
    Ok(())
}

#[tokio::test]
async fn what_does_not_end_by_the_deadline_is_cut_and_counted() -> Result<()> {
    let server = start(patient(), SHORT);
    let mut stuck = server.client().await;
    stuck.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n").await?;
    server.wait_for_open(1).await;
    assert_eq!(server.drain().await, DrainOutcome { cut: 1 });
    assert!(stuck.closed().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_connection_in_the_listeners_queue_is_answered_before_it_closes() -> Result<()> {
    let listener = listen(([127, 0, 0, 1], 0).into())?;
    let mut early = HttpClient::connect(listener.local_addr()?).await?;
    let shutdown = Shutdown::default();
    shutdown.advance(Stage::Draining);
    let server = on(listener, patient(), LONG, shutdown);
    let answer = early.request("GET", "/", &[]).await?;
    assert_eq!(
        (answer.text()?, answer.header("connection")),
        ("hello", Some("close"))
    );
    drop(early);
    assert_eq!(server.ended.await?, DrainOutcome { cut: 0 });
    Ok(())
}

#[tokio::test]
async fn a_connection_without_a_request_yet_may_send_its_first_while_draining() -> Result<()> {
    let limits = ConnectionLimits {
        first_request: LONG,
        ..patient()
    };
    let server = start(limits, LONG);
    let (mut early, mut used) = (server.client().await, server.client().await);
    used.request("GET", "/", &[]).await?;
    server.wait_for_open(2).await;
    server.shutdown.advance(Stage::Draining);
    assert!(used.closed().await?.is_empty());
    let answer = early.request("GET", "/", &[]).await?;
    assert_eq!(
        (answer.text()?, answer.header("connection")),
        ("hello", Some("close"))
    );
    Ok(())
}

#[tokio::test]
async fn a_connection_that_never_asks_does_not_hold_draining_up() -> Result<()> {
    let server = start(patient(), LONG);
    let mut silent = server.client().await;
    server.wait_for_open(1).await;
    let drained = server.drain().await;
    assert_eq!(drained, DrainOutcome { cut: 0 });
    assert!(silent.closed().await?.is_empty());
    Ok(())
}

//! An interceptor: requests are counted, and at one of them a fault happens, before or after the
//! server has carried it out.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use water_harness::{ControlPlane, Fault, HttpClient, Interceptor, Moment, Program, Redis, Which};

/// Starts a Redis behind an interceptor.
async fn redis() -> Result<(Redis, Interceptor, TcpStream)> {
    let redis = Redis::start().await?;
    let mut interceptor = Interceptor::default();
    let address = interceptor.before_redis(redis.address()).await?;
    Ok((redis, interceptor, TcpStream::connect(address).await?))
}

/// Encodes a command as a client sends it.
fn command(words: &[&str]) -> String {
    let words = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let words: Vec<String> = words.collect();
    format!("*{}\r\n{}", words.len(), words.concat())
}

/// Returns the rest of the bytes until the connection ends.
async fn rest(client: &mut TcpStream) -> Result<String> {
    let mut rest = String::new();
    // A reset ends it too.
    let _ = client.read_to_string(&mut rest).await;
    Ok(rest)
}

#[tokio::test]
async fn a_command_that_is_cut_before_delivery_is_not_carried_out() -> Result<()> {
    let (redis, interceptor, mut client) = redis().await?;
    interceptor.order(Which::Number(2), Moment::BeforeDelivery, Fault::Cut);
    let both = command(&["INCR", "a"]) + &command(&["INCR", "a"]);
    client.write_all(both.as_bytes()).await?;
    rest(&mut client).await?;
    assert_eq!(redis.command(&["GET", "a"]).await?, "$1\r\n1\r\n");
    let course = interceptor.recall();
    assert_eq!(course.requests, ["INCR", "INCR"]);
    assert!(course.happened);
    Ok(())
}

#[tokio::test]
async fn a_command_that_is_cut_after_delivery_is_carried_out_and_not_answered() -> Result<()> {
    let (redis, interceptor, mut client) = redis().await?;
    interceptor.order(Which::Number(2), Moment::AfterDelivery, Fault::Cut);
    let both = command(&["INCR", "a"]) + &command(&["INCR", "a"]);
    client.write_all(both.as_bytes()).await?;
    assert_eq!(rest(&mut client).await?, ":1\r\n");
    assert_eq!(redis.command(&["GET", "a"]).await?, "$1\r\n2\r\n");
    Ok(())
}

#[tokio::test]
async fn an_order_beyond_the_last_request_does_not_happen() -> Result<()> {
    let (_redis, interceptor, mut client) = redis().await?;
    interceptor.order(Which::Number(2), Moment::BeforeDelivery, Fault::Cut);
    client.write_all(command(&["PING"]).as_bytes()).await?;
    let mut answer = [0; 7];
    client.read_exact(&mut answer).await?;
    assert_eq!(&answer, b"+PONG\r\n");
    let course = interceptor.recall();
    assert_eq!((course.requests.len(), course.happened), (1, false));
    Ok(())
}

#[tokio::test]
async fn a_judge_says_at_which_request_a_fault_happens() -> Result<()> {
    let (redis, interceptor, mut client) = redis().await?;
    let cut = |_, request: &[u8]| {
        let is_second = request.ends_with(b"b\r\n");
        is_second.then_some((Moment::AfterDelivery, Fault::Cut))
    };
    interceptor.judge(cut);
    let both = command(&["INCR", "a"]) + &command(&["INCR", "b"]);
    client.write_all(both.as_bytes()).await?;
    assert_eq!(rest(&mut client).await?, ":1\r\n");
    assert_eq!(redis.command(&["GET", "b"]).await?, "$1\r\n1\r\n");
    Ok(())
}

#[tokio::test]
async fn a_process_is_killed_at_a_request_to_the_api_server() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let mut interceptor = Interceptor::default();
    let address = interceptor
        .before_api_server(cluster.address(), cluster.authority_pem())
        .await?;
    let process = Arc::new(Program::new("sleep").arg("60").start()?);
    let mut client = HttpClient::connect(address).await?;
    // Without credentials; what is answered does not matter.
    let answer = client.request("GET", "/version", &[]).await?;
    assert!(answer.status > 0);
    let fault = Fault::Kill(Arc::clone(&process));
    interceptor.order(Which::Number(1), Moment::AfterDelivery, fault);
    assert!(client.request("GET", "/version", &[]).await.is_err());
    let status = process.ended(Duration::from_secs(60)).await?;
    assert!(!status.success());
    assert_eq!(interceptor.recall().requests, ["GET /version"]);
    Ok(())
}

#[tokio::test]
async fn a_request_is_answered_in_the_servers_place() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let mut interceptor = Interceptor::default();
    let listening = interceptor.before_api_server(cluster.address(), cluster.authority_pem());
    let address = listening.await?;
    let gone = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
    let fault = Fault::Answer(gone.as_slice().into());
    interceptor.order(Which::Every("GET /version"), Moment::BeforeDelivery, fault);
    for (path, gone) in [
        ("/version", true),
        ("/healthz", false),
        ("/version?a", true),
    ] {
        let mut client = HttpClient::connect(address).await?;
        let answer = client.request("GET", path, &[]).await?;
        assert_eq!(answer.status == 410, gone, "{path}");
    }
    Ok(())
}

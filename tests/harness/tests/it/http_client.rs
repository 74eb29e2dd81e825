//! The client shows answers exactly as a server sent them.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use water_harness::HttpClient;

type Result = anyhow::Result<()>;

const REQUEST: &str = "GET / HTTP/1.1\r\n\r\n";

/// A client whose server answers its first bytes with `answer` and closes.
async fn client_of(answer: &'static str) -> anyhow::Result<HttpClient> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        stream.read_exact(&mut [0; REQUEST.len()]).await?;
        stream.write_all(answer.as_bytes()).await
    });
    let mut client = HttpClient::connect(address).await?;
    client.send(REQUEST).await?;
    Ok(client)
}

#[tokio::test]
async fn headers_keep_their_order_and_spelling() -> Result {
    let mut client =
        client_of("HTTP/1.1 200 OK\r\nB: 2\r\na: 1\r\nB: 3\r\nContent-Length: 2\r\n\r\nok").await?;
    let answer = client.answer().await?;
    let names: Vec<_> = answer
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["B", "a", "B", "Content-Length"]);
    assert_eq!(answer.headers_named("b").collect::<Vec<_>>(), ["2", "3"]);
    assert_eq!((answer.status, answer.text()?), (200, "ok"));
    Ok(())
}

#[tokio::test]
async fn answers_on_one_connection_are_told_apart() -> Result {
    let mut client = client_of(
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\n\r\nrest",
    )
    .await?;
    assert_eq!(client.answer().await?.status, 304);
    assert_eq!(client.answer().await?.text()?, "1");
    assert_eq!(client.answer().await?.text()?, "rest");
    Ok(())
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() -> Result {
    let mut client = client_of("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n").await?;
    let answer = client.answer_to_head().await?;
    assert_eq!(
        (answer.header("content-length"), answer.body.len()),
        (Some("900"), 0)
    );
    assert!(client.closed().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn chunks_become_one_body() -> Result {
    let mut client = client_of(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nwat\r\n2\r\ner\r\n0\r\n\r\n",
    )
    .await?;
    assert_eq!(client.answer().await?.text()?, "water");
    Ok(())
}

#[tokio::test]
async fn a_body_cut_short_is_an_error() -> Result {
    let mut client = client_of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour").await?;
    let error = client.answer().await.unwrap_err();
    assert_eq!(error.to_string(), "closed after 4 of 9 bytes of a body");
    Ok(())
}

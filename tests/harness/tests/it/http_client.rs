//! The client shows answers exactly as a server sent them.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use water_harness::HttpClient;

type Result = anyhow::Result<()>;

const REQUEST: &str = "GET / HTTP/1.1\r\n\r\n";

/// Returns a client whose server answers its first bytes with `answer` and closes.
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
async fn a_body_cut_short_is_an_error() -> Result {
    let mut client = client_of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour").await?;
    let error = client.answer().await.unwrap_err();
    assert_eq!(error.to_string(), "closed after 4 of 9 bytes of a body");
    Ok(())
}

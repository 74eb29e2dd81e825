//! Connection of the load generator. It does as little as it can: it shares the cores with what it measures.

use std::io::Write;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Requests;
use crate::nginx::TARGET;

/// More than any server here sends.
const MOST_HEADERS: usize = 32;

/// Clients whose failures the gate counts, none of which fails 20 times a second at the rates that a few cores
/// reach.
const CLIENTS: u64 = 8_192;

/// Open connection, whose memory is used again for each request.
pub struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    /// Requests of [`Self::status`] so far.
    asked: u64,
}

impl Connection {
    /// Opens a connection.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            request: Vec::with_capacity(1024),
            answer: Vec::with_capacity(16 * 1024),
            asked: 0,
        })
    }

    /// Sends the next request and reads its whole answer: its status and the length of its body.
    pub async fn exchange(&mut self, requests: &Requests) -> Result<(u16, usize)> {
        requests.next(&mut self.request);
        self.send().await
    }

    /// Sends the measured request with this key, from another client each time, and returns the status.
    pub async fn status(&mut self, key: &str) -> Result<u16> {
        write_request(&mut self.request, key, self.asked);
        self.asked += 1;
        Ok(self.send().await?.0)
    }

    async fn send(&mut self) -> Result<(u16, usize)> {
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                bail!("the connection was closed before the answer's end");
            }
            let Some((status, head, body)) = read_head(&self.answer)? else {
                continue;
            };
            match (head + body).checked_sub(self.answer.len()) {
                Some(0) => return Ok((status, body)),
                Some(_) => {}
                None => bail!("there is more than one answer:\n{}", self.answer_text()),
            }
        }
    }

    /// Last answer, for a message.
    pub fn answer_text(&self) -> String {
        String::from_utf8_lossy(&self.answer).into_owned()
    }
}

/// Writes the measured request as an ingress passes it on, over the content of `request`.
pub fn write_request(request: &mut Vec<u8>, key: &str, number: u64) {
    let client = number % CLIENTS;
    request.clear();
    write!(
        request,
        "GET {TARGET} HTTP/1.1\r\n\
         Host: water.example\r\n\
         User-Agent: water-bench\r\n\
         Accept: application/json\r\n\
         Authorization: Bearer {key}\r\n\
         X-Forwarded-For: 10.0.{}.{}\r\n\
         \r\n",
        client / 256,
        client % 256
    )
    .expect("memory takes every byte");
}

/// Status, length of the head and of the body of an answer, once its head is complete.
fn read_head(bytes: &[u8]) -> Result<Option<(u16, usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = parsed.parse(bytes)? else {
        return Ok(None);
    };
    let mut headers = parsed.headers.iter();
    let length = headers
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .context("the answer has no Content-Length")?;
    let status = parsed.code.context("a complete head has a status")?;
    let body = std::str::from_utf8(length.value)?.parse()?;
    Ok(Some((status, head, body)))
}

//! One connection of the load generator. It does as little as it can: it shares the cores with what
//! it measures.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Requests;

/// More than any server here sends.
const MOST_HEADERS: usize = 32;

/// An open connection, its memory used again for each request.
pub struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// A complete answer.
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Of its body.
    pub length: usize,
}

/// The head of an answer.
struct Head {
    status: u16,
    /// Of the head itself.
    bytes: usize,
    /// Of the body.
    length: usize,
}

impl Connection {
    /// A new connection.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            request: Vec::with_capacity(1024),
            answer: Vec::with_capacity(16 * 1024),
        })
    }

    /// Sends the next request and reads its whole answer.
    pub async fn exchange(&mut self, requests: &Requests) -> Result<Answer> {
        requests.next(&mut self.request);
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                bail!("the connection was closed before the answer's end");
            }
            let Some(head) = head(&self.answer)? else {
                continue;
            };
            let missing = (head.bytes + head.length).checked_sub(self.answer.len());
            match missing {
                Some(0) => {
                    return Ok(Answer {
                        status: head.status,
                        length: head.length,
                    });
                }
                Some(_) => {}
                None => bail!("there is more than one answer:\n{}", self.answer_text()),
            }
        }
    }

    /// The last answer, for a message.
    pub fn answer_text(&self) -> String {
        String::from_utf8_lossy(&self.answer).into_owned()
    }
}

/// The answer's head, once it is complete.
fn head(bytes: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(bytes) = parsed.parse(bytes)? else {
        return Ok(None);
    };
    let length = parsed
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .context("the answer does not say how long it is")?;
    Ok(Some(Head {
        status: parsed.code.context("a complete head has a status")?,
        bytes,
        length: std::str::from_utf8(length.value)?.parse()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 12\r\n\r\n";
        for cut in 0..text.len() {
            assert!(head(&text[..cut]).unwrap().is_none(), "{cut}");
        }
        let head = head(text).unwrap().unwrap();
        assert_eq!((head.status, head.length), (429, 12));
        assert_eq!(head.bytes, text.len());
    }

    #[test]
    fn an_answer_without_a_length_is_refused() {
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(head(chunked).is_err());
    }
}

//! A connection to Redis that carries many commands at once and looks at replies only as far as it
//! must: it shares the cores with what it measures.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An open connection.
pub struct Wire {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Wire {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
        })
    }

    /// Sends commands at once and reads so many replies; an error among them is one.
    pub async fn exchange(&mut self, commands: &[u8], replies: usize) -> Result<Vec<u8>> {
        self.stream.write_all(commands).await?;
        self.received.clear();
        let (mut end, mut missing) = (0, replies);
        while missing > 0 {
            match reply_length(&self.received[end..])? {
                Some(length) => (end, missing) = (end + length, missing - 1),
                None if self.stream.read_buf(&mut self.received).await? == 0 => {
                    bail!("Redis closed the connection");
                }
                None => {}
            }
        }
        Ok(self.received[..end].to_vec())
    }
}

/// Appends one command.
pub fn command(words: &[&str], commands: &mut Vec<u8>) {
    commands.extend(format!("*{}\r\n", words.len()).bytes());
    for word in words {
        commands.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
}

/// The bytes of the first reply; `None`: it is not complete.
fn reply_length(received: &[u8]) -> Result<Option<usize>> {
    let Some(end) = received.windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let line = std::str::from_utf8(&received[..end])?;
    let (kind, rest) = line.split_at_checked(1).context("a reply has a kind")?;
    let mut length = end + 2;
    match kind {
        "-" => bail!("Redis: {rest}"),
        "$" => length += rest.parse::<usize>()? + 2,
        "*" => {
            for _ in 0..rest.parse()? {
                match reply_length(&received[length.min(received.len())..])? {
                    Some(item) => length += item,
                    None => return Ok(None),
                }
            }
        }
        _ => {}
    }
    Ok((length <= received.len()).then_some(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_where_its_last_part_ends() {
        for reply in [
            ":1\r\n",
            "$3\r\na\r\n\r\n",
            "*2\r\n:1\r\n$1\r\nx\r\n",
            "*0\r\n",
        ] {
            let reply = reply.as_bytes();
            for cut in 0..reply.len() {
                assert_eq!(reply_length(&reply[..cut]).unwrap(), None, "{cut}");
            }
            let followed = [reply, b":9"].concat();
            assert_eq!(reply_length(&followed).unwrap(), Some(reply.len()));
        }
        assert!(reply_length(b"-ERR no\r\n").is_err());
    }
}

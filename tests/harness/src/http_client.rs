//! A client that sends the bytes it is given and shows answers as they came: headers in their order,
//! nothing followed, nothing decoded, nothing repeated. Tests need what a well-behaved client would never
//! send.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream, ToSocketAddrs},
    time::timeout,
};

/// Deadline of an answer: longer than any of the product, so that its own deadlines are seen.
const PATIENCE: Duration = Duration::from_secs(120);
/// Most headers of an answer: more than the product ever sends (64).
const MOST_HEADERS: usize = 128;

/// A TCP connection.
pub struct HttpClient {
    stream: TcpStream,
    host: String,
    received: BytesMut,
}

/// A whole HTTP answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code. Interim answers (`100 Continue`) are answers too.
    pub status: u16,
    /// Names as they came, in their order.
    pub headers: Vec<(String, String)>,
    /// The body without transfer coding; content coding is kept.
    pub body: Bytes,
}

/// Deadline of a connection. An address that is gone may answer nothing: the kernel tries for two minutes.
const CONNECTING: Duration = Duration::from_secs(60);

impl HttpClient {
    /// Opens a connection.
    pub async fn connect(address: impl ToSocketAddrs + fmt::Debug) -> Result<Self> {
        let stream = timeout(CONNECTING, TcpStream::connect(&address)).await;
        let stream = stream.with_context(|| format!("connect to {address:?}"))?;
        Self::over(stream.with_context(|| format!("connect to {address:?}"))?)
    }

    /// Opens a connection from one of this machine's IPv4 addresses.
    pub async fn connect_from(own: Ipv4Addr, address: SocketAddr) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket
            .bind((own, 0).into())
            .with_context(|| format!("bind to {own}"))?;
        let stream = timeout(CONNECTING, socket.connect(address)).await;
        let stream = stream.with_context(|| format!("connect from {own} to {address}"))?;
        Self::over(stream.with_context(|| format!("connect from {own} to {address}"))?)
    }

    fn over(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            host: "water".to_owned(),
            received: BytesMut::new(),
        })
    }

    /// Sets the `Host` of [`HttpClient::request`], `water` if not said otherwise.
    pub fn host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.host);
        self
    }

    /// Returns the address of this machine that the server sees.
    pub fn local_address(&self) -> Result<SocketAddr> {
        self.stream
            .local_addr()
            .context("ask for the local address")
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.stream
            .write_all(bytes.as_ref())
            .await
            .context("send bytes")
    }

    /// Reads the next answer. Use [`HttpClient::answer_to_head`] after a HEAD.
    pub async fn answer(&mut self) -> Result<Answer> {
        timeout(PATIENCE, self.read_answer(false))
            .await
            .context("no whole answer came")?
    }

    /// Reads the next answer to a HEAD: it has no body, whatever its headers say.
    pub async fn answer_to_head(&mut self) -> Result<Answer> {
        timeout(PATIENCE, self.read_answer(true))
            .await
            .context("no whole answer came")?
    }

    /// Sends one request and reads its answer. `headers` go as they are, after `Host`.
    pub async fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        let mut request = format!("{method} {target} HTTP/1.1\r\n");
        let named = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"));
        if !named {
            request += &format!("Host: {}\r\n", self.host);
        }
        headers
            .iter()
            .for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        self.send(request + "\r\n").await?;
        match method {
            "HEAD" => self.answer_to_head().await,
            _ => self.answer().await,
        }
    }

    /// Sends `GET target` with `Authorization: Bearer key`.
    pub async fn get(&mut self, target: &str, key: &str) -> Result<Answer> {
        self.request(
            "GET",
            target,
            &[("Authorization", &format!("Bearer {key}"))],
        )
        .await
    }

    /// Says that nothing more will be sent; answers can still be read.
    pub async fn finish(&mut self) -> Result<()> {
        self.stream
            .shutdown()
            .await
            .context("close the sending side")
    }

    /// Waits until the server closes the connection; returns the bytes before that.
    pub async fn closed(&mut self) -> Result<Bytes> {
        let closing = async {
            while self.receive().await? {}
            Ok::<_, anyhow::Error>(())
        };
        timeout(PATIENCE, closing)
            .await
            .context("the connection stays open")??;
        Ok(self.received.split().freeze())
    }

    async fn read_answer(&mut self, to_head: bool) -> Result<Answer> {
        let mut answer = loop {
            match self.take_head()? {
                Some(answer) => break answer,
                None if self.receive().await? => {}
                None => bail!(
                    "closed before an answer's head; received {:?}",
                    self.received
                ),
            }
        };
        let length = answer
            .header("content-length")
            .map(str::parse)
            .transpose()?;
        let chunked = answer
            .header("transfer-encoding")
            .is_some_and(|coding| coding == "chunked");
        answer.body = match (answer.status, length) {
            (100..=199 | 204 | 304, _) => Bytes::new(),
            _ if to_head => Bytes::new(),
            _ if chunked => self.read_chunks().await?,
            (_, Some(length)) => self.take(length).await?,
            (_, None) => self.closed().await?,
        };
        Ok(answer)
    }

    fn take_head(&mut self) -> Result<Option<Answer>> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut head = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = head.parse(&self.received)? else {
            return Ok(None);
        };
        let headers = head.headers.iter().map(|header| {
            (
                header.name.to_owned(),
                String::from_utf8_lossy(header.value).into_owned(),
            )
        });
        let answer = Answer {
            status: head.code.unwrap_or_default(),
            headers: headers.collect(),
            body: Bytes::new(),
        };
        self.received.advance(length);
        Ok(Some(answer))
    }

    async fn read_chunks(&mut self) -> Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let httparse::Status::Complete((line, size)) =
                httparse::parse_chunk_size(&self.received)
                    .ok()
                    .context("a chunk's size is wrong")?
            else {
                if self.receive().await? {
                    continue;
                }
                bail!("closed between chunks");
            };
            self.received.advance(line);
            let chunk = self.take(usize::try_from(size)? + 2).await?;
            if size == 0 {
                return Ok(body.freeze());
            }
            body.extend_from_slice(&chunk[..chunk.len() - 2]);
        }
    }

    async fn take(&mut self, length: usize) -> Result<Bytes> {
        while self.received.len() < length {
            if !self.receive().await? {
                bail!(
                    "closed after {} of {length} bytes of a body",
                    self.received.len()
                );
            }
        }
        Ok(self.received.split_to(length).freeze())
    }

    async fn receive(&mut self) -> Result<bool> {
        Ok(self
            .stream
            .read_buf(&mut self.received)
            .await
            .context("receive bytes")?
            > 0)
    }
}

impl Answer {
    /// Returns the first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers_named(name).next()
    }

    /// Returns the headers of that name, in any case.
    pub fn headers_named(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self
            .headers
            .iter()
            .filter(move |(is, _)| is.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.body).context("the body is not UTF-8")
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("not JSON: {self:?}"))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.status)?;
        self.headers
            .iter()
            .try_for_each(|(name, value)| writeln!(formatter, "{name}: {value}"))?;
        write!(formatter, "\n{}", String::from_utf8_lossy(&self.body))
    }
}

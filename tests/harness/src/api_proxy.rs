//! The API server over plain HTTP on loopback, with the administrator's rights: `kubectl proxy`.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{HttpClient, Port, Process, Program};

/// Longest start: as long as the API server itself may take on a busy machine.
const START: Duration = Duration::from_secs(180);
/// Deadline of an answer: longer than the API server takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running proxy. It accepts requests to 127.0.0.1 only.
#[derive(Debug)]
pub struct ApiProxy {
    process: Process,
    port: Port,
}

impl ApiProxy {
    /// Starts this kubectl's, with the rights of `kubeconfig`, and waits until it listens.
    pub async fn start(kubectl: &Path, kubeconfig: &Path) -> Result<Self> {
        let port = Port::reserve()?;
        let process = Program::new(kubectl)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["proxy", "--address=127.0.0.1"])
            .arg(format!("--port={}", port.number()))
            .start()?;
        let proxy = Self { process, port };
        let listens = async || proxy.connect().await.map(drop);
        proxy.process.ready(START, listens).await?;
        Ok(proxy)
    }

    /// Returns the API server's answer at a path. Its refusal is an error that holds its words.
    pub fn get(&self, path: &str) -> Result<String> {
        match self.send("GET", path, "", "")? {
            (200, body) => Ok(body),
            (status, body) => bail!("GET {path}: {status} {body}"),
        }
    }

    /// Sends a request with a body of that type. Returns the status and the body of the answer.
    pub fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> Result<(u16, String)> {
        let answer = self.exchange(method, path, kind, body);
        let answer = answer.with_context(|| format!("{method} {path}"))?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .with_context(|| format!("{method} {path}: unexpected EOF after {answer:?}"))?;
        let status = head.split(' ').nth(1).with_context(|| answer.clone())?;
        Ok((status.parse()?, body.to_owned()))
    }

    /// Sends a request by HTTP/1.0: an answer ends with its connection.
    fn exchange(&self, method: &str, path: &str, kind: &str, body: &str) -> Result<String> {
        let mut stream = TcpStream::connect(self.port.address())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n");
        write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Ends the proxy, and with it all that it carries.
    pub(crate) fn end(&self) {
        self.process.end();
    }

    /// Opens a connection to the API server.
    pub async fn connect(&self) -> Result<HttpClient> {
        let client = HttpClient::connect(self.port.address()).await?;
        Ok(client.host("127.0.0.1"))
    }
}

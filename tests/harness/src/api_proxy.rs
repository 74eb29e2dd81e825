//! The API server over plain HTTP on loopback, with the administrator's rights: `kubectl proxy`.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{HttpClient, Port, Process, Program};

const START: Duration = Duration::from_secs(30);
/// Longer than the API server takes for an answer, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running proxy. It accepts requests to 127.0.0.1 only.
pub struct ApiProxy {
    process: Process,
    port: Port,
}

impl ApiProxy {
    pub(crate) async fn start(kubectl: &Path, kubeconfig: &Path) -> Result<Self> {
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

    /// What the API server has at a path. Its refusal is an error that holds its words.
    pub fn get(&self, path: &str) -> Result<String> {
        let answer = self
            .ask(path)
            .with_context(|| format!("ask the API server for {path}"))?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.0 200 ") => Ok(body.to_owned()),
            _ => bail!("GET {path}: {answer}"),
        }
    }

    /// HTTP/1.0: an answer ends with its connection.
    fn ask(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(self.port.address())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// A connection to the API server.
    pub async fn connect(&self) -> Result<HttpClient> {
        let client = HttpClient::connect(self.port.address()).await?;
        Ok(client.host("127.0.0.1"))
    }
}

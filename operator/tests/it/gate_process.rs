//! The gate's own binary beside the operator: a pod at the API server, a process on loopback, and a
//! service behind it that answers everything.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use water_harness::{HttpClient, Port, Process, Program};

use crate::gate::{Started, pod};
use crate::world::{API, OPERATOR, PATIENCE, World};

/// What gates sign identities with: it protects nothing here.
const IDENTITY: &str = "6265206e6f742061667261696420746f206d65617375726520697420616c6c21";
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

/// A ready gate.
pub struct GateProcess {
    _process: Process,
    http: Port,
}

impl GateProcess {
    /// Starts a gate as the pod of that name, and waits until it is ready.
    pub async fn start(world: &World, name: &str) -> Result<Self> {
        let program = Path::new(OPERATOR).with_file_name("water-gate");
        ensure!(
            program.exists(),
            "build the gate first: `cargo test` does, and `cargo build --package water-gate`"
        );
        Self::start_of(&program, world, name).await
    }

    /// The same with that program, which may be another version's.
    pub async fn start_of(program: &Path, world: &World, name: &str) -> Result<Self> {
        let uid = pod(world, name, true, Started::After)?;
        let service = service().await?;
        let (http, admin) = (Port::reserve()?, Port::reserve()?);
        let process = Program::new(program)
            .env("WATER_LISTEN_ADDRESS", http.address().to_string())
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string())
            .env("WATER_REDIS_URL", &world.redis_url)
            .env("WATER_INSTANCE", format!("{}.{API}", world.namespace))
            .env("WATER_POD_NAME", name)
            .env("WATER_POD_UID", uid)
            .env("WATER_DEPARTEMENTS_ADDRESS", &service)
            .env("WATER_HISTORY_ADDRESS", &service)
            .env("WATER_IDENTITY_CURRENT", IDENTITY)
            .start()?;
        let ready = async || {
            let mut client = HttpClient::connect(admin.address()).await?;
            let answer = client.request("GET", "/ready", &[]).await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        };
        process.ready(PATIENCE, ready).await?;
        let _process = process;
        Ok(Self { _process, http })
    }

    /// A connection to its own address.
    pub async fn connect(&self) -> Result<HttpClient> {
        HttpClient::connect(self.http.address()).await
    }
}

/// Where a service answers everything with 200.
async fn service() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr().context("a listener's address")?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    Ok(address.to_string())
}

/// Until the gate closes the connection. The gate sends one request at a time, without a body.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut asked = Vec::new();
    while stream.read_buf(&mut asked).await? > 0 {
        if asked.ends_with(b"\r\n\r\n") {
            asked.clear();
            stream.write_all(ANSWER).await?;
        }
    }
    Ok(())
}

//! The product's programs that answer requests, each started and awaited in the same way.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use water_harness::{HttpClient, Port, Process, Program};

use crate::binary::beside;

/// What identities are signed with: it protects nothing here.
pub const IDENTITY: &str = "6265206e6f742061667261696420746f206d65617375726520697420616c6c21";

/// Longer than a start with the largest key directory takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// A program that is ready.
#[derive(Debug)]
pub struct Server {
    process: Process,
    http: Port,
}

impl Server {
    /// Starts the program of that name and waits until it is ready. `settings` adds all variables
    /// but its addresses; it is given the number of its port, which no other program has.
    pub async fn start(name: &str, settings: impl FnOnce(Program, u16) -> Program) -> Result<Self> {
        let (http, admin) = (Port::reserve()?, Port::reserve()?);
        let program = Program::new(beside(name)?)
            .env("WATER_LISTEN_ADDRESS", http.address().to_string())
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string());
        let process = settings(program, http.number()).start()?;
        let ready = async || -> Result<()> {
            let mut client = HttpClient::connect(admin.address()).await?;
            let answer = client.request("GET", "/ready", &[]).await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        };
        process.ready(SOON, ready).await?;
        Ok(Self { process, http })
    }

    /// Where it answers requests.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

/// Adds variables to those of a program.
pub fn with_settings(program: Program, settings: &[(&str, &str)]) -> Program {
    let add = |program: Program, (name, value): &(&str, &str)| program.env(*name, *value);
    settings.iter().fold(program, add)
}

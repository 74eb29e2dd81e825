//! A program of the product as a process on reserved ports.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use water_harness::{Answer, HttpClient, Port, Process, Program, wait_until};

use crate::SOON;

/// A started program, ready or not.
pub struct Server {
    /// The process.
    pub process: Process,
    http: Port,
    admin: Port,
}

impl Server {
    /// Starts a program that has every setting but its addresses.
    pub fn start(program: Program) -> Self {
        let (http, admin) = (Port::reserve().unwrap(), Port::reserve().unwrap());
        let program = program
            .env("WATER_LISTEN_ADDRESS", http.address().to_string())
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string());
        Self {
            process: program.start().unwrap(),
            http,
            admin,
        }
    }

    /// Waits until it says that it is ready; a failure shows its log.
    pub async fn ready(self) -> Self {
        let ready = async || -> Result<()> {
            let answer = self.admin("/ready").await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        };
        self.process.ready(SOON, ready).await.unwrap();
        self
    }

    /// Returns the address on which it answers requests.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Opens a connection to it.
    pub async fn connect(&self) -> HttpClient {
        HttpClient::connect(self.address()).await.unwrap()
    }

    /// Returns an answer of its admin port.
    pub async fn admin(&self, path: &str) -> Result<Answer> {
        let mut client = HttpClient::connect(self.admin.address()).await?;
        client.request("GET", path, &[]).await
    }

    /// Waits until its metrics contain all of these.
    pub async fn shows(&self, wanted: &[&str]) {
        let shown = async || {
            let metrics = self.admin("/metrics").await?;
            let text = metrics.text()?;
            for line in wanted {
                ensure!(text.contains(line), "no {line} in {text}");
            }
            Ok(())
        };
        wait_until("the metrics", SOON, shown).await.unwrap();
    }

    /// Waits until its log contains this.
    pub async fn logs(&self, wanted: &str) {
        let logged = async || {
            ensure!(self.process.log().contains(wanted), "no {wanted} in it");
            Ok(())
        };
        let logged = wait_until("a line of the log", SOON, logged).await;
        logged.unwrap_or_else(|error| panic!("{error:#}: {}", self.process.log_end()));
    }
}

/// Returns the file of a program of the product that was built as this test was.
pub fn built(program: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // Tests are in `deps` of the folder of programs, benchmarks in that folder.
    let mut folders = test.ancestors().skip(1).take(2);
    let file = folders.find_map(|folder| Some(folder.join(program)).filter(|file| file.exists()));
    file.unwrap_or_else(|| panic!("build it first: `cargo build --package {program}`"))
}

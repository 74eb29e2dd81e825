//! nginx with the configurations of `tests/bench/nginx`.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use tokio::net::TcpStream;
use water_harness::{Port, Process, Program, scratch_directory};

/// Longer than a start takes on a busy machine.
const SOON: Duration = Duration::from_secs(20);

const MAIN: &str = include_str!("../nginx/nginx.conf");

/// A running nginx.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    port: Port,
}

/// What an nginx does: its server block, and what the block needs.
#[derive(Clone, Debug)]
pub struct Configuration {
    server: &'static str,
    modules: &'static str,
    files: Vec<(&'static str, String)>,
    values: Vec<(&'static str, String)>,
}

impl Configuration {
    /// A server block with `@name@` in places that [`Self::set`] fills.
    pub fn new(server: &'static str) -> Self {
        Self {
            server,
            modules: "",
            files: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Loads modules, given as lines of the configuration.
    pub fn modules(mut self, lines: &'static str) -> Self {
        self.modules = lines;
        self
    }

    /// Puts a file into nginx' folder, whose path fills `@folder@`.
    pub fn file(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.files.push((name, text.into()));
        self
    }

    /// Fills a place.
    pub fn set(mut self, name: &'static str, value: impl ToString) -> Self {
        self.values.push((name, value.to_string()));
        self
    }
}

impl Nginx {
    /// Starts nginx on a port of its own and waits until it listens. Its workers are as many as
    /// there are cores.
    pub async fn start(configuration: Configuration) -> Result<Self> {
        let folder = scratch_directory("nginx")?;
        let port = Port::reserve()?;
        let mut text = MAIN
            .replace("@modules@", configuration.modules)
            .replace("@server@", configuration.server)
            .replace("@listen@", &port.address().to_string())
            .replace("@folder@", &folder.display().to_string());
        for (name, value) in configuration.values {
            text = text.replace(&format!("@{name}@"), &value);
        }
        fs::write(folder.join("nginx.conf"), text)?;
        for (name, text) in configuration.files {
            fs::write(folder.join(name), text)?;
        }
        let process = Program::new("nginx")
            .arg("-p")
            .arg(&folder)
            .args(["-c", "nginx.conf", "-e", "stderr"])
            // The master ends its workers; killed, it would leave them behind.
            .death_signal(Signal::SIGTERM)
            .start()
            .context("nginx is missing: install the Debian package nginx")?;
        let listening = async || Ok(TcpStream::connect(port.address()).await?);
        process.ready(SOON, listening).await?;
        Ok(Self { process, port })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The master's process id; the workers are its children.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

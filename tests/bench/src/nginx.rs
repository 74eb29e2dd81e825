//! nginx with the configurations of `tests/bench/nginx`: the service behind all that is compared, and the
//! proxies that the gate is compared with.

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

/// Target of the measured request.
pub const TARGET: &str = "/api/v1/stress?dept=34";

/// Answer of the service to it.
pub const BODY: &str = concat!(
    r#"{"count":1,"updatedAt":"2026-07-02T00:00:00.000Z","#,
    r#""data":[{"dept":"34","name":"Hérault","stressIndex":3.4,"level":"alerte"}],"#,
    r#""dept":"34","name":"Hérault","stressIndex":3.4,"level":"alerte"}"#,
);

/// Running nginx.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    port: Port,
}

/// Configuration of an nginx.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// Lines that load modules.
    pub modules: &'static str,
    /// Server block with `@name@` in places that `values` fills.
    pub server: &'static str,
    /// Names and texts of files in nginx' folder, whose path fills `@folder@`.
    pub files: Vec<(&'static str, String)>,
    /// Names of places, and their values.
    pub values: Vec<(&'static str, String)>,
}

impl Nginx {
    /// Starts nginx on a reserved port, with as many workers as there are cores, and waits until it listens.
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

    /// Starts the service: one answer, from memory.
    pub async fn service() -> Result<Self> {
        let configuration = Configuration {
            server: include_str!("../nginx/service.conf"),
            values: vec![("body", BODY.to_owned())],
            ..Configuration::default()
        };
        Self::start(configuration).await
    }

    /// Address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Process id of the master; the workers are its children.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

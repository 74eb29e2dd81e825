//! A private PgBouncer, the pooler that many put before PostgreSQL.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};
use tokio::net::TcpStream;

use crate::{Port, Process, Program, process, scratch};

/// Longer than a start takes on a busy machine.
const START: Duration = Duration::from_secs(60);

/// The system's user that Debian's package runs it as: it refuses to be root.
const USER: &str = "postgres";

/// A running pooler.
pub struct PgBouncer {
    _process: Process,
    port: Port,
}

impl PgBouncer {
    /// Starts a pooler before `server` that pools sessions; these roles may connect without a password.
    pub async fn before(server: SocketAddr, roles: &[&str]) -> Result<Self> {
        let path = process::find("pgbouncer", &["/usr/sbin".into()]);
        let path = path.context("pgbouncer is missing: install the Debian package pgbouncer")?;
        let folder = scratch::directory("pgbouncer")?;
        let port = Port::reserve()?;
        let (host, number) = (server.ip(), server.port());
        let settings = folder.join("pgbouncer.ini");
        let users = folder.join("users");
        let lines = roles.iter().map(|role| format!("\"{role}\" \"\"\n"));
        fs::write(&users, lines.collect::<String>())?;
        fs::write(
            &settings,
            format!(
                "[databases]\n\
                 * = host={host} port={number}\n\
                 [pgbouncer]\n\
                 listen_addr = 127.0.0.1\n\
                 listen_port = {}\n\
                 unix_socket_dir =\n\
                 auth_type = trust\n\
                 auth_file = {}\n\
                 pool_mode = session\n\
                 max_client_conn = 100\n\
                 default_pool_size = 20\n\
                 server_login_retry = 1\n",
                port.number(),
                users.display()
            ),
        )?;
        let mut program = Program::new(path)
            .arg(&settings)
            .death_signal(Signal::SIGTERM);
        if geteuid().is_root() {
            let user = User::from_name(USER)?.context("the user postgres is missing")?;
            for file in [&folder, &settings, &users] {
                chown(file, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
            }
            program = program.user(USER);
        }
        let process = program.start()?;
        let listening = async || Ok(TcpStream::connect(port.address()).await?);
        process.ready(START, listening).await?;
        Ok(Self {
            _process: process,
            port,
        })
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }
}

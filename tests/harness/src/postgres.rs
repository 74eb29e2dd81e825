//! A private PostgreSQL: one server for a test binary, one database for a test.
//! Everyone may connect as any role without a password (it listens on loopback
//! only), so a test can be the owner, the writer or the reader of its database.

mod backups;
mod installation;

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use tokio::sync::OnceCell;

pub use self::backups::BaseBackup;
use self::installation::{Installation, SUPERUSER};
use crate::{Disks, Port, Process, Program, scratch, wait_until};

const START: Duration = Duration::from_secs(60);

/// Settings of the servers. Nothing survives the test, so nothing needs to reach the disk. Whole statements
/// can be seen in `pg_stat_activity`.
const SETTINGS: [&str; 8] = [
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=300",
    "shared_buffers=64MB",
    "unix_socket_directories=",
    "log_min_messages=warning",
    "track_activity_query_size=16kB",
];

/// A running server.
pub struct Postgres {
    process: Process,
    data: PathBuf,
    port: Port,
    installation: Installation,
    databases: AtomicU32,
    templates: Mutex<HashMap<String, Arc<OnceCell<()>>>>,
}

/// A database of a server.
#[derive(Clone, Debug)]
pub struct Database {
    name: String,
    port: u16,
}

impl Postgres {
    /// Returns the server that all tests of this binary share, started by the first that asks.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Postgres> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// Starts a server of the test's own, to stop, pause and kill.
    pub async fn start() -> Result<Self> {
        Self::start_as(&[], &[], None).await
    }

    /// Starts a server with further settings, such as `max_connections=12`.
    pub async fn start_with(settings: &[&str]) -> Result<Self> {
        Self::start_as(&[], settings, None).await
    }

    /// Starts a server whose data is on the disk `data` and whose write-ahead log is on the disk `wal`.
    pub async fn start_on(disks: &Disks) -> Result<Self> {
        Self::start_as(&[], &[], Some(disks)).await
    }

    /// Starts a server that can also be reached at an address of this machine, from there with passwords
    /// only.
    pub async fn start_reachable_at(address: IpAddr) -> Result<Self> {
        Self::start_as(&[address], &[], None).await
    }

    async fn start_as(
        addresses: &[IpAddr],
        settings: &[&str],
        disks: Option<&Disks>,
    ) -> Result<Self> {
        let installation = Installation::find()?;
        let data = match disks {
            Some(disks) => disks.inside("data").join("data"),
            None => scratch::directory("postgres")?.join("data"),
        };
        installation.initialise(&data, addresses, disks)?;
        Self::run(installation, data, addresses, settings, disks).await
    }

    /// Starts a streaming replica of this server, to be read from only. It has what this server has at the
    /// moment, and follows it for as long as both run.
    pub async fn replica(&self) -> Result<Self> {
        let installation = Installation::find()?;
        let data = scratch::directory("postgres")?.join("data");
        installation.copy(&data, self.port.number(), &["--write-recovery-conf"])?;
        Self::run(installation, data, &[], &[], None).await
    }

    /// Starts the server on its data.
    async fn run(
        installation: Installation,
        data: PathBuf,
        addresses: &[IpAddr],
        settings: &[&str],
        disks: Option<&Disks>,
    ) -> Result<Self> {
        let port = Port::reserve()?;
        let listen = addresses.iter().fold(
            "listen_addresses=127.0.0.1".to_owned(),
            |listen, address| format!("{listen},{address}"),
        );
        let mut program = match disks {
            Some(disks) => Program::from_words(installation.on(disks)?),
            None => Program::new(installation.program("postgres")),
        };
        if let (None, Some(user)) = (disks, installation::server_user()?) {
            program = program.user(&user.name);
        }
        // QUIT makes the server release its shared memory, which it cannot when it is killed.
        let program = program
            .death_signal(Signal::SIGQUIT)
            .args([
                OsString::from("-D"),
                data.clone().into(),
                "-p".into(),
                port.number().to_string().into(),
            ])
            .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
            .args(["-c", &listen])
            .args(settings.iter().flat_map(|setting| ["-c", setting]));
        let process = program.start()?;
        let (databases, templates) = (AtomicU32::new(0), Mutex::default());
        let server = Self {
            process,
            data,
            port,
            installation,
            databases,
            templates,
        };
        server.ready().await?;
        Ok(server)
    }

    /// Makes an empty database.
    pub fn create_database(&self) -> Result<Database> {
        let database = self.next_database();
        self.sql("postgres", &format!("CREATE DATABASE {}", database.name))?;
        Ok(database)
    }

    /// Makes a copy of the template `name`, which `prepare` fills once for all tests of this binary: it
    /// gets the URL of an empty database and may leave connections open.
    pub async fn database_from_template(
        &self,
        name: &str,
        prepare: impl AsyncFnOnce(&str) -> Result<()>,
    ) -> Result<Database> {
        let template = Database {
            name: format!("template_{name}"),
            port: self.port.number(),
        };
        let made = {
            let mut templates = self
                .templates
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            Arc::clone(templates.entry(name.to_owned()).or_default())
        };
        made.get_or_try_init(async || self.make_template(&template, prepare).await)
            .await?;
        let database = self.next_database();
        let sql = format!(
            "CREATE DATABASE {} TEMPLATE {}",
            database.name, template.name
        );
        self.sql("postgres", &sql)?;
        Ok(database)
    }

    async fn make_template(
        &self,
        template: &Database,
        prepare: impl AsyncFnOnce(&str) -> Result<()>,
    ) -> Result<()> {
        let name = &template.name;
        self.sql(
            "postgres",
            &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        )?;
        self.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        prepare(&template.url())
            .await
            .with_context(|| format!("prepare {name}"))?;
        // A database with a session cannot be copied.
        self.sql(
            "postgres",
            &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"),
        )?;
        let sessions = format!("FROM pg_stat_activity WHERE datname = '{name}'");
        self.sql(
            "postgres",
            &format!("SELECT pg_terminate_backend(pid) {sessions}"),
        )?;
        wait_until(
            &format!("the last session of {name} to end"),
            START,
            async || match self
                .sql("postgres", &format!("SELECT count(*) {sessions}"))?
                .as_str()
            {
                "0" => Ok(()),
                left => bail!("{left} sessions"),
            },
        )
        .await
    }

    /// Runs SQL as the superuser and returns psql's unaligned rows, fields separated by `|`.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String> {
        self.psql(database, sql, &[])
    }

    /// Runs a script of psql as the superuser, with psql's own commands and these variables.
    pub fn psql(&self, database: &str, script: &str, variables: &[(&str, &str)]) -> Result<String> {
        let url = Database {
            name: database.to_owned(),
            port: self.port.number(),
        }
        .url();
        let mut command = self.installation.command("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url]);
        for (name, value) in variables {
            command.arg("-v").arg(format!("{name}={value}"));
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut psql = command.spawn().context("start psql")?;
        if let Some(mut input) = psql.stdin.take() {
            input
                .write_all(script.as_bytes())
                .context("hand psql its script")?;
        }
        let output = psql.wait_with_output().context("wait for psql")?;
        if !output.status.success() {
            bail!(
                "{script}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned())
    }

    /// Returns a command of a program that came with the server, such as `pgbench`.
    pub fn command(&self, program: &str) -> Command {
        self.installation.command(program)
    }

    /// Returns the server's port.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Returns the server's process, for faults: pause it, ask it to stop.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Ends the server at once. While one of its processes is left, which notice that each for itself, no other
    /// server starts on its data.
    pub async fn kill(&self) -> Result<()> {
        let running = working_in(&self.data)?;
        ensure!(!running.is_empty(), "no process works in {:?}", self.data);
        self.process.kill()?;
        wait_until("the end of the server's processes", START, async || {
            let left = working_in(&self.data)?;
            ensure!(left.is_empty(), "{left:?} are left");
            Ok(())
        })
        .await
    }

    /// Starts the server again on its data, after it has ended, and waits until it answers.
    pub async fn start_again(&self) -> Result<()> {
        self.process.start_again()?;
        self.ready().await
    }

    async fn ready(&self) -> Result<()> {
        self.process
            .ready(START, async || self.sql("postgres", "SELECT 1"))
            .await?;
        Ok(())
    }

    fn next_database(&self) -> Database {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        Database {
            name: format!("test_{number}"),
            port: self.port.number(),
        }
    }
}

/// Returns the processes whose working directory this is, such as all of a server's.
fn working_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let processes = fs::read_dir("/proc")?.filter_map(Result::ok);
    let processes = processes.map(|process| process.path());
    // A process that has ended meanwhile has none.
    let works =
        |process: &PathBuf| fs::read_link(process.join("cwd")).is_ok_and(|in_it| in_it == folder);
    Ok(processes.filter(works).collect())
}

impl Database {
    /// Returns the database's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the URL of the superuser.
    pub fn url(&self) -> String {
        self.url_as(SUPERUSER)
    }

    /// Returns the URL of another role that may log in (`water_reader`). Migrations make it.
    pub fn url_as(&self, role: &str) -> String {
        self.url_through(self.address(), role)
    }

    /// Returns the URL of a role by another way to the server, such as a proxy.
    pub fn url_through(&self, way: SocketAddr, role: &str) -> String {
        format!("postgres://{role}@{way}/{}", self.name)
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}

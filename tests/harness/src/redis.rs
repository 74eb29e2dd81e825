//! A private Redis: one server for a test binary, shared by key prefixes, or one of the test's own that it
//! may stop, pause and fill.

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::OnceCell,
    time::timeout,
};

use crate::{Clock, Port, Process, Program, Proxy, process, scratch};

/// Time for a start, and for a reply.
const START: Duration = Duration::from_secs(60);
/// First lines of every server here: nothing on disk, and [`Redis::READER`].
const LINES: &str = "save \"\"\nappendonly no\nuser reader on >reader ~* &* +@read\n";

/// A running server, listening on loopback only and keeping nothing on disk.
pub struct Redis {
    process: Process,
    port: Port,
    password: Option<String>,
}

impl Redis {
    /// Name and password of an ACL user of every server here: it may read everything and change nothing.
    pub const READER: &str = "reader:reader";

    /// Returns the server that all tests of this binary share, started by the first that asks. A test keeps
    /// to keys with its prefix and never flushes.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Redis> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// Starts a server of the test's own.
    pub async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    /// Starts a server of the test's own on this clock.
    pub async fn start_on(clock: &Clock) -> Result<Self> {
        Self::start_under(&[], |program| clock.under(program)).await
    }

    /// Starts a server of the test's own for which it is noon in UTC: no day ends within the test.
    pub async fn start_at_noon() -> Result<Self> {
        Self::start_on(&Clock::at_noon()?).await
    }

    /// Starts a server of the test's own with more lines of redis.conf, such as `requirepass secret`,
    /// `maxmemory 8mb` or `user gate on >secret ~wd:* +@read`.
    pub async fn start_with(lines: &[&str]) -> Result<Self> {
        Self::start_under(lines, |program| program).await
    }

    async fn start_under(lines: &[&str], run: impl FnOnce(Program) -> Program) -> Result<Self> {
        let Some(program) = process::find("redis-server", &["/usr/sbin".into()]) else {
            bail!("Redis is missing: install the Debian package redis-server");
        };
        let directory = scratch::directory("redis")?;
        let port = Port::reserve()?;
        let mut config = format!(
            "bind 127.0.0.1\nport {}\ndir {}\n{LINES}",
            port.number(),
            directory.display()
        );
        lines.iter().for_each(|line| config.extend([line, "\n"]));
        let file = directory.join("redis.conf");
        fs::write(&file, config).with_context(|| format!("write {}", file.display()))?;
        let password = lines
            .iter()
            .find_map(|line| line.strip_prefix("requirepass "));
        let process = run(Program::new(program).arg(file)).start()?;
        let server = Self {
            process,
            port,
            password: password.map(str::to_owned),
        };
        server.ready().await?;
        Ok(server)
    }

    /// Returns the URL of the default user.
    pub fn url(&self) -> String {
        match &self.password {
            Some(password) => self.url_as("default", password),
            None => format!("redis://{}/", self.port.address()),
        }
    }

    /// Returns the URL of an ACL user.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("redis://{user}:{password}@{}/", self.port.address())
    }

    /// Returns the URL of an ACL user through a proxy before the server.
    pub fn url_through(&self, proxy: &Proxy, user: &str, password: &str) -> String {
        format!("redis://{user}:{password}@{}/", proxy.address())
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the server's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Returns the server's process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Stops answering without closing a connection, until [`Redis::resume`].
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::SIGSTOP)
    }

    /// Goes on after [`Redis::pause`].
    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::SIGCONT)
    }

    /// Ends the server at once; all its data is lost.
    pub fn kill(&self) -> Result<()> {
        self.process.kill()
    }

    /// Starts the server again on its port, empty, after it was killed or stopped.
    pub async fn start_again(&self) -> Result<()> {
        self.process.start_again()?;
        self.ready().await
    }

    /// Returns the data as Redis would write them to disk, texts uncompressed.
    pub async fn dump(&self) -> Result<Vec<u8>> {
        self.command(&["CONFIG", "SET", "rdbcompression", "no"])
            .await?;
        self.command(&["SAVE"]).await?;
        let reply = self.command(&["CONFIG", "GET", "dir"]).await?;
        let directory = reply.lines().last().context("Redis told no directory")?;
        let file = Path::new(directory).join("dump.rdb");
        fs::read(&file).with_context(|| format!("read {}", file.display()))
    }

    async fn ready(&self) -> Result<()> {
        self.process
            .ready(START, async || self.command(&["PING"]).await)
            .await?;
        Ok(())
    }

    /// Runs one command as the default user and returns the reply as Redis wrote it on the wire: to inspect
    /// the server, not to test what speaks to it.
    pub async fn command(&self, words: &[&str]) -> Result<String> {
        let mut request = String::new();
        if let Some(password) = &self.password {
            request += &encode(&["AUTH", password]);
        }
        request += &encode(words);
        let talk = async {
            let mut stream = BufReader::new(TcpStream::connect(self.port.address()).await?);
            stream.write_all(request.as_bytes()).await?;
            if self.password.is_some() {
                read_reply(&mut stream).await?;
            }
            read_reply(&mut stream).await
        };
        let reply = timeout(START, talk)
            .await
            .with_context(|| format!("{words:?} had no reply"))??;
        match reply.strip_prefix('-') {
            Some(error) => bail!("{}: {}", words.join(" "), error.trim_end()),
            None => Ok(reply),
        }
    }
}

fn encode(words: &[&str]) -> String {
    let mut request = format!("*{}\r\n", words.len());
    words
        .iter()
        .for_each(|word| request += &format!("${}\r\n{word}\r\n", word.len()));
    request
}

/// Reads a reply, nested arrays included, as it came.
async fn read_reply(stream: &mut BufReader<TcpStream>) -> Result<String> {
    let mut reply = String::new();
    let mut expected = 1;
    while expected > 0 {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            bail!("Redis closed the connection");
        }
        expected -= 1;
        let length = line.get(1..).unwrap_or_default().trim_end().parse::<i64>();
        match (line.as_bytes().first(), length) {
            (Some(b'*'), Ok(items)) => expected += items.max(0),
            (Some(b'$'), Ok(bytes)) if bytes >= 0 => {
                let mut text = vec![0; usize::try_from(bytes)? + 2];
                stream.read_exact(&mut text).await?;
                line += &String::from_utf8_lossy(&text);
            }
            _ => {}
        }
        reply += &line;
    }
    Ok(reply)
}

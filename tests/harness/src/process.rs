//! A server process that dies with the test process, even one that is killed.
//!
//! Linux sends the parent-death signal when the *thread* that started the child
//! ends, and the test runner's threads end with their tests. So one thread that
//! lives as long as the process starts all children.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{scratch, wait_until};

/// Interval between two checks of a program that restarts.
const RESTART_INTERVAL: Duration = Duration::from_millis(500);

/// Program with everything that a start needs, which a restart repeats.
#[derive(Clone, Debug)]
pub struct Program {
    name: String,
    path: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    user: Option<String>,
    death_signal: Signal,
    restarts: bool,
}

/// A running program. Its output goes to a file; dropping it kills the program.
#[derive(Debug)]
pub struct Process {
    program: Program,
    log: PathBuf,
    child: Arc<Mutex<Child>>,
    /// Whether the program is to run: nobody has asked it to stop.
    is_wanted: Arc<AtomicBool>,
}

impl Program {
    /// Describes the program at `path`, or of that name on the `PATH`. It inherits no variable but `PATH`
    /// and `HOME`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_path_buf();
        let name = path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned();
        Self {
            name,
            path,
            arguments: Vec::new(),
            variables: Vec::new(),
            user: None,
            death_signal: Signal::SIGKILL,
            restarts: false,
        }
    }

    /// Describes the program and arguments of a command line, which must not be empty.
    pub(crate) fn from_words(words: Vec<OsString>) -> Self {
        Self::new(&words[0]).args(words.into_iter().skip(1))
    }

    /// Adds one argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Runs the program as this user, which only root can ask for.
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    /// Sets the signal that ends the program when it is dropped or the test process dies, instead of
    /// SIGKILL, for a program that has something to put away.
    pub fn death_signal(mut self, signal: Signal) -> Self {
        self.death_signal = signal;
        self
    }

    /// Starts the program again whenever it has failed by itself, as a kubelet does with a container: it was not asked to
    /// stop, and ended neither with success nor by a signal.
    pub fn restarts(mut self) -> Self {
        self.restarts = true;
        self
    }

    /// Starts the program.
    pub fn start(self) -> Result<Process> {
        let log = scratch::directory(&self.name)?.join("log");
        let child = Arc::new(Mutex::new(self.spawn(&log)?));
        let is_wanted = Arc::new(AtomicBool::new(true));
        if self.restarts {
            let (program, log, is_wanted) = (self.clone(), log.clone(), Arc::clone(&is_wanted));
            let child = Arc::downgrade(&child);
            thread::spawn(move || program.keep_running(&log, &child, &is_wanted));
        }
        Ok(Process {
            program: self,
            log,
            child,
            is_wanted,
        })
    }

    /// Starts the program again after each failure, until its [`Process`] is gone.
    fn keep_running(&self, log: &Path, child: &Weak<Mutex<Child>>, is_wanted: &AtomicBool) {
        while let Some(child) = child.upgrade() {
            let mut running = child.lock().unwrap_or_else(PoisonError::into_inner);
            let status = running.try_wait().ok().flatten();
            let has_failed =
                status.is_some_and(|status| status.code().is_some_and(|code| code != 0));
            // One that cannot be started is tried again, too.
            if has_failed
                && is_wanted.load(Ordering::Relaxed)
                && let Ok(next) = self.spawn(log)
            {
                *running = next;
            }
            drop(running);
            drop(child);
            thread::sleep(RESTART_INTERVAL);
        }
    }

    fn spawn(&self, log: &Path) -> Result<Child> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = Command::new("setpriv");
        let signal = self.death_signal.as_str().trim_start_matches("SIG");
        command.args(["--pdeathsig", signal]);
        if let Some(user) = &self.user {
            command.args(["--reuid", user, "--regid", user, "--init-groups"]);
        }
        command
            .arg("--")
            .arg(&self.path)
            .args(&self.arguments)
            .env_clear();
        let inherited = ["PATH", "HOME"];
        command.envs(
            inherited
                .into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        on_the_lasting_thread(command).with_context(|| {
            format!(
                "start {} with setpriv (Debian package util-linux)",
                self.name
            )
        })
    }
}

impl Process {
    /// Returns the process' id.
    pub fn id(&self) -> u32 {
        self.child().id()
    }

    /// Returns the output of the program.
    pub fn log(&self) -> String {
        fs::read(&self.log)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .unwrap_or_default()
    }

    /// Returns the last lines of the log, for an error's text.
    pub fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Returns its exit status once it has ended.
    pub fn exit_status(&self) -> Result<Option<ExitStatus>> {
        self.child()
            .try_wait()
            .with_context(|| format!("ask whether {} runs", self.program.name))
    }

    /// Sends a signal: `SIGSTOP` pauses, `SIGCONT` continues.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let mut child = self.child();
        // The id of a program that has ended may be another's.
        if let Some(status) = child.try_wait()? {
            bail!("{} has ended with {status}", self.program.name);
        }
        kill(Pid::from_raw(i32::try_from(child.id())?), signal)
            .with_context(|| format!("send {signal} to {}", self.program.name))
    }

    /// Asks the program to end (SIGTERM) and waits for it.
    pub async fn stop(&self, within: Duration) -> Result<ExitStatus> {
        self.is_wanted.store(false, Ordering::Relaxed);
        self.signal(Signal::SIGTERM)?;
        self.ended(within).await
    }

    /// Ends the program at once (SIGKILL).
    pub fn kill(&self) -> Result<()> {
        let mut child = self.child();
        child
            .kill()
            .with_context(|| format!("kill {}", self.program.name))?;
        child
            .wait()
            .with_context(|| format!("wait for {}", self.program.name))?;
        Ok(())
    }

    /// Ends the program as dropping it does. It may have ended already, and nobody needs to hear that.
    pub(crate) fn end(&self) {
        self.is_wanted.store(false, Ordering::Relaxed);
        let _ = self.signal(self.program.death_signal);
        // A paused program has to go on to end.
        let _ = self.signal(Signal::SIGCONT);
        let _ = self.child().wait();
    }

    /// Starts the program again, as it was started the first time, after it has ended.
    pub fn start_again(&self) -> Result<()> {
        let mut child = self.child();
        if child.try_wait()?.is_none() {
            bail!(
                "{} still runs: stop or kill it before it is started again",
                self.program.name
            );
        }
        *child = self.program.spawn(&self.log)?;
        self.is_wanted.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until the program has ended by itself.
    pub async fn ended(&self, within: Duration) -> Result<ExitStatus> {
        wait_until(
            &format!("the end of {}", self.program.name),
            within,
            async || {
                self.exit_status()?
                    .with_context(|| format!("it still runs:\n{}", self.log_end()))
            },
        )
        .await
    }

    /// Waits until `condition` holds; a program that ends before ends the wait.
    pub async fn ready<T>(
        &self,
        within: Duration,
        mut condition: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let name = &self.program.name;
        let answering = format!("{name} to answer");
        let ready = wait_until(&answering, within, async || match self.exit_status()? {
            Some(status) => Ok(Err(status)),
            None => condition().await.map(Ok),
        });
        match ready
            .await
            .with_context(|| format!("the end of its log:\n{}", self.log_end()))?
        {
            Ok(value) => Ok(value),
            Err(status) => bail!("{name} ended with {status}:\n{}", self.log_end()),
        }
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Finds a program on the `PATH`, or as a path.
pub(crate) fn find(program: &str, more_directories: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(more_directories.iter().cloned());
    directories
        .map(|directory| directory.join(program))
        .find(|file| File::open(file).is_ok())
}

type Start = (Command, mpsc::Sender<io::Result<Child>>);

fn on_the_lasting_thread(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<mpsc::Sender<Start>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Start>();
        thread::spawn(move || {
            for (mut command, answer) in receiver {
                // Nobody waits for the answer of a test that has been given up.
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let (answer, child) = mpsc::channel();
    starter.send((command, answer)).map_err(io::Error::other)?;
    child.recv().map_err(io::Error::other)?
}

//! Running other programs: their output on success, the end of it with the attempt's name on failure.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::project::project;
use crate::timeline::Timeline;

/// Lines of a log in an error: enough for a compiler's message or a panic, and still one screen.
const SHOWN_LINES: usize = 30;

/// Pause between two checks of a program that may have to be killed.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Words before a command that computes only where nothing else wants to: not even a thread at nice 19 gives way to
/// those in the cluster's control group.
pub const IDLE: [&str; 3] = ["chrt", "--idle", "0"];

/// Runs `command` to its end and returns its standard output.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", describe(command)))?;
    succeeded(command, output)
}

/// Runs `command` with `input` on its standard input, where no other process can read it, and
/// returns its output.
pub fn run_with_input(command: &mut Command, input: &str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", describe(command)))?;
    let mut stdin = child.stdin.take().context("standard input is piped")?;
    stdin
        .write_all(input.as_bytes())
        .with_context(|| format!("cannot write to `{}`", describe(command)))?;
    drop(stdin);
    let output = child
        .wait_with_output()
        .with_context(|| format!("cannot wait for `{}`", describe(command)))?;
    succeeded(command, output)
}

/// Runs `command`, handing each line that it prints to `report`; an error carries the last of them.
pub fn run_reporting(command: &mut Command, report: &mut dyn FnMut(&str)) -> Result<()> {
    let mut last_lines = VecDeque::new();
    let (mut child, output) = start(command)?;
    read_lines(command, output, &mut |line| {
        report(line);
        last_lines.push_back(line.to_owned());
        if last_lines.len() > SHOWN_LINES {
            last_lines.pop_front();
        }
    })?;
    let status = end(command, &mut child)?;
    if !status.success() {
        bail!(
            "`{}` ended with {status}:\n{}",
            describe(command),
            Vec::from(last_lines).join("\n")
        );
    }
    Ok(())
}

/// Runs `command`, handing each line that it prints to `report`, and returns its status; kills it, with all that it has
/// started, once `is_over` holds for the time since its last line.
pub fn run_until(
    command: &mut Command,
    report: &mut dyn FnMut(&str),
    is_over: impl Fn(Duration) -> bool + Sync,
) -> Result<ExitStatus> {
    // A group of its own, so that nothing is left of it that would hold its output.
    let (mut child, output) = start(command.process_group(0))?;
    let id = Pid::from_raw(i32::try_from(child.id())?);
    let silence = Silence::start();
    let (running, ended) = channel::<()>();
    thread::scope(|scope| {
        let (silence, is_over) = (&silence, &is_over);
        scope.spawn(move || {
            while ended.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if is_over(silence.length()) {
                    // It is still there, at least to be waited for, so that nobody else has its id.
                    let _ = killpg(id, Signal::SIGKILL);
                    return;
                }
            }
        });
        let read = read_lines(command, output, &mut |line| {
            silence.end();
            report(line);
        });
        drop(running);
        read
    })?;
    end(command, &mut child)
}

/// Time since a program's start or last line.
struct Silence {
    timeline: Timeline,
    begin: Mutex<Duration>,
}

impl Silence {
    fn start() -> Self {
        Self {
            timeline: Timeline::start(),
            begin: Mutex::default(),
        }
    }

    /// Begins another one.
    fn end(&self) {
        *self.begin() = self.timeline.elapsed();
    }

    fn length(&self) -> Duration {
        let begin = *self.begin();
        self.timeline.elapsed().saturating_sub(begin)
    }

    fn begin(&self) -> MutexGuard<'_, Duration> {
        self.begin.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts `command` and returns it with what it prints.
fn start(command: &mut Command) -> Result<(Child, PipeReader)> {
    let (output, printed) = io::pipe().context("cannot make a pipe")?;
    let child = command
        .stdin(Stdio::null())
        .stdout(printed.try_clone().context("cannot share a pipe")?)
        .stderr(printed)
        .spawn();
    // The command holds the pipe's other end, which would never seem closed.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = child.with_context(|| format!("cannot start `{}`", describe(command)))?;
    Ok((child, output))
}

fn read_lines(command: &Command, output: PipeReader, report: &mut dyn FnMut(&str)) -> Result<()> {
    for line in BufReader::new(output).lines() {
        report(&line.with_context(|| format!("cannot read what `{}` reports", describe(command)))?);
    }
    Ok(())
}

fn end(command: &Command, child: &mut Child) -> Result<ExitStatus> {
    child
        .wait()
        .with_context(|| format!("cannot wait for `{}`", describe(command)))
}

/// Runs cargo in the checkout, with its output on the terminal.
pub fn cargo(arguments: &[&str], variables: &[(&str, String)]) -> Result<()> {
    let status = cargo_command(arguments, variables).status();
    let status = status.context("cannot start cargo")?;
    if !status.success() {
        bail!("`cargo {}` ended with {status}", arguments.join(" "));
    }
    Ok(())
}

/// Returns cargo in the checkout. It knows nothing of the package that this program is from: ring's build script runs
/// again, and all that depends on it is compiled again, whenever a variable about a package has changed.
pub fn cargo_command(arguments: &[&str], variables: &[(&str, String)]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(project())
        .envs(variables.iter().map(|(name, value)| (name, value)));
    for (name, _) in std::env::vars_os() {
        if is_of_a_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo gives a variable of this name to the programs that it runs, about their package.
fn is_of_a_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Returns cargo in the checkout, under [`IDLE`].
pub fn cargo_in_background(arguments: &[&str]) -> Command {
    under(&IDLE, &cargo_command(arguments, &[]))
}

/// Returns `command` under another program, such as `nice`, that becomes it.
pub fn under(program: &[&str], command: &Command) -> Command {
    let mut wrapped = Command::new(program[0]);
    wrapped
        .args(&program[1..])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
}

/// Returns the program and its arguments as one would type them. Secrets are never arguments.
pub fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

fn succeeded(command: &Command, output: Output) -> Result<String> {
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`{}` ended with {}:\n{}",
            describe(command),
            output.status,
            last_lines(&stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the end of the log at `path`, or why it cannot be shown.
pub fn end_of_log(path: &Path) -> String {
    match fs::read(path) {
        Ok(bytes) => last_lines(&String::from_utf8_lossy(&bytes)),
        Err(error) => format!("({}: {error})", path.display()),
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn an_error_shows_the_command_and_the_end_of_its_output() {
        let error =
            run(Command::new("sh").args(["-c", "echo out of space >&2; exit 3"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`sh -c echo out of space >&2; exit 3` ended with exit status: 3:\nout of space"
        );
    }

    #[test]
    fn variables_about_a_package_are_known() {
        let is_one = |name: &str| is_of_a_package(name.as_ref());
        assert!(is_one("CARGO_PKG_NAME") && is_one("CARGO_MANIFEST_DIR"));
        assert!(!is_one("CARGO_TARGET_DIR") && !is_one("CARGO"));
    }

    #[test]
    fn input_reaches_the_program_and_stays_out_of_its_arguments() {
        assert_eq!(
            run_with_input(&mut Command::new("cat"), "a password").unwrap(),
            "a password"
        );
    }

    #[test]
    fn each_reported_line_is_handed_on_as_it_comes() {
        let mut lines = Vec::new();
        run_reporting(
            Command::new("sh").args(["-c", "echo a >&2; echo b"]),
            &mut |line| {
                lines.push(line.to_owned());
            },
        )
        .unwrap();
        assert_eq!(lines, ["a", "b"]);
    }

    #[test]
    fn a_program_that_has_to_end_keeps_the_lines_that_it_has_printed() {
        let (mut lines, has_begun) = (Vec::new(), AtomicBool::new(false));
        let status = run_until(
            // Both hold the pipe.
            Command::new("sh").args(["-c", "echo begun; sleep 600; true"]),
            &mut |line| {
                lines.push(line.to_owned());
                has_begun.store(true, Ordering::Relaxed);
            },
            |_| has_begun.load(Ordering::Relaxed),
        );
        assert_eq!(status.unwrap().signal(), Some(9));
        assert_eq!(lines, ["begun"]);
    }
}

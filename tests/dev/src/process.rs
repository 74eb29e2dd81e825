//! Running other programs: their output on success, the end of it with what was attempted on failure.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};

use anyhow::{Context, Result, bail};

use crate::project::project;
use crate::searched::{Shown, run_searched};

/// How much of a log an error shows: enough for a compiler's message or a panic, and still one screen.
const SHOWN_LINES: usize = 30;

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
    let (output, printed) = io::pipe().context("cannot make a pipe")?;
    let child = command
        .stdin(Stdio::null())
        .stdout(printed.try_clone().context("cannot share a pipe")?)
        .stderr(printed)
        .spawn();
    // The command holds the pipe's other end, which would never seem closed.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.with_context(|| format!("cannot start `{}`", describe(command)))?;
    let mut last_lines = VecDeque::new();
    for line in BufReader::new(output).lines() {
        let line =
            line.with_context(|| format!("cannot read what `{}` reports", describe(command)))?;
        report(&line);
        last_lines.push_back(line);
        if last_lines.len() > SHOWN_LINES {
            last_lines.pop_front();
        }
    }
    let status = child
        .wait()
        .with_context(|| format!("cannot wait for `{}`", describe(command)))?;
    if !status.success() {
        bail!(
            "`{}` ended with {status}:\n{}",
            describe(command),
            Vec::from(last_lines).join("\n")
        );
    }
    Ok(())
}

/// Runs cargo in the checkout, with its output on the terminal.
pub fn cargo(arguments: &[&str], variables: &[(&str, String)]) -> Result<()> {
    let status = cargo_command(arguments, variables).status();
    cargo_ended(arguments, status.context("cannot start cargo")?)
}

/// The same, and all that it prints is searched for API keys. `read` is given the lines of its
/// standard output when it has ended.
pub fn cargo_searched(
    arguments: &[&str],
    variables: &[(&str, String)],
    read: impl FnMut(&str),
) -> Result<()> {
    let mut command = cargo_command(arguments, variables);
    if std::io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let status = run_searched(&mut command, Shown::Here, read);
    cargo_ended(arguments, status.context("cargo's output")?)
}

/// Cargo in the checkout.
pub fn cargo_command(arguments: &[&str], variables: &[(&str, String)]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(project())
        .envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

/// `command` under another program, such as `nice`, that becomes it.
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

fn cargo_ended(arguments: &[&str], status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`cargo {}` ended with {status}", arguments.join(" "));
    }
    Ok(())
}

/// The program and its arguments as one would type them. Secrets are never arguments.
fn describe(command: &Command) -> String {
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

/// The end of the log at `path`, or why it cannot be shown.
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
    fn input_reaches_the_program_and_stays_out_of_its_arguments() {
        assert_eq!(
            run_with_input(&mut Command::new("cat"), "a password").unwrap(),
            "a password"
        );
    }

    #[test]
    fn a_command_under_another_program_keeps_its_folder_and_variables() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $PLACE $PWD $GONE"])
            .env("PLACE", "here")
            .env_remove("GONE")
            .current_dir("/");
        let printed = run(under(&["env", "GONE=gone"], &command).env("GONE", "kept")).unwrap();
        assert_eq!(printed, "here / gone\n");
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
}

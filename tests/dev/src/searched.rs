//! A program whose output is shown as it comes, searched for API keys, since no test may print one,
//! and handed on line by line.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use water_harness::find_key_text;

/// How long output may still come after the program's end: from one that it left behind.
const LINGER: Duration = Duration::from_secs(5);

/// Where the output of a program goes.
#[derive(Clone, Copy)]
pub enum Shown {
    /// To the standard output and the standard error of this one.
    Here,
    #[cfg(test)]
    Nowhere,
}

impl Shown {
    fn writer(self, here: impl Write + Send + 'static) -> Box<dyn Write + Send> {
        match self {
            Self::Here => Box::new(here),
            #[cfg(test)]
            Self::Nowhere => Box::new(io::sink()),
        }
    }
}

/// Runs `command` to its end and answers its status, or that its output holds an API key, whatever
/// its status. `read` is given each line of its standard output.
pub fn run_searched(
    command: &mut Command,
    shown: Shown,
    mut read: impl FnMut(&str),
) -> Result<ExitStatus> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start it")?;
    let stdout = child.stdout.take().context("standard output is piped")?;
    let stderr = child.stderr.take().context("standard error is piped")?;
    let (ended, outputs) = mpsc::channel();
    let again = ended.clone();
    thread::spawn(move || show(stderr, shown.writer(io::stderr()), &again, |_| {}));
    let (told, lines) = mpsc::channel();
    thread::spawn(move || {
        // Nobody reads any more what comes after the end.
        let tell = |line: &str| drop(told.send(line.to_owned()));
        show(stdout, shown.writer(io::stdout()), &ended, tell);
    });
    let status = child.wait().context("cannot wait for its end")?;
    let found = (0..2).find_map(|_| outputs.recv_timeout(LINGER).ok()?);
    lines.try_iter().for_each(|line| read(&line));
    if let Some(key) = found {
        bail!("the output holds the text of the API key {key}…");
    }
    Ok(status)
}

/// Hands lines on until there are no more, and then tells the first key among them.
fn show(from: impl Read, mut to: impl Write, ended: &Sender<Option<String>>, tell: impl Fn(&str)) {
    let (mut from, mut line, mut found) = (BufReader::new(from), Vec::new(), None);
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        found = found.or_else(|| find_key_text(&line));
        // Nobody may be looking any more; the search goes on.
        let _ = to.write_all(&line);
        tell(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let _ = to.flush();
    // An error means that nobody waits for it any longer.
    let _ = ended.send(found);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Result<ExitStatus> {
        run_searched(
            Command::new("sh").args(["-c", script]),
            Shown::Nowhere,
            |_| {},
        )
    }

    #[test]
    fn each_line_of_standard_output_is_handed_on() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo other >&2; echo two"]);
        run_searched(&mut command, Shown::Nowhere, |line| {
            lines.push(line.to_owned())
        })
        .unwrap();
        assert_eq!(lines, ["one\n", "two\n"]);
    }

    #[test]
    fn a_key_in_an_output_is_an_error_that_shows_its_public_part() {
        let (mut shown, (ended, outputs)) = (Vec::new(), mpsc::channel());
        let printed = format!("one\nkey=wdk_{}_{}\nlast", "a".repeat(12), "b".repeat(49));
        show(printed.as_bytes(), &mut shown, &ended, |_| {});
        assert_eq!(shown, printed.as_bytes());
        let found = outputs.recv().unwrap();
        assert_eq!(found.as_deref(), Some("wdk_aaaaaaaaaaaa"));
    }

    #[test]
    fn the_status_is_the_programs() {
        assert!(run("echo wdk_short").unwrap().success());
        assert_eq!(run("exit 3").unwrap().code(), Some(3));
    }
}

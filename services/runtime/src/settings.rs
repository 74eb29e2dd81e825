//! Settings come from environment variables, and all problems with them are reported at once.
//!
//! A binary's `config.rs` implements [`Config`]: it first reads every variable, then builds itself from the
//! results. Nothing returns early, so one run reports all problems and `--help`, which is the same reading of
//! an empty environment, lists all variables.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use crate::Program;

/// Bad settings or arguments: `EX_USAGE` of sysexits.h.
pub const EXIT_USAGE: u8 = 64;

/// The settings of one binary.
pub trait Config: Sized {
    /// Reads all variables, then builds the settings; an [`Invalid`] is passed on with `?` only
    /// after the last variable was read.
    fn read(settings: &mut Settings) -> Result<Self, Invalid>;
}

/// Proof that a problem was noted in [`Settings`]; it carries nothing, the note has it all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invalid(());

/// A variable that a binary knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Name, such as `WATER_LISTEN_ADDRESS`.
    pub name: &'static str,
    /// Meaning of its value, a noun phrase that shows the form: `the address and port …, such as …`.
    pub meaning: &'static str,
    /// Behaviour when it is not set.
    pub absent: Absent,
}

/// Behaviour when a variable is not set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absent {
    /// The process does not start.
    Refused,
    /// The value is missing, which has a meaning.
    Allowed,
    /// Text that is read instead.
    Default(&'static str),
}

/// The environment being read: collects every variable and every problem.
#[derive(Debug)]
pub struct Settings {
    environment: HashMap<String, Result<String, NotUnicode>>,
    variables: Vec<Variable>,
    problems: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct NotUnicode;

impl Settings {
    /// Reads the process' environment.
    pub fn from_environment() -> Self {
        Self::new(std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((name, value.into_string().map_err(|_| NotUnicode)))
        }))
    }

    /// Reads these variables only: tests, and `--help`, which gives none.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), Ok(value.to_owned()));
        Self::new(pairs.into_iter().map(owned))
    }

    fn new(environment: impl IntoIterator<Item = (String, Result<String, NotUnicode>)>) -> Self {
        Self {
            environment: environment.into_iter().collect(),
            variables: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Reads a variable that must be set.
    pub fn required<T>(&mut self, name: &'static str, meaning: &'static str) -> Result<T, Invalid>
    where
        T: FromStr<Err: Display>,
    {
        self.declare(name, meaning, Absent::Refused);
        match self.text(name)? {
            Some(text) => self.parsed(name, meaning, &text),
            None => Err(self.refuse(name, format!("is not set. Set it to {meaning}."))),
        }
    }

    /// Reads a variable that may be absent.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
    ) -> Result<Option<T>, Invalid>
    where
        T: FromStr<Err: Display>,
    {
        self.declare(name, meaning, Absent::Allowed);
        match self.text(name)? {
            Some(text) => self.parsed(name, meaning, &text).map(Some),
            None => Ok(None),
        }
    }

    /// Reads a variable with a default, written as one would set it.
    pub fn or<T>(
        &mut self,
        name: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Result<T, Invalid>
    where
        T: FromStr<Err: Display>,
    {
        self.declare(name, meaning, Absent::Default(default));
        let text = self.text(name)?.unwrap_or_else(|| default.to_owned());
        self.parsed(name, meaning, &text)
    }

    /// Reads a duration in whole seconds.
    pub fn seconds(
        &mut self,
        name: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Result<Duration, Invalid> {
        self.or::<u32>(name, default, meaning)
            .map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Reads a list separated by commas; absent or empty, it has no items.
    pub fn list<T>(&mut self, name: &'static str, meaning: &'static str) -> Result<Vec<T>, Invalid>
    where
        T: FromStr<Err: Display>,
    {
        self.declare(name, meaning, Absent::Default(""));
        let text = self.text(name)?.unwrap_or_default();
        let items = text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty());
        items.map(|item| self.parsed(name, meaning, item)).collect()
    }

    /// Notes a problem that only the binary can see, such as two variables that contradict each
    /// other. `problem` goes on after the variable's name and ends with the remedy.
    pub fn refuse(&mut self, name: &str, problem: impl Display) -> Invalid {
        self.problems.push(format!("{name} {problem}"));
        Invalid(())
    }

    /// Returns the variables read so far, in the order of reading.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Returns the problems met so far, one sentence each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    fn declare(&mut self, name: &'static str, meaning: &'static str, absent: Absent) {
        self.variables.push(Variable {
            name,
            meaning,
            absent,
        });
    }

    /// Returns the variable's text; set but empty counts as absent, as charts render what was left out.
    fn text(&mut self, name: &'static str) -> Result<Option<String>, Invalid> {
        match self.environment.get(name) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(Err(NotUnicode)) => Err(self.refuse(name, "is not UTF-8. Write it in UTF-8.")),
        }
    }

    /// Parses a value, which is never echoed: it may be a secret.
    fn parsed<T>(&mut self, name: &str, meaning: &str, text: &str) -> Result<T, Invalid>
    where
        T: FromStr<Err: Display>,
    {
        text.parse().map_err(|problem: T::Err| {
            self.refuse(
                name,
                format!("is not usable: {problem}. Set it to {meaning}."),
            )
        })
    }
}

/// Reads the settings of a binary that takes no arguments but `--help` and `--version`.
///
/// On `Err` everything was printed and `main` returns the code: 0 after help and version, 64 after bad
/// settings or arguments.
pub fn load<C: Config>(program: &Program) -> Result<C, ExitCode> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => {}
        (Some("--help" | "-h"), None) => {
            print!("{}", help::<C>(program));
            return Err(ExitCode::SUCCESS);
        }
        (Some("--version" | "-V"), None) => {
            println!("{} {}", program.name, program.version);
            return Err(ExitCode::SUCCESS);
        }
        _ => {
            let name = program.name;
            eprintln!("{name} is set by environment variables only; `{name} --help` lists them.");
            return Err(ExitCode::from(EXIT_USAGE));
        }
    }
    from_settings(&mut Settings::from_environment()).map_err(|problems| {
        problems.iter().for_each(|problem| eprintln!("{problem}"));
        ExitCode::from(EXIT_USAGE)
    })
}

/// Reads a configuration, or returns everything that is wrong with it.
pub fn from_settings<C: Config>(settings: &mut Settings) -> Result<C, Vec<String>> {
    let log = crate::telemetry::declare(settings);
    match (C::read(settings), log) {
        (Ok(config), Ok(_)) if settings.problems.is_empty() => Ok(config),
        _ => Err(settings.problems.clone()),
    }
}

/// Returns the text of `--help`.
pub fn help<C: Config>(program: &Program) -> String {
    let mut settings = Settings::from_pairs([]);
    // An empty environment lacks the required variables; the listing is complete all the same.
    let _ = from_settings::<C>(&mut settings);
    let mut text = format!(
        "{} {}: {}\n\nSettings (environment variables):\n",
        program.name, program.version, program.about
    );
    for Variable {
        name,
        meaning,
        absent,
    } in &settings.variables
    {
        let _ = match absent {
            Absent::Refused => write!(text, "\n  {name} (required)\n      {meaning}\n"),
            Absent::Allowed | Absent::Default("") => {
                write!(text, "\n  {name} (optional)\n      {meaning}\n")
            }
            Absent::Default(value) => {
                write!(text, "\n  {name} (default {value})\n      {meaning}\n")
            }
        };
    }
    text
}

#[cfg(test)]
mod tests;

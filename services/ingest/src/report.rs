//! What is said on standard error: lines for people, or JSON for programs.

use clap::ValueEnum;
use serde::Serialize;

/// How things are said.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// `stress.csv:17: stressIndex: 5.7 is outside 0..5`
    #[default]
    Text,
    /// An object a line, every problem of the file among them.
    Json,
}

/// How grave a thing is.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It refuses the file.
    Problem,
    /// It looks wrong and is accepted.
    Warning,
    /// It may surprise.
    Note,
    /// It ended the command.
    Failure,
}

/// One thing that is said.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct Remark<'a> {
    /// How grave it is.
    pub severity: Severity,
    /// The file that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<&'a str>,
    /// The physical line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<&'a str>,
    /// What it is.
    pub message: &'a str,
}

impl Remark<'_> {
    /// The remark as one line, without its line end.
    pub fn line(&self, form: Form) -> String {
        match form {
            Form::Json => serde_json::to_string(self).expect("text and numbers are always JSON"),
            Form::Text => self.text(),
        }
    }

    fn text(&self) -> String {
        let place = match (self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            (None, _) => String::new(),
        };
        let warning = match self.severity {
            Severity::Warning => "warning: ",
            _ => "",
        };
        let column = self.column.map(|column| format!("{column}: "));
        let column = column.unwrap_or_default();
        format!("{place}{warning}{column}{}", self.message)
    }
}

/// Says on standard error what may surprise, about a file or about the command.
pub fn note(form: Form, file: Option<&str>, message: &str) {
    say(form, Severity::Note, file, message);
}

/// Says on standard error what is wrong with the stored data.
pub fn problem(form: Form, message: &str) {
    say(form, Severity::Problem, None, message);
}

fn say(form: Form, severity: Severity, file: Option<&str>, message: &str) {
    let remark = Remark {
        severity,
        file,
        line: None,
        column: None,
        message,
    };
    eprintln!("{}", remark.line(form));
}

//! Messages on standard error: lines for people, or JSON for programs.

use clap::ValueEnum;
use serde::Serialize;
use water_runtime::json;

/// Form of messages.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// `stress.csv:17: stressIndex: 5.7 is outside 0..5`
    #[default]
    Text,
    /// An object a line, every problem of the file among them.
    Json,
}

/// Severity of a message.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Problem that refuses the file.
    Problem,
    /// Value or line that looks wrong and is accepted.
    Warning,
    /// Fact that may surprise.
    Note,
    /// Failure that ended the command.
    Failure,
}

/// A message.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct Remark<'a> {
    /// Severity of the message.
    pub severity: Severity,
    /// File with the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<&'a str>,
    /// The physical line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<&'a str>,
    /// Text of the message.
    pub message: &'a str,
}

impl Remark<'_> {
    /// The remark as one line, without its line end.
    pub fn line(&self, form: Form) -> String {
        match form {
            Form::Json => String::from_utf8(json::to_vec(self)).expect("JSON is UTF-8"),
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

/// Prints on standard error what may surprise, about a file or about the command.
pub fn note(form: Form, file: Option<&str>, message: &str) {
    say(form, Severity::Note, file, message);
}

/// Prints on standard error a problem of the stored data.
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

#[cfg(test)]
mod tests {
    use water_runtime::line_end::is_line_end;

    use super::*;

    #[test]
    fn a_remark_is_one_line_of_json_whatever_line_ends_a_reader_counts() {
        let remark = Remark {
            severity: Severity::Note,
            file: Some("a\u{2028}b.csv"),
            line: None,
            column: None,
            message: "c\u{85}d\n",
        };
        let line = remark.line(Form::Json);
        assert!(!line.contains(is_line_end), "{line:?}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["file"], "a\u{2028}b.csv");
    }
}

//! Problems of a file, one line each: `stress.csv:17: stressIndex: 5.7 is outside 0..5`.

use std::io::{self, Write};

use crate::report::{Form, Remark, Severity};

/// Number of problems to print; the rest is counted. A wrong column makes a problem of every row.
const PRINTED: usize = 50;

/// The problems and warnings of one file, in the order of their discovery, and whether a row says that it is invented.
pub struct Problems {
    file: String,
    form: Form,
    /// Output for every remark at once, so that memory does not grow with them.
    every: Option<Box<dyn Write + Send>>,
    refusals: Lines,
    warnings: Lines,
    synthetic: bool,
}

#[derive(Debug, Default)]
struct Lines {
    first: Vec<String>,
    count: u64,
}

impl Problems {
    /// No problems yet, in the file of this name; the first will be printed.
    pub fn new(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            form: Form::Text,
            every: None,
            refusals: Lines::default(),
            warnings: Lines::default(),
            synthetic: false,
        }
    }

    /// Writes every problem to `out` at once.
    pub fn written_to(self, form: Form, out: impl Write + Send + 'static) -> Self {
        Self {
            form,
            every: Some(Box::new(out)),
            ..self
        }
    }

    /// Refuses a value in a column. Lines count from 1.
    pub fn refuse(&mut self, line: u64, column: &str, why: &str) {
        self.add(Severity::Problem, line, Some(column), why);
    }

    /// Refuses a line as a whole.
    pub fn refuse_line(&mut self, line: u64, why: &str) {
        self.add(Severity::Problem, line, None, why);
    }

    /// Counts more problems, without a text.
    pub fn refuse_unnamed(&mut self, count: u64) {
        self.refusals.count += count;
    }

    /// Reports a value that is accepted and looks wrong.
    pub fn warn(&mut self, line: u64, column: &str, why: &str) {
        self.add(Severity::Warning, line, Some(column), why);
    }

    /// Reports a line that is accepted and looks wrong.
    pub fn warn_line(&mut self, line: u64, why: &str) {
        self.add(Severity::Warning, line, None, why);
    }

    /// Notes a row that calls itself synthetic, which makes the whole file so.
    pub fn note_synthetic(&mut self) {
        self.synthetic = true;
    }

    /// Whether a row calls itself synthetic.
    pub fn calls_itself_synthetic(&self) -> bool {
        self.synthetic
    }

    /// Number of refusals.
    pub fn count(&self) -> u64 {
        self.refusals.count
    }

    /// Number of warnings.
    pub fn warning_count(&self) -> u64 {
        self.warnings.count
    }

    /// Prints the first of each and the number of all, unless all were written already.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        if self.every.is_some() {
            return Ok(());
        }
        self.warnings.print(&self.file, "warnings", out)?;
        self.refusals.print(&self.file, "problems", out)
    }

    fn add(&mut self, severity: Severity, line: u64, column: Option<&str>, message: &str) {
        let lines = match severity {
            Severity::Warning => &mut self.warnings,
            _ => &mut self.refusals,
        };
        lines.count += 1;
        let remark = Remark {
            severity,
            file: Some(&self.file),
            line: Some(line),
            column,
            message,
        };
        match &mut self.every {
            // A failure of standard error itself cannot be reported.
            Some(out) => drop(writeln!(out, "{}", remark.line(self.form))),
            None if lines.first.len() < PRINTED => lines.first.push(remark.line(self.form)),
            None => {}
        }
    }
}

impl Lines {
    fn print(&self, file: &str, what: &str, out: &mut impl Write) -> io::Result<()> {
        for line in &self.first {
            writeln!(out, "{line}")?;
        }
        match self.count - self.first.len() as u64 {
            0 => Ok(()),
            _ => writeln!(
                out,
                "{file}: {} {what} in all, the first {PRINTED} are above; --all-problems prints all",
                self.count
            ),
        }
    }
}

#[cfg(test)]
impl Problems {
    /// Returns everything that would be printed.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        self.print(&mut text)
            .expect("writing to memory cannot fail");
        String::from_utf8(text).expect("problems are text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_file_line_and_column() {
        let mut problems = Problems::new("stress.csv");
        problems.refuse(17, "stressIndex", "5.7 is outside 0..5");
        assert_eq!(
            problems.text(),
            "stress.csv:17: stressIndex: 5.7 is outside 0..5\n"
        );
    }

    #[test]
    fn the_first_fifty_are_printed_and_the_rest_is_counted() {
        let mut problems = Problems::new("f");
        (1..=53).for_each(|line| problems.refuse_line(line, "bad"));
        let text = problems.text();
        assert_eq!(text.lines().count(), 51);
        assert!(
            text.ends_with(
                "f:50: bad\nf: 53 problems in all, the first 50 are above; --all-problems prints all\n"
            ),
            "{text}"
        );
    }
}

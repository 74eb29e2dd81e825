//! What is wrong with a file, one line each: `stress.csv:17: stressIndex: 5.7 is outside 0..5`.

use std::io::{self, Write};

/// How many problems are printed; the rest is counted. A wrong column makes one of every row.
const PRINTED: usize = 50;

/// The problems and warnings of one file, in the order in which they were met.
#[derive(Debug)]
pub struct Problems {
    file: String,
    refusals: Lines,
    warnings: Lines,
}

#[derive(Debug, Default)]
struct Lines {
    first: Vec<String>,
    count: u64,
}

impl Problems {
    /// None yet, in the file of this name.
    pub fn of(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            refusals: Lines::default(),
            warnings: Lines::default(),
        }
    }

    /// A value in a column that is not accepted. Lines count from 1.
    pub fn refuse(&mut self, line: u64, column: &str, why: &str) {
        self.refuse_line(line, &format!("{column}: {why}"));
    }

    /// A line that is not accepted as a whole.
    pub fn refuse_line(&mut self, line: u64, why: &str) {
        self.refusals.add(&self.file, line, why);
    }

    /// Problems that are only counted.
    pub fn refuse_unnamed(&mut self, count: u64) {
        self.refusals.count += count;
    }

    /// A value that is accepted and looks wrong.
    pub fn warn(&mut self, line: u64, column: &str, why: &str) {
        self.warnings
            .add(&self.file, line, &format!("warning: {column}: {why}"));
    }

    /// How many refusals there are.
    pub fn count(&self) -> u64 {
        self.refusals.count
    }

    /// How many warnings there are.
    pub fn warning_count(&self) -> u64 {
        self.warnings.count
    }

    /// Prints the first of each and how many more there are.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        self.warnings.print(&self.file, "warnings", out)?;
        self.refusals.print(&self.file, "problems", out)
    }
}

impl Lines {
    fn add(&mut self, file: &str, line: u64, why: &str) {
        self.count += 1;
        if self.first.len() < PRINTED {
            self.first.push(format!("{file}:{line}: {why}"));
        }
    }

    fn print(&self, file: &str, what: &str, out: &mut impl Write) -> io::Result<()> {
        for line in &self.first {
            writeln!(out, "{line}")?;
        }
        match self.count - self.first.len() as u64 {
            0 => Ok(()),
            _ => writeln!(
                out,
                "{file}: {} {what} in all, the first {PRINTED} are above",
                self.count
            ),
        }
    }
}

#[cfg(test)]
impl Problems {
    /// Everything that would be printed.
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
        let mut problems = Problems::of("stress.csv");
        problems.refuse(17, "stressIndex", "5.7 is outside 0..5");
        assert_eq!(
            problems.text(),
            "stress.csv:17: stressIndex: 5.7 is outside 0..5\n"
        );
    }

    #[test]
    fn the_first_fifty_are_printed_and_the_rest_is_counted() {
        let mut problems = Problems::of("f");
        (1..=53).for_each(|line| problems.refuse_line(line, "bad"));
        let text = problems.text();
        assert_eq!(text.lines().count(), 51);
        assert!(
            text.ends_with("f:50: bad\nf: 53 problems in all, the first 50 are above\n"),
            "{text}"
        );
    }
}

//! Rows of each dataset, read from a file.

pub mod history;
pub mod risk;
pub mod stress;
pub mod vigieau;

use water_domain::Departement;

use crate::problem::Problems;

/// Line on which each département was given; a file may have each once.
#[derive(Debug, Default)]
struct DepartementLines(Vec<(&'static str, u64)>);

impl DepartementLines {
    /// Notes a département. Refuses one that was given before and returns `false`, so that a file of a billion
    /// repetitions makes no billion rows.
    fn once(
        &mut self,
        departement: &Departement,
        line: u64,
        column: &str,
        problems: &mut Problems,
    ) -> bool {
        match self.0.iter().find(|(code, _)| *code == departement.code) {
            None => {
                self.0.push((departement.code, line));
                true
            }
            Some((code, first)) => {
                let why = format!("{code} was given in line {first} already");
                problems.refuse(line, column, &why);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;

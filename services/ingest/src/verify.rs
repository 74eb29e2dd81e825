//! `verify`: compares the data that loads store in addition to the rows with the rows.

use serde_json::json;
use water_database::writer::Writer;

use crate::arguments::VerifyArguments;
use crate::failure::Failure;
use crate::report;
use crate::summary;

/// Compares, prints one JSON summary, and reports each problem on standard error.
pub async fn run(writer: &mut Writer, arguments: &VerifyArguments) -> Result<(), Failure> {
    let checks = writer.verify().await?;
    let wrong: Vec<_> = checks.iter().filter(|check| check.wrong > 0).collect();
    for check in &wrong {
        let text = format!(
            "{}: {} of {} are wrong",
            check.check, check.wrong, check.compared
        );
        report::problem(arguments.report, &text);
    }
    let outcome = if wrong.is_empty() {
        "verified"
    } else {
        "inconsistent"
    };
    let consistent = wrong.is_empty();
    summary::print(&json!({ "outcome": outcome, "checks": checks }))?;
    if consistent {
        Ok(())
    } else {
        Err(Failure::Inconsistent)
    }
}

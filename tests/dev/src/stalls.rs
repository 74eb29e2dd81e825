//! Failures that a machine which stands still can cause: a wait that ran out, a time-out, a request without an answer.

use water_harness::is_unanswered;

/// Words of other failures of this kind, in small letters.
const STALLED: [&str; 9] = [
    // The tests' own: of what they judge only without standstills, and of answers after a product's deadline.
    "could not be measured",
    "an answer took ",
    "no answer within",
    // Those of Tokio, of clients, and of Playwright's waits.
    "elapsed(())",
    "deadline has elapsed",
    "timeout",
    "timed out",
    "connection closed",
    "error sending request",
];

/// Whether a line of an error says that something did not come in time, or that nobody answered. Another failure is a
/// wrong value.
pub fn is_stall(line: &str) -> bool {
    let line = line.to_lowercase();
    // A wait's error: `waited 60s for an event`.
    let ran_out = line.split_once("waited ").is_some_and(|(_, rest)| {
        rest.split_once("s for ")
            .is_some_and(|(limit, _)| limit.starts_with(|first: char| first.is_ascii_digit()))
    });
    ran_out || STALLED.iter().any(|words| line.contains(words)) || is_unanswered(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_a_time_out_and_a_lost_connection_are_stalls_and_a_wrong_value_is_none() {
        for line in [
            "Error: waited 60s for the rebuild",
            "called `Result::unwrap()` on an `Err` value: waited 180s for KeyIssued",
            "could not be measured in 3 tries",
            "called `Result::unwrap()` on an `Err` value: Elapsed(())",
            "Timeout: 5000ms",
            "connect: Connection refused (os error 111)",
        ] {
            assert!(is_stall(line), "{line}");
        }
        for line in [
            "assertion `left == right` failed",
            "  left: 200",
            "the customer waited for nothing",
        ] {
            assert!(!is_stall(line), "{line}");
        }
    }
}

//! Tables of a run's time: the steps with their wall time, the CPU time that the machine spent and left idle meanwhile
//! and the step that each waited for; the slowest tests; and with `--profile` the slowest compilations.

mod compilations;
mod processors;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::suites::TestTime;
use crate::timeline::{Span, Timeline};
use compilations::Compilation;
use processors::{Processors, Usage};

/// Rows of the tests' table.
const TESTS: usize = 40;
/// Rows of the compilations' table.
const COMPILATIONS: usize = 25;
/// Columns of the picture in which a step is a bar.
const WIDTH: usize = 48;
/// Steps that are shorter have no row.
const SHORTEST: Duration = Duration::from_secs(1);
/// A step that begins so soon after another's end waited for that one.
const AT_ONCE: Duration = Duration::from_millis(300);

/// A run that is being profiled.
pub struct Profile {
    timeline: Timeline,
    processors: Processors,
    /// Cargo's reports of earlier builds.
    earlier: BTreeSet<PathBuf>,
}

impl Profile {
    /// Begins to sample the processors' time.
    pub fn start(timeline: &Timeline) -> Self {
        Self {
            timeline: timeline.clone(),
            processors: Processors::watch(timeline.clone()),
            earlier: compilations::reports(),
        }
    }

    /// Returns the tables, for a person to read.
    pub fn report(self, tests: Vec<TestTime>, compilations: bool) -> String {
        let samples = self.processors.stop();
        let steps = steps(&self.timeline.spans(), self.timeline.elapsed(), |span| {
            processors::usage(&samples, span.begin, span.end)
        });
        let compilations =
            compilations.then(|| compiled(&compilations::slowest(COMPILATIONS, &self.earlier)));
        format!(
            "{steps}{}{}",
            compilations.unwrap_or_default(),
            slowest(tests)
        )
    }
}

/// Returns the table of steps. Idle is the processors' time that nothing on the machine used.
fn steps(spans: &[Span], total: Duration, usage: impl Fn(&Span) -> Usage) -> String {
    let whole = Span {
        name: "the whole run".to_owned(),
        begin: Duration::ZERO,
        end: total,
    };
    let mut table = format!(
        "\nSteps, in seconds\n{:>7} {:>7} {:>7} {:>7}  {:WIDTH$}  step\n",
        "begin", "wall", "CPU", "idle", ""
    );
    let shown = |span: &&Span| span.wall() >= SHORTEST;
    for span in std::iter::once(&whole).chain(spans.iter().filter(shown)) {
        let Usage { busy, idle } = usage(span);
        let after = predecessor(spans, span).map_or(String::new(), |name| format!(" ← {name}"));
        let _ = writeln!(
            table,
            "{:>7.0} {:>7.1} {busy:>7.0} {idle:>7.0}  {}  {}{after}",
            span.begin.as_secs_f64(),
            span.wall().as_secs_f64(),
            bar(span, total),
            span.name
        );
    }
    table
}

/// Returns the step at whose end `span` began.
fn predecessor<'a>(spans: &'a [Span], span: &Span) -> Option<&'a str> {
    let ended = |other: &&Span| other.end <= span.begin && span.begin - other.end <= AT_ONCE;
    let before = spans.iter().filter(ended);
    let last = before.max_by_key(|other| (other.end, other.wall()))?;
    Some(&last.name)
}

fn bar(span: &Span, total: Duration) -> String {
    let column = |at: Duration| {
        let part = at.as_secs_f64() / total.as_secs_f64().max(f64::EPSILON);
        ((part * WIDTH as f64) as usize).min(WIDTH - 1)
    };
    let (first, last) = (column(span.begin), column(span.end));
    let mark = |at: usize| {
        if (first..=last).contains(&at) {
            '█'
        } else {
            '·'
        }
    };
    (0..WIDTH).map(mark).collect()
}

fn compiled(compilations: &[Compilation]) -> String {
    let mut table = format!(
        "\nSlowest compilations (target/cargo-timings has all)\n{:>7}  crate\n",
        "seconds"
    );
    for Compilation { name, seconds } in compilations {
        let _ = writeln!(table, "{seconds:>7.1}  {name}");
    }
    table
}

fn slowest(mut tests: Vec<TestTime>) -> String {
    let sum: f64 = tests.iter().map(|test| test.seconds).sum();
    let mut table = format!(
        "\nSlowest tests of {} ({sum:.0} s in all, many at a time)\n{:>7}  test\n",
        tests.len(),
        "seconds"
    );
    tests.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    for test in tests.iter().take(TESTS) {
        let _ = writeln!(table, "{:>7.1}  {} {}", test.seconds, test.suite, test.name);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(name: &str, begin: u64, end: u64) -> Span {
        Span {
            name: name.to_owned(),
            begin: Duration::from_secs(begin),
            end: Duration::from_secs(end),
        }
    }

    #[test]
    fn a_step_names_the_one_that_it_waited_for_and_a_short_one_has_no_row() {
        let mut spans = [
            span("first", 0, 10),
            span("second", 10, 20),
            span("short", 20, 20),
        ];
        spans[1].begin += Duration::from_millis(100);
        let usage = |_: &Span| Usage {
            busy: 9.0,
            idle: 1.0,
        };
        let table = steps(&spans, Duration::from_secs(20), usage);
        let rows: Vec<_> = table.lines().skip(3).collect();
        assert!(rows[0].ends_with("  the whole run"), "{table}");
        assert!(rows[1].ends_with("·  first"), "{table}");
        assert!(rows[2].ends_with("█  second ← first"), "{table}");
        assert_eq!(rows.len(), 3, "{table}");
    }

    #[test]
    fn the_slowest_tests_come_first() {
        let test = |name: &str, seconds| TestTime {
            suite: "crate it".to_owned(),
            name: name.to_owned(),
            seconds,
        };
        let table = slowest(vec![test("fast", 0.5), test("slow", 2.5)]);
        let rows: Vec<_> = table.lines().skip(3).collect();
        assert_eq!(rows, ["    2.5  crate it slow", "    0.5  crate it fast"]);
    }
}

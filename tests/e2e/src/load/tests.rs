//! The generator against a server whose answers are known.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use water_harness::wait_until;

use super::*;

/// A server that answers these statuses in turn; 0 closes the connection instead.
#[derive(Clone)]
struct Server {
    statuses: &'static [u16],
    asked: Arc<AtomicUsize>,
}

impl Server {
    async fn serve(self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut request = [0; 1024];
        while stream.read(&mut request).await? > 0 {
            let number = self.asked.fetch_add(1, Ordering::Relaxed);
            let status = self.statuses[number % self.statuses.len()];
            if status == 0 {
                return Ok(());
            }
            let answer = format!("HTTP/1.1 {status} Status\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await?;
        }
        Ok(())
    }
}

/// Sends a load, until it has got at least 100 of these answers.
async fn report(statuses: &'static [u16], expected: Option<u16>) -> Result<Report> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let water = Water::at(&format!("http://{}", listener.local_addr()?))?;
    let asked = Arc::<AtomicUsize>::default();
    let server = Server {
        statuses,
        asked: Arc::clone(&asked),
    };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(server.clone().serve(stream));
        }
    });
    let load = Load {
        expected,
        ..Load::evenly(&water, 200, vec!["key".to_owned()], &["/"])
    };
    let enough = wait_until("100 requests", Duration::from_secs(60), async || {
        let asked = asked.load(Ordering::Relaxed);
        ensure!(asked >= 100, "{asked}");
        Ok(())
    });
    let (_, mut report) = send_during(load, enough).await?;
    // The failures are the server's.
    report.standstills.clear();
    Ok(report)
}

#[tokio::test]
async fn every_request_is_accounted_for() -> Result<()> {
    let report = report(&[200, 304, 429, 503, 0], Some(429)).await?;
    assert!(report.sent >= 100, "{report}");
    assert_eq!(report.sent, report.ok + report.expected + report.failed);
    assert!(
        report.ok > report.expected && report.failed > report.expected,
        "{report}"
    );
    Ok(())
}

#[tokio::test]
async fn one_failure_is_shown() -> Result<()> {
    let report = report(&[500], None).await?;
    let error = report.without_failures().unwrap_err().to_string();
    assert!(error.contains("/: 500"), "{error}");
    Ok(())
}

#[tokio::test]
async fn an_answer_that_was_not_expected_is_a_failure() -> Result<()> {
    let report = report(&[429], None).await?;
    assert_eq!((report.ok, report.expected), (0, 0));
    assert!(report.failed >= 100);
    Ok(())
}

#[test]
fn the_limit_is_found_to_be_exceeded_only_where_it_can_be_proven() {
    let start = Instant::now();
    let at = |second: u64| start + Duration::from_secs(second);
    let accepted = vec![(at(0), at(1)), (at(10), at(11)), (at(59), at(60))];
    let report = Report {
        accepted,
        ..Report::default()
    };
    assert_eq!(
        report.overfull(2, Duration::from_secs(61)),
        Some(Duration::from_secs(60))
    );
    assert_eq!(report.overfull(2, Duration::from_secs(60)), None);
    assert_eq!(report.overfull(3, Duration::from_secs(61)), None);
}

#[test]
fn a_percentile_is_one_of_the_durations() {
    let durations = [3, 1, 2].map(Duration::from_secs);
    assert_eq!(percentile(&durations, 0.5), Duration::from_secs(2));
    assert_eq!(percentile(&durations, 1.0), Duration::from_secs(3));
    assert_eq!(percentile(&[], 0.5), Duration::ZERO);
}

/// A report of 1 000 requests, of which those failed that were due in these milliseconds, each 10 ms later.
fn with_failures(due: &[u64], status: Option<u16>, standstills: &[(u64, u64)]) -> Report {
    let begun = Instant::now();
    let at = |millis: u64| begun + Duration::from_millis(millis);
    let failure = |due: &u64| Failure {
        due: at(*due),
        failed: at(due + 10),
        status,
        text: format!("due at {due}"),
    };
    let standstill = |&(from, to): &(u64, u64)| Standstill {
        from: at(from),
        to: at(to),
    };
    Report {
        sent: 1000,
        failed: due.len(),
        failures: due.iter().map(failure).collect(),
        standstills: standstills.iter().map(standstill).collect(),
        ..Report::default()
    }
}

#[test]
fn a_failure_is_excused_only_where_it_overlaps_a_standstill_and_nobody_answered() {
    for status in [None, Some(503)] {
        let excused = with_failures(&[95, 100, 699], status, &[(100, 700)]);
        excused.without_failures().unwrap();
    }
    let report = with_failures(&[85, 600, 700], None, &[(100, 700)]);
    let error = report.without_failures().unwrap_err().to_string();
    assert!(error.contains("due at 85\ndue at 700"), "{error}");
    assert!(!error.contains("due at 600"), "{error}");
    for status in [401, 404, 429, 500] {
        let answered = with_failures(&[600], Some(status), &[(100, 700)]);
        answered.without_failures().unwrap_err();
    }
}

#[test]
fn a_failure_after_a_minute_is_excused_only_by_what_its_first_ten_seconds_saw() {
    let after_a_minute = |status, standstill| {
        let mut report = with_failures(&[0], status, &[standstill]);
        report.failures[0].failed = report.failures[0].due + PATIENCE;
        report.without_failures()
    };
    for status in [None, Some(503)] {
        after_a_minute(status, (9_900, 10_500)).unwrap();
        after_a_minute(status, (10_000, 59_000)).unwrap_err();
    }
}

#[test]
fn a_machine_that_stands_still_often_or_for_many_requests_measures_nothing() {
    let many: Vec<u64> = (100..111).collect();
    let standstills: Vec<_> = (0..4).map(|n| (n * 1000, n * 1000 + 600)).collect();
    for report in [
        with_failures(&many, None, &[(100, 700)]),
        with_failures(&[100], None, &standstills),
    ] {
        let error = report.without_failures().unwrap_err().to_string();
        assert!(error.starts_with("could not be measured"), "{error}");
        assert!(error.contains("due at 100"), "{error}");
    }
    let nothing_failed = with_failures(&[], None, &standstills);
    nothing_failed.without_failures().unwrap();
}

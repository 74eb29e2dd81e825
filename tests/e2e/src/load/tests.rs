//! The generator against a server whose answers are known.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;

/// Starts a server that answers these statuses in turn; 0 closes the connection instead.
async fn server(statuses: &'static [u16]) -> Result<Water> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let turn = Arc::new(Mutex::new(statuses.iter().cycle()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&turn)));
        }
    });
    Water::at(&format!("http://{address}"))
}

async fn serve(
    mut stream: TcpStream,
    turn: Arc<Mutex<std::iter::Cycle<std::slice::Iter<'static, u16>>>>,
) -> std::io::Result<()> {
    let mut request = [0; 1024];
    while stream.read(&mut request).await? > 0 {
        let status = lock(&turn).next().copied().unwrap_or_default();
        if status == 0 {
            return Ok(());
        }
        let answer = format!("HTTP/1.1 {status} Status\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

fn load(water: Water, expected: Option<u16>) -> Load {
    Load {
        expected,
        ..Load::evenly(&water, 200, vec!["key".to_owned()], &["/"])
    }
}

#[tokio::test]
async fn every_request_is_accounted_for() -> Result<()> {
    let load = load(server(&[200, 304, 429, 503, 0]).await?, Some(429));
    let report = send_for(load, Duration::from_millis(500)).await?;
    // 100, and a busy machine is late.
    assert!((50..=200).contains(&report.sent), "{report}");
    assert_eq!(report.sent, report.ok + report.expected + report.failed);
    assert!(
        report.ok > report.expected && report.failed > report.expected,
        "{report}"
    );
    Ok(())
}

#[tokio::test]
async fn one_failure_is_shown() -> Result<()> {
    let report = send_for(
        load(server(&[500]).await?, None),
        Duration::from_millis(200),
    )
    .await?;
    let error = report.without_failures().unwrap_err().to_string();
    assert!(error.contains("/: 500"), "{error}");
    Ok(())
}

#[tokio::test]
async fn an_answer_that_was_not_expected_is_a_failure() -> Result<()> {
    let report = send_for(
        load(server(&[429]).await?, None),
        Duration::from_millis(200),
    )
    .await?;
    assert_eq!((report.ok, report.expected), (0, 0));
    assert!(report.failed > 0);
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

//! Bulk pages of a database that is slow by the service's clock, which the test sets. PostgreSQL is held up in the
//! middle of a page meanwhile.

use std::sync::mpsc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{advance, pause};
use water_database::writer::History;
use water_harness::Answer;
use water_harness::postgres_proxy::{Fault, Moment, Point, PostgresProxy};
use water_kit::{Database, Running, problem, rows};

use crate::bulk::ids;
use crate::{ANALYSES, bulk, link, start};

/// A page that has room for the whole history.
const WHOLE: &str = "/api/v1/hydrorisk?limit=5000";

/// Time of a portion: the service waits for one that takes so long. It waits for a page with two of them, and not for
/// one with three.
const SLOW: Duration = Duration::from_secs(2);

/// The service behind a proxy, with 1 200 analyses of `acme`, on a clock that stands still.
struct Site {
    service: Running,
    proxy: PostgresProxy,
    /// Keeps the clock from going on by itself.
    _clock: mpsc::Sender<()>,
}

impl Site {
    async fn start() -> Self {
        let database = Database::new().await;
        let mut loader = database.writer().await;
        loader.history(History::Analyses, &rows(1200)).await;
        let proxy = PostgresProxy::before(database.address()).await.unwrap();
        // PostgreSQL has a clock of its own: without a limit there, the machine's time decides nothing.
        proxy.rewrite("statement_timeout = 2000", "statement_timeout = 0000");
        let url = database.url_through(proxy.address(), "water_reader");
        let service = start(&url).ready().await;
        Self {
            service,
            proxy,
            _clock: stop_clock(),
        }
    }

    /// Waits until the service asks for the portion behind this row, and lets time pass before PostgreSQL hears of it.
    async fn delay_behind(&self, row: &'static str) {
        let behind = Point::Text(row);
        self.proxy.stop_at(behind, Moment::Before, Fault::Hold);
        self.proxy.go_on();
        self.proxy.reached().await;
        advance(SLOW).await;
    }

    /// Requests a page that takes four seconds, of which each of these rows costs two.
    async fn slow_page(&self, method: &str, target: &str, slow: [&'static str; 2]) -> Answer {
        let slowly = async {
            for row in slow {
                self.delay_behind(row).await;
            }
            self.proxy.go_on();
        };
        let headers = [("X-Water-Format", "csv")];
        // The proxy is told first.
        let page = self.service.request(method, target, &headers);
        let ((), page) = tokio::join!(slowly, page);
        page
    }
}

/// Stops the clock: only [`advance`] moves it on, until the result is dropped. Paused time alone would jump to the next
/// deadline while everything waits for PostgreSQL; it does not while a blocking task goes on.
fn stop_clock() -> mpsc::Sender<()> {
    let (running, stopped) = mpsc::channel::<()>();
    spawn_blocking(move || stopped.recv());
    pause();
    running
}

fn all() -> Vec<String> {
    rows(1200).into_iter().map(|row| row.id).collect()
}

#[tokio::test]
async fn a_page_that_takes_long_has_all_of_its_rows() {
    let site = Site::start().await;
    let page = site.slow_page("GET", WHOLE, ["r0099", "r0599"]).await;
    assert_eq!((ids(&page), link(&page, "next")), (all(), None));
    let page = site.slow_page("GET", ANALYSES, ["r0099", "r0899"]).await;
    assert_eq!(ids(&page), all()[..1000]);
    assert!(link(&page, "next").is_some());
}

#[tokio::test]
async fn a_page_that_takes_too_long_is_503_and_has_all_rows_when_it_is_asked_for_again() {
    let site = Site::start().await;
    let slowly = async {
        for row in ["r0099", "r0199", "r0299"] {
            site.delay_behind(row).await;
        }
    };
    let ((), refused) = tokio::join!(slowly, bulk(&site.service, WHOLE, "csv"));
    let (status, code, _) = problem(&refused);
    assert_eq!((status, code), (503, "dependency_unavailable".into()));
    assert_eq!(refused.header("retry-after"), Some("2"));
    let detail = refused.json().unwrap()["detail"].to_string();
    assert!(detail.contains("with a smaller limit"), "{detail}");
    site.proxy.go_on();
    let page = bulk(&site.service, WHOLE, "csv").await;
    assert_eq!((ids(&page), link(&page, "next")), (all(), None));
}

#[tokio::test]
async fn head_says_what_get_says_however_long_either_takes() {
    let site = Site::start().await;
    let first = bulk(&site.service, "/api/v1/hydrorisk?limit=400", "csv").await;
    let second = link(&first, "next").unwrap();
    for (target, slow) in [
        (WHOLE, ["r0099", "r0599"]),
        (second.as_str(), ["r0499", "r0599"]),
    ] {
        let head = site.slow_page("HEAD", target, slow).await;
        let get = bulk(&site.service, target, "csv").await;
        assert_eq!((head.status, get.status), (200, 200));
        for name in ["etag", "content-length", "link", "x-total-count"] {
            assert_eq!(head.header(name), get.header(name), "{name} of {target}");
        }
        let length = get.body.len().to_string();
        assert_eq!(head.header("content-length"), Some(length.as_str()));
    }
}

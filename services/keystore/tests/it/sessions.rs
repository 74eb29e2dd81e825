//! Browser sessions: found by three names, ended by each, and by time.

use std::time::Duration;

use tokio::time::Instant;
use water_domain::Timestamp;
use water_harness::{Interceptor, Redis};
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, SessionKeys, SessionStart, Sessions, WebName};

use crate::site::{Site, patiently};

/// Longer than any session of these tests lasts.
pub const HOURS: Duration = Duration::from_hours(8);

/// Sessions of a new instance on the server that all tests share.
async fn sessions() -> (Sessions, Site) {
    let site = Site::new().await;
    let connection = site.connection().await;
    (Sessions::new(connection, site.instance.clone()), site)
}

/// The same sessions through an interceptor, over a connection that is there already.
pub async fn watched(site: &Site) -> (Sessions, Interceptor) {
    let redis = Redis::shared().await.unwrap();
    let mut interceptor = Interceptor::default();
    let before = interceptor.before_redis(redis.address()).await.unwrap();
    let url = redis.url();
    let through = url.replace(&redis.address().to_string(), &before.to_string());
    assert_ne!(url, through);
    let settings = ConnectionSettings::new(&through, None).unwrap();
    let connection = settings.connect(Purpose::Directory);
    let sessions = Sessions::new(connection, site.instance.clone());
    let check = async || Ok(sessions.check().await?);
    patiently(check).await.unwrap();
    (sessions, interceptor)
}

pub fn keys(session: &str, subject: &str, provider: Option<&str>) -> SessionKeys {
    let name = |text: &str| WebName::digest(text.as_bytes());
    SessionKeys {
        session: name(session),
        subject: name(subject),
        provider: provider.map(name),
    }
}

pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000).unwrap()
}

async fn begin(sessions: &Sessions, keys: &SessionKeys, seconds: i64) {
    let begun = sessions.begin(keys, b"sealed", began(seconds), HOURS);
    assert!(begun.await.unwrap());
}

/// A sign-in that took no time.
fn began(seconds: i64) -> SessionStart {
    SessionStart {
        asked: at(seconds),
        signed_in: at(seconds),
    }
}

async fn end_of_subject(sessions: &Sessions, keys: &SessionKeys) -> usize {
    let ended = sessions.end_of_subject(&keys.subject, at(60), HOURS);
    ended.await.unwrap()
}

pub async fn lives(sessions: &Sessions, keys: &SessionKeys) -> bool {
    sessions.read(&keys.session).await.unwrap().is_some()
}

/// Milliseconds that a key of Redis has left.
async fn left(key: &str) -> i64 {
    let redis = Redis::shared().await.unwrap();
    redis
        .command(&["PTTL", key])
        .await
        .unwrap()
        .trim()
        .trim_start_matches(':')
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_session_reads_back_until_it_is_ended() {
    let (sessions, _) = sessions().await;
    let anna = keys("a", "anna", Some("sid"));
    begin(&sessions, &anna, 0).await;
    let read = sessions.use_and_read(&anna.session).await.unwrap();
    assert_eq!(read.unwrap(), b"sealed");
    sessions.end(&anna).await.unwrap();
    assert!(!lives(&sessions, &anna).await);
    assert_eq!(end_of_subject(&sessions, &anna).await, 0);
}

#[tokio::test]
async fn the_sessions_of_a_subject_end_together_and_no_others() {
    let (sessions, _) = sessions().await;
    let (one, two) = (keys("a", "anna", None), keys("b", "anna", Some("sid")));
    let other = keys("c", "bert", None);
    for (keys, seconds) in [(&one, 0), (&two, 1), (&other, 2)] {
        begin(&sessions, keys, seconds).await;
    }
    assert_eq!(end_of_subject(&sessions, &one).await, 2);
    assert!(!lives(&sessions, &one).await && !lives(&sessions, &two).await);
    assert!(lives(&sessions, &other).await);
}

#[tokio::test]
async fn the_providers_session_ends_what_came_of_it_and_no_more() {
    let (sessions, _) = sessions().await;
    let (one, two) = (keys("a", "anna", Some("s1")), keys("b", "anna", Some("s2")));
    begin(&sessions, &one, 0).await;
    begin(&sessions, &two, 1).await;
    let provider = one.provider.unwrap();
    let ended = sessions.end_of_provider(&provider, at(60), HOURS);
    assert_eq!(ended.await.unwrap(), 1);
    assert!(!lives(&sessions, &one).await && lives(&sessions, &two).await);
}

#[tokio::test]
async fn the_eleventh_living_session_of_a_subject_ends_the_oldest() {
    let (sessions, _) = sessions().await;
    let number = |number: i64| keys(&format!("s{number}"), "anna", None);
    for seconds in 0..10 {
        begin(&sessions, &number(seconds), seconds).await;
    }
    sessions.end(&number(3)).await.unwrap();
    begin(&sessions, &number(10), 10).await;
    assert!(lives(&sessions, &number(0)).await, "nine and one are ten");
    begin(&sessions, &number(11), 11).await;
    assert!(!lives(&sessions, &number(0)).await);
    assert!(lives(&sessions, &number(1)).await && lives(&sessions, &number(11)).await);
}

#[tokio::test]
async fn only_use_puts_off_the_end_of_an_idle_session() {
    let (sessions, site) = sessions().await;
    let redis = Redis::shared().await.unwrap();
    let anna = keys("a", "anna", None);
    begin(&sessions, &anna, 0).await;
    let key = site.instance.session(anna.session);
    let at_first = left(&key).await;
    assert!((1..=1_800_000).contains(&at_first), "{at_first}");
    redis.command(&["PEXPIRE", &key, "600000"]).await.unwrap();
    assert!(lives(&sessions, &anna).await);
    assert!(left(&key).await <= 600_000, "reading is no use");
    let begun = Instant::now();
    sessions.use_and_read(&anna.session).await.unwrap();
    let left = left(&key).await;
    let since = begun.elapsed().as_millis() as i64;
    assert!(left <= 1_800_000 && left + since >= 1_799_000, "{left}");
}

#[tokio::test]
async fn a_session_is_listed_for_as_long_as_it_may_last() {
    let (sessions, site) = sessions().await;
    let anna = keys("a", "anna", Some("sid"));
    begin(&sessions, &anna, 0).await;
    for (name, kind) in [(anna.subject, "u"), (anna.provider.unwrap(), "i")] {
        let left = left(&format!("wd:web:{{{name}}}:{}:{kind}", site.instance)).await;
        assert!(left > 7 * 3_600_000, "{kind}: {left}");
    }
}

#[tokio::test]
async fn what_is_taken_once_cannot_be_taken_again() {
    let (sessions, _) = sessions().await;
    let (one, other) = (WebName::digest(b"one"), WebName::digest(b"other"));
    assert!(sessions.take(&one, HOURS).await.unwrap());
    assert!(!sessions.take(&one, HOURS).await.unwrap());
    assert!(sessions.take(&other, HOURS).await.unwrap());
}

#[tokio::test]
async fn two_instances_do_not_see_each_others_sessions() {
    let ((one, _), (other, _)) = (sessions().await, sessions().await);
    let anna = keys("a", "anna", None);
    begin(&one, &anna, 0).await;
    assert!(!lives(&other, &anna).await);
    assert_eq!(end_of_subject(&other, &anna).await, 0);
    assert!(lives(&one, &anna).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_about_to_begin_beside_another_stays_within_reach() {
    let (direct, site) = sessions().await;
    let (through, interceptor) = watched(&site).await;
    let (one, other) = (keys("a", "anna", None), keys("b", "anna", None));
    let (runtime, beside) = (tokio::runtime::Handle::current(), direct.clone());
    let mut done = false;
    interceptor.show(move |_, request| {
        if !done && String::from_utf8_lossy(request).contains("\r\nSET\r\n") {
            done = true;
            let beside = beside.clone();
            let beginning = async move { begin(&beside, &other, 1).await };
            tokio::task::block_in_place(|| runtime.block_on(beginning));
        }
    });
    begin(&through, &one, 0).await;
    assert_eq!(end_of_subject(&direct, &one).await, 2);
    assert!(!lives(&direct, &one).await);
}

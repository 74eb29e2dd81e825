//! Faults of PostgreSQL while both services are queried: a page of a history is correct, or refused with 503 in time,
//! and correct again within 5 s of the fault's end; départements are never affected. Times are judged where nothing
//! else runs.

mod disk;
pub mod site;

use std::cell::Cell;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::Instant;
use water_harness::{Network, Postgres, Proxy};
use water_kit::SOON;

use crate::server_faults::site::{Hogs, Site};
use crate::{ANALYSES, start};

#[tokio::test]
async fn fault_28_a_restart_is_over_within_5_seconds() {
    let site = Site::on(Postgres::start().await.unwrap()).await;
    let readers = site.readers().await;
    let server = site.database.server.process();
    // SIGINT is PostgreSQL's fast shutdown: it does not wait for its clients.
    server.signal(Signal::SIGINT).unwrap();
    server.ended(SOON).await.unwrap();
    site.until_refused().await;
    site.database.server.start_again().await.unwrap();
    site.until_served().await;
    readers.stop().await.assert_in_time();
}

/// Gives the network to the server this fault, and then none. The proxy needs another thread than the test's, which
/// waits at its end for the server's sessions to end.
async fn survives(network: Network) {
    let postgres = Postgres::start().await.unwrap();
    let way = (std::net::Ipv4Addr::LOCALHOST, postgres.port()).into();
    let proxy = Proxy::before(way).await.unwrap();
    let site = Site::through(postgres, Some(proxy.address())).await;
    let readers = site.readers().await;
    proxy.set(network);
    site.until_refused().await;
    proxy.set(Network::Good);
    site.until_served().await;
    readers.stop().await.assert_in_time();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_28_a_server_that_falls_silent_is_not_waited_for_and_served_from_when_it_speaks() {
    survives(Network::BlackHole).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_28_a_server_that_answers_late_is_not_waited_for_and_served_from_when_it_is_quick() {
    survives(Network::Delay(Duration::from_secs(3))).await;
}

/// Each piece of an answer arrives soon; only the whole is late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_28_a_server_whose_answers_trickle_is_not_waited_for_and_served_from_when_they_flow()
{
    survives(Network::Rate(500)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_only_slower_is_waited_for() {
    let postgres = Postgres::start().await.unwrap();
    let way = (std::net::Ipv4Addr::LOCALHOST, postgres.port()).into();
    let proxy = Proxy::before(way).await.unwrap();
    let site = Site::through(postgres, Some(proxy.address())).await;
    proxy.set(Network::Delay(Duration::from_millis(100)));
    let readers = site.readers().await;
    site.until_served().await;
    readers.stop().await.assert_uninterrupted();
}

#[tokio::test]
async fn fault_28_a_server_without_a_free_connection_refuses_and_serves_when_there_is_one() {
    let postgres = Postgres::start_with(&["max_connections=20"]).await.unwrap();
    let site = Site::on(postgres).await;
    let readers = site.readers().await;
    let mut hogs = Hogs::default();
    site.until_crowded_out(&mut hogs).await;
    drop(hogs);
    site.until_served().await;
    readers.stop().await.assert_in_time();
}

#[tokio::test]
async fn a_password_that_is_changed_ends_no_connection_that_is_open() {
    let site = Site::on(Postgres::start().await.unwrap()).await;
    let database = &site.database;
    database.sql("ALTER ROLE water_reader PASSWORD 'first'");
    // Reloads the rules, by which the reader needs its password.
    let rules = database.sql("SHOW hba_file");
    database.sql(&format!(
        "COPY (VALUES ('host all water_reader all scram-sha-256'), ('host all all all trust')) TO '{rules}'"
    ));
    database.sql("SELECT pg_reload_conf()");
    let url = |password: &str| database.url_as(&format!("water_reader:{password}"));
    let before = database.sql("SELECT clock_timestamp()");
    let open = start(&url("first")).ready().await;
    let asked = Cell::new(0);
    // On a busy machine one may wait longer for a connection than the service does: it is sent again.
    let served = async || {
        loop {
            asked.set(asked.get() + 1);
            match open.get(ANALYSES).await.status {
                200 => return,
                status => assert_eq!(status, 503),
            }
            assert!(asked.get() < 200, "more than a few of 161 are refused");
        }
    };
    served().await;
    database.sql("ALTER ROLE water_reader PASSWORD 'second'");
    let tries = || {
        let log = database.server.process().log();
        log.matches("password authentication failed").count()
    };
    // All connections were opened before the pod was ready.
    for _ in 0..20 {
        tokio::join!(served(), served(), served(), served());
    }
    assert_eq!(tries(), 0);
    // Another connection would need the password: all wait for the one that is left.
    database.sql(&format!(
        "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE usename = 'water_reader' \
         AND backend_start > '{before}' ORDER BY backend_start OFFSET 1) AS others"
    ));
    let began = Instant::now();
    for _ in 0..20 {
        tokio::join!(served(), served(), served(), served());
    }
    let tries = tries();
    assert!(tries > 0, "no connection was ended");
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap();
    // Three of the first four tries had begun before the password was refused.
    assert!(
        tries <= 3 + seconds,
        "{tries} tries of a password that is refused"
    );
    assert_eq!(start(&url("first")).get(ANALYSES).await.status, 503);
    let rolled = start(&url("second")).ready().await;
    assert_eq!(rolled.get(ANALYSES).await.status, 200);
}

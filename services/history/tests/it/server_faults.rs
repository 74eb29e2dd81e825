//! What may happen to PostgreSQL while both services are asked: a page of a history is right or
//! refused with 503 in time, and right again within 5 s of the end; départements never notice.

mod disk;
pub mod site;

use std::time::Duration;

use nix::sys::signal::Signal;
use water_harness::{Network, Postgres, Proxy};

use crate::fixture::start;
use crate::server_faults::site::{Hogs, Site};

#[tokio::test]
async fn a_restart_is_over_within_5_seconds() {
    let site = Site::on(Postgres::start().await.unwrap()).await;
    let readers = site.readers().await;
    let server = site.postgres.process();
    // SIGINT is PostgreSQL's fast shutdown: it does not wait for its clients.
    server.signal(Signal::SIGINT).unwrap();
    server.ended(Duration::from_secs(20)).await.unwrap();
    site.until_refused().await;
    server.start_again().unwrap();
    site.postgres.ready().await.unwrap();
    site.until_served().await;
    readers.stop().await.assert_in_time();
}

/// The network to the server becomes like this, and good again. The proxy needs another thread than
/// the test's, which waits at its end for the server's sessions to end.
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
async fn a_server_that_falls_silent_is_not_waited_for_and_served_from_when_it_speaks() {
    survives(Network::BlackHole).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_late_is_not_waited_for_and_served_from_when_it_is_quick() {
    survives(Network::Delay(Duration::from_secs(3))).await;
}

/// Each piece of an answer comes soon; only the whole is late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_answers_trickle_is_not_waited_for_and_served_from_when_they_flow() {
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
async fn a_server_without_a_free_connection_refuses_and_serves_when_there_is_one() {
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
    let postgres = &site.postgres;
    let name = site.database.name();
    postgres
        .sql(name, "ALTER ROLE water_reader PASSWORD 'first'")
        .unwrap();
    // The server reads its rules anew: the reader needs its password.
    let rules = postgres.sql(name, "SHOW hba_file").unwrap();
    let demand = format!(
        "COPY (VALUES ('host all water_reader all scram-sha-256'), ('host all all all trust')) TO '{rules}'"
    );
    postgres.sql(name, &demand).unwrap();
    postgres.sql(name, "SELECT pg_reload_conf()").unwrap();
    let url = |password: &str| {
        let role = format!("water_reader:{password}");
        site.database.url_as(&role)
    };
    let open = start(&url("first")).ready().await;
    let served = async || assert_eq!(open.get(site::PAGE).await.status, 200);
    served().await;
    postgres
        .sql(name, "ALTER ROLE water_reader PASSWORD 'second'")
        .unwrap();
    // All at once: a second connection would need the password, so that all wait for the first.
    for _ in 0..20 {
        tokio::join!(served(), served(), served(), served());
    }
    assert_eq!(start(&url("first")).get(site::PAGE).await.status, 503);
    let rolled = start(&url("second")).ready().await;
    assert_eq!(rolled.get(site::PAGE).await.status, 200);
}

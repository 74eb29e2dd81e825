//! Both services through PgBouncer, which pools sessions, while PostgreSQL behind it is restarted.

use std::net::Ipv4Addr;

use nix::sys::signal::Signal;
use water_harness::{PgBouncer, Postgres};
use water_kit::SOON;

use crate::server_faults::site::Site;

#[tokio::test]
async fn services_behind_a_pooler_answer_and_outlive_a_restart_of_the_server() {
    let postgres = Postgres::start().await.unwrap();
    let server = (Ipv4Addr::LOCALHOST, postgres.port()).into();
    let pooler = PgBouncer::before(server, &["water_reader"]).await.unwrap();
    let site = Site::through(postgres, Some(pooler.address())).await;
    let readers = site.readers().await;
    let server = site.database.server.process();
    server.signal(Signal::SIGINT).unwrap();
    server.ended(SOON).await.unwrap();
    site.until_refused().await;
    site.database.server.start_again().await.unwrap();
    site.until_served().await;
    readers.stop().await.assert_in_time();
}

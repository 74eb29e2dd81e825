//! Clients that leave before their answer, which later clients do not notice.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::Instant;
use water_database::writer::History;
use water_kit::{Running, SOON, rows};

use crate::empty;

/// Number of clients, more than there are connections to PostgreSQL.
const CLIENTS: usize = 16;

/// Requests a page until it is served: on a busy machine a client may wait longer for a connection than the service
/// does. If connections were lost, all would wait in vain.
async fn served(service: &Running) {
    let asked = Instant::now();
    loop {
        let answer = service.get("/api/v1/hydrorisk?limit=100").await;
        match answer.status {
            200 => return,
            503 if asked.elapsed() < SOON => {}
            _ => panic!("{answer:?}"),
        }
    }
}

/// Clients that request one page after the other, each on one connection.
fn clients(service: &Arc<Running>) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let service = Arc::clone(service);
        clients.spawn(async move {
            for _ in 0..4 {
                served(&service).await;
            }
        });
    }
    clients
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_leave_cost_no_other_its_answer() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(2000)).await;
    let service = Arc::new(service);
    for _ in 0..15 {
        let mut leaving = clients(&service);
        leaving.join_next().await.unwrap().unwrap();
        leaving.abort_all();
        let mut staying = clients(&service);
        while let Some(stayed) = staying.join_next().await {
            stayed.unwrap();
        }
    }
}

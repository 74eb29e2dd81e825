//! Clients that leave before their answer, which later clients do not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;
use tokio::time::Instant;
use water_database::writer::History;
use water_kit::{Running, SOON, rows};

use crate::empty;

/// Number of clients, more than there are connections to PostgreSQL.
const CLIENTS: usize = 16;
/// Number of times that clients leave, and others come.
const ROUNDS: usize = 15;
/// Pages that each client requests.
const PAGES: usize = 4;

/// Requests a page until it is served, and counts refusals.
async fn served(service: &Running, refused: &AtomicUsize) {
    let asked = Instant::now();
    loop {
        let answer = service.get("/api/v1/hydrorisk?limit=100").await;
        match answer.status {
            200 => return,
            503 if asked.elapsed() < SOON => drop(refused.fetch_add(1, Ordering::Relaxed)),
            _ => panic!("{answer:?}"),
        }
    }
}

/// Clients that request one page after the other, each on one connection.
fn clients(service: &Arc<Running>, refused: &Arc<AtomicUsize>) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (service, refused) = (Arc::clone(service), Arc::clone(refused));
        clients.spawn(async move {
            for _ in 0..PAGES {
                served(&service, &refused).await;
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
    let refused = Arc::<AtomicUsize>::default();
    for _ in 0..ROUNDS {
        let mut leaving = clients(&service, &Arc::default());
        leaving.join_next().await.unwrap().unwrap();
        leaving.abort_all();
        let mut staying = clients(&service, &refused);
        while let Some(stayed) = staying.join_next().await {
            stayed.unwrap();
        }
    }
    // On a busy machine a client may wait longer for a connection than the service does.
    let refused = refused.load(Ordering::Relaxed);
    assert!(
        refused * 20 <= ROUNDS * CLIENTS * PAGES,
        "{refused} of them"
    );
}

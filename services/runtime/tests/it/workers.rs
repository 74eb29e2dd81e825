//! Worker threads: one port, several runtimes, one end.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::Result;
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::service::service_fn;
use water_harness::HttpClient;
use water_runtime::shutdown::Stage;
use water_runtime::workers::{Worker, Workers};
use water_runtime::{Connections, DrainOutcome, Server, Shutdown};

use crate::server::LONG;

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

#[tokio::test]
async fn workers_share_a_port_and_drain_together() -> Result<()> {
    let shutdown = Shutdown::default();
    let server = Server::new(Connections::default(), shutdown.clone(), LONG);
    let workers = Workers::start(TWO, ([127, 0, 0, 1], 0).into(), move |worker: Worker| {
        let server = server.clone();
        async move {
            let service = service_fn(move |_| async move {
                let body = Full::new(Bytes::from(worker.index.to_string()));
                Ok::<_, Infallible>(Response::new(body))
            });
            server.serve(worker.listener, |_| service).await
        }
    })
    .unwrap();
    // The kernel picks the worker by the client's port: with 64 ports both are met.
    let mut met = [0, 0];
    for _ in 0..64 {
        let mut client = HttpClient::connect(workers.address()).await?;
        let answer = client.request("GET", "/", &[]).await?;
        met[answer.text()?.parse::<usize>()?] += 1;
    }
    assert!(met[0] > 0 && met[1] > 0, "{met:?}");
    shutdown.advance(Stage::Draining);
    assert_eq!(workers.finish().await?, DrainOutcome { cut: 0 });
    Ok(())
}

#[tokio::test]
async fn the_death_of_a_worker_is_seen() {
    let started = Arc::new(AtomicUsize::new(0));
    let workers = Workers::start(TWO, ([127, 0, 0, 1], 0).into(), move |worker: Worker| {
        let started = Arc::clone(&started);
        async move {
            started.fetch_add(1, Relaxed);
            match worker.index {
                0 => std::future::pending().await,
                _ => panic!("planted"),
            }
        }
    })
    .unwrap();
    let died = workers.finish().await.unwrap_err();
    assert_eq!(died.to_string(), "worker 1 of the request threads died");
}

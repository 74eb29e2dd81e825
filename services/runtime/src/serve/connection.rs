//! A connection from its first byte to its end.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info};

use super::connections::Admission;
use super::pieces::Pieces;
use super::socket::{Socket, StreamSlot, linger};
use super::watch::{Phase, Reason};
use crate::BoxError;
use crate::telemetry::chain;

/// A request's head in bytes; beyond it, and beyond 100 fields, hyper answers 431 without a body.
/// Twice the contract's 16 KiB, which are counted, as its 64 fields, where problems are written.
/// Also what hyper reads ahead on a connection, instead of 408 KiB: a peer that pipelines has shown
/// no key yet, and its buffer stays as large as it once was.
const MAX_HEAD: usize = 32 * 1024;

/// Serves requests until the peer, a deadline, or the process ends the connection.
pub(super) async fn serve<S, B>(stream: TcpStream, admission: Admission, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
{
    let (watch, left) = (Arc::clone(&admission.watch), StreamSlot::default());
    let mut socket = Socket::new(stream, Arc::clone(&watch), left.clone());
    let half_close = admission.limits().half_close;
    if !admission.limits().bodies {
        socket.refuse_fragments();
    }
    let socket = TokioIo::new(socket);
    let admission = Arc::new(admission);
    let place = Arc::clone(&admission);
    let service = service_fn(move |request| {
        let admission = Arc::clone(&place);
        admission.watch.work(Phase::Busy);
        let answer = service.call(request);
        async move {
            let mut response = answer.await?;
            if admission.close_after_answer() {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            admission.watch.work(Phase::Answering);
            let watch = Arc::clone(&admission.watch);
            Ok::<_, S::Error>(response.map(|body| Pieces::new(body, watch)))
        }
    });
    let connection = http1::Builder::new()
        .half_close(half_close)
        .header_read_timeout(None)
        .max_header_size(MAX_HEAD)
        .max_buf_size(MAX_HEAD)
        .serve_connection(socket, service);
    if let Some(reason) = guarded(connection, &admission).await {
        return admission.note(reason);
    }
    let Some(stream) = left.take() else { return };
    watch.enter(Phase::Closing);
    tokio::select! {
        biased;
        // An error says that the peer is gone.
        _ = linger(stream) => {}
        () = watch.asked_to_close() => admission.note(Reason::Evicted),
        () = sleep(admission.limits().linger) => admission.note(Reason::Linger),
    }
}

/// Drives a connection to its end; returns the reason, if we closed it early.
async fn guarded<S, B>(
    connection: http1::Connection<TokioIo<Socket>, S>,
    admission: &Admission,
) -> Option<Reason>
where
    S: hyper::service::HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    B: Body<Error: Into<BoxError>> + 'static,
{
    let (watch, limits) = (&admission.watch, admission.limits());
    let mut connection = pin!(connection);
    let mut timer = pin!(sleep_until(Instant::now() + limits.idle));
    let mut drained = false;
    poll_fn(|context| {
        watch.task.register(context.waker());
        // First what has arrived: a request that came before the wish to close is answered.
        if let Poll::Ready(ended) = connection.as_mut().poll(context) {
            if let Err(error) = ended {
                tell(&error, admission);
            }
            return Poll::Ready(None);
        }
        if watch.closing() {
            return Poll::Ready(Some(Reason::Evicted));
        }
        // A connection that has carried no request gets a moment to send one: its client could not
        // distinguish a refusal from a failure.
        if watch.draining() && !drained && (watch.has_answered() || watch.phase().0 != Phase::Idle)
        {
            drained = true;
            connection.as_mut().graceful_shutdown();
            context.waker().wake_by_ref();
        }
        while let Some((deadline, reason)) = watch.deadline(limits) {
            if deadline < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(deadline);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if deadline <= timer.deadline() {
                return Poll::Ready(Some(reason));
            }
        }
        Poll::Pending
    })
    .await
}

/// Counts and logs an error of hyper, which does not repeat what the peer sent. Bytes that cannot be read are
/// worth a line at the level of the access log, where a readable request leaves one; there is one a
/// connection at most.
fn tell(error: &hyper::Error, admission: &Admission) {
    if error.is_parse() {
        admission.note(Reason::Unreadable);
        info!(error = chain(error), "refused what is no request of HTTP/1");
    } else {
        debug!(error = chain(error), "a connection ended with an error");
    }
}

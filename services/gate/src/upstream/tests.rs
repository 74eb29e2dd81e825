//! The client against a small server whose every byte the test decides.

use std::net::SocketAddr;

use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::interval;
use water_harness::Port;

use super::attempts::EVERY;
use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

/// Makes a listener and a client of it.
async fn service(bounds: Bounds) -> (TcpListener, Upstream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = client_of(listener.local_addr().unwrap(), bounds);
    (listener, upstream)
}

fn client_of(address: SocketAddr, bounds: Bounds) -> Upstream {
    let resolver = Resolver::new(address.to_string().parse().unwrap());
    Upstream::new(Arc::new(resolver), bounds)
}

/// Accepts one connection and answers each request on it with the next of these answers; then closes it.
async fn serve(listener: &TcpListener, answers: &[&str]) {
    let (mut stream, _) = listener.accept().await.unwrap();
    for answer in answers {
        read_head(&mut stream).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
}

fn in_background(
    listener: TcpListener,
    connections: &'static [&'static [&'static str]],
) -> JoinHandle<TcpListener> {
    tokio::spawn(async move {
        for answers in connections {
            serve(&listener, answers).await;
        }
        listener
    })
}

async fn send(upstream: &Upstream) -> Result<Bytes, UpstreamFailure> {
    let request = || Request::new(&Method::GET, "/api/v1/stress");
    upstream
        .send(Instant::now(), &[], request)
        .await
        .map(Response::into_body)
}

/// Sends a request, and returns the reason for its failure.
async fn failure(upstream: &Upstream) -> &'static str {
    send(upstream).await.unwrap_err().reason()
}

#[test]
fn every_exchange_has_the_bounds_that_are_promised() {
    let Bounds {
        connect,
        reconnect,
        answer,
        body,
        concurrent,
    } = Bounds::default();
    assert_eq!(answer, Duration::from_secs(5));
    assert_eq!(EVERY * connect, Duration::from_millis(900));
    assert_eq!(EVERY * reconnect, Duration::from_millis(200));
    assert_eq!(body, 1 << 20);
    assert_eq!(concurrent, 256);
}

#[tokio::test]
async fn a_server_that_says_close_gets_no_further_request_on_that_connection() {
    let (listener, upstream) = service(Bounds::default()).await;
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 2\r\n\r\n{}";
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        read_head(&mut first).await;
        first.write_all(closing.as_bytes()).await.unwrap();
        serve(&listener, &[OK]).await;
    });
    assert_eq!(send(&upstream).await.unwrap(), "{}");
    assert_eq!(send(&upstream).await.unwrap(), "{}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_reused_connection_that_closes_before_an_answer_is_replaced_once() {
    let (listener, upstream) = service(Bounds::default()).await;
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        read_head(&mut first).await;
        first.write_all(OK.as_bytes()).await.unwrap();
        read_head(&mut first).await;
        drop(first);
        serve(&listener, &[OK]).await;
    });
    send(&upstream).await.unwrap();
    assert_eq!(send(&upstream).await.unwrap(), "{}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_reused_connection_that_closes_inside_an_answer_is_no_reason_to_ask_again() {
    let (listener, upstream) = service(Bounds::default()).await;
    let server = in_background(listener, &[&[OK, "HTTP/1.1 200"]]);
    send(&upstream).await.unwrap();
    assert_eq!(failure(&upstream).await, "broken");
    server.await.unwrap();
}

#[tokio::test]
async fn nobody_listening_is_a_failed_connect() {
    let nobody = Port::reserve().unwrap();
    let upstream = client_of(nobody.address(), Bounds::default());
    assert_eq!(failure(&upstream).await, "connect");
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_malformed_or_too_large_is_not_asked_for_again() {
    let chunked =
        |chunks: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
    let endless = format!("1;{}", "x".repeat(64 * 1024));
    let trailers = format!("0\r\n{}", "a: b\r\n".repeat(10_000));
    let length = "HTTP/1.1 200 OK\r\ncontent-length: ";
    for (answer, reason) in [
        (String::new(), "broken"),
        ("HTTP/1.1 200".into(), "broken"),
        (format!("{length}9\r\n\r\n{{"), "broken"),
        (chunked("9\r\n{"), "broken"),
        (chunked("1\r\n{}\r\n0\r\n\r\n"), "broken"),
        (chunked("z\r\n"), "broken"),
        (chunked(&endless), "broken"),
        (chunked(&trailers), "broken"),
        (format!("{length}10\r\n\r\n0123456789"), "too_large"),
        (
            chunked("5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"),
            "too_large",
        ),
    ] {
        let bounds = Bounds {
            body: 9,
            ..Bounds::default()
        };
        let (listener, upstream) = service(bounds).await;
        let beginning: String = answer.chars().take(60).collect();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            // The client may close the connection in the middle of it.
            let _ = stream.write_all(answer.as_bytes()).await;
        });
        assert_eq!(failure(&upstream).await, reason, "{beginning}");
        server.await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_or_never_ends_is_given_up_at_the_deadline() {
    for beginning in ["", "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"] {
        let bounds = Bounds {
            answer: Duration::from_millis(50),
            ..Bounds::default()
        };
        let (listener, upstream) = service(bounds).await;
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // A busy machine may be at the deadline before it has sent the head, and the client gone.
            let _ = stream.read_u8().await;
            let _ = stream.write_all(beginning.as_bytes()).await;
            // Byte by byte until the client closes the connection.
            let mut pace = interval(Duration::from_millis(5));
            while !beginning.is_empty() && stream.write_all(b" ").await.is_ok() {
                pace.tick().await;
            }
            stream
        });
        assert_eq!(failure(&upstream).await, "slow");
        server.await.unwrap();
    }
}

#[tokio::test]
async fn an_old_connection_is_replaced_so_that_new_pods_get_their_share() {
    let (listener, upstream) = service(Bounds::default()).await;
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        read_head(&mut first).await;
        first.write_all(OK.as_bytes()).await.unwrap();
        serve(&listener, &[OK]).await;
        // Kept open until here: the client left it without being closed.
        drop(first);
    });
    send(&upstream).await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    assert_eq!(send(&upstream).await.unwrap(), "{}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_service_that_fails_five_times_is_away_until_it_answers() {
    let port = Port::reserve().unwrap();
    let upstream = client_of(port.address(), Bounds::default());
    // Before any probe is due, however late the test is.
    let now = Instant::now();
    for _ in 0..5 {
        assert!(!upstream.is_away(now));
        assert_eq!(failure(&upstream).await, "connect");
    }
    assert!(upstream.is_away(now));
    let listener = TcpListener::bind(port.address()).await.unwrap();
    let server = in_background(listener, &[&[OK]]);
    assert_eq!(send(&upstream).await.unwrap(), "{}");
    assert!(!upstream.is_away(now));
    server.await.unwrap();
}

#[tokio::test]
async fn a_service_whose_answers_are_too_large_is_not_away() {
    let bounds = Bounds {
        body: 1,
        ..Bounds::default()
    };
    let (listener, upstream) = service(bounds).await;
    let server = in_background(listener, &[&[OK], &[OK], &[OK], &[OK], &[OK], &[OK]]);
    for _ in 0..6 {
        assert_eq!(failure(&upstream).await, "too_large");
        assert!(!upstream.is_away(Instant::now()));
    }
    server.await.unwrap();
}

#[tokio::test]
async fn an_answer_may_come_in_chunks_and_in_any_pieces() {
    let (listener, upstream) = service(Bounds::default()).await;
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
        1;note=x\r\n{\r\n0a\r\n\"a\":\"b\r\nc\"\r\n1\r\n}\r\n0\r\netag: \"late\"\r\n\r\n";
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        for _ in 0..2 {
            read_head(&mut stream).await;
            for byte in chunked.as_bytes() {
                stream.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    for _ in 0..2 {
        assert_eq!(send(&upstream).await.unwrap(), "{\"a\":\"b\r\nc\"}");
    }
    server.await.unwrap();
}

#[tokio::test]
async fn what_follows_an_answer_unasked_answers_nobody() {
    let (listener, upstream) = service(Bounds::default()).await;
    let two = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}\
        HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]";
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        read_head(&mut first).await;
        first.write_all(two.as_bytes()).await.unwrap();
        serve(&listener, &[OK]).await;
    });
    assert_eq!(send(&upstream).await.unwrap(), "{}");
    assert_eq!(send(&upstream).await.unwrap(), "{}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_service_that_closes_an_idle_connection_need_not_wait_for_a_request() {
    let (listener, upstream) = service(Bounds::default()).await;
    let upstreams = Upstreams {
        history: service(Bounds::default()).await.1,
        departements: upstream,
    };
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        stream.read(&mut [0]).await.unwrap()
    });
    send(&upstreams.departements).await.unwrap();
    let read = tokio::select! {
        read = server => read.unwrap(),
        never = upstreams.attend() => match never {},
    };
    assert_eq!(read, 0, "the other side is closed too");
}

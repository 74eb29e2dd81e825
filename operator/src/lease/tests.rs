//! A Lease is renewed in time, goes on with its positions, and is known by its versions.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hyper::http::{Request, Response};
use kube::api::ObjectMeta;
use kube::client::Body;
use tower::service_fn;
use water_keystore::Position;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_renewal_that_was_not_answered_is_tried_again_without_a_pause() {
    let begun = Instant::now();
    let times = Arc::<Mutex<Vec<u64>>>::default();
    let asked = Arc::clone(&times);
    let server = service_fn(move |_: Request<Body>| {
        asked.lock().unwrap().push(begun.elapsed().as_secs());
        pending::<Result<Response<Body>, kube::Error>>()
    });
    let mut leadership = Leadership {
        election: Election::new(Client::new(server, "team"), "team", "operator-0".to_owned()),
        lease: Lease::default(),
        renewed: begun,
        positions: None,
    };
    leadership.lost().await;
    assert_eq!(*times.lock().unwrap(), [2, 7]);
    assert_eq!(begun.elapsed(), RENEW_DEADLINE);
}

/// A leadership whose Lease has an annotation; the API server takes every write, and these are returned.
fn annotated(name: &str, value: &str) -> (Leadership, Arc<Mutex<Vec<Lease>>>) {
    let written = Arc::<Mutex<Vec<Lease>>>::default();
    let writes = Arc::clone(&written);
    let server = service_fn(move |request: Request<Body>| {
        let writes = Arc::clone(&writes);
        async move {
            let body = request.into_body().collect_bytes().await?;
            let lease = serde_json::from_slice(&body).unwrap();
            writes.lock().unwrap().push(lease);
            Ok::<_, kube::Error>(Response::new(Body::from(body)))
        }
    });
    let mut lease = of_version(Some("7"));
    lease.metadata.annotations = Some([(name.to_owned(), value.to_owned())].into());
    let leadership = Leadership {
        election: Election::new(Client::new(server, "team"), "team", "operator-0".to_owned()),
        lease,
        renewed: Instant::now(),
        positions: None,
    };
    (leadership, written)
}

fn at(seq: u64) -> Positions {
    let mut positions = Positions::default();
    let position = Position { generation: 7, seq };
    positions.put("store", position);
    positions
}

#[tokio::test]
async fn each_renewal_and_the_release_leave_the_positions_beside_annotations_of_others() {
    let (mut leadership, written) = annotated("example.org/note", "kept");
    let seq = AtomicU64::new(1);
    leadership.carry(move || at(seq.fetch_add(1, Ordering::Relaxed)));
    assert_eq!(leadership.renew().await.unwrap(), None);
    leadership.release().await;
    let written = written.lock().unwrap();
    assert_eq!(written.len(), 2);
    for (lease, seq) in written.iter().zip(1..) {
        let annotations = lease.annotations();
        assert_eq!(annotations["example.org/note"], "kept");
        assert_eq!(annotations[ANNOTATION], at(seq).encode());
    }
    let holders = [holder(&written[0]), holder(&written[1])];
    assert_eq!(holders, [Some("operator-0"), Some("")]);
}

#[tokio::test]
async fn who_knows_no_positions_keeps_those_that_were_left() {
    let left = at(3).encode();
    let (leadership, written) = annotated(ANNOTATION, &left);
    assert_eq!(leadership.left_positions(), at(3));
    leadership.release().await;
    assert_eq!(written.lock().unwrap()[0].annotations()[ANNOTATION], left);
}

#[tokio::test]
async fn positions_that_are_missing_or_cannot_be_read_are_none() {
    for (name, value) in [("example.org/note", "kept"), (ANNOTATION, "{")] {
        let (leadership, _) = annotated(name, value);
        assert_eq!(leadership.left_positions(), Positions::default(), "{name}");
    }
}

fn of_version(version: Option<&str>) -> Lease {
    Lease {
        metadata: ObjectMeta {
            resource_version: version.map(Into::into),
            ..ObjectMeta::default()
        },
        ..Lease::default()
    }
}

#[test]
fn a_lease_is_earlier_if_its_version_is_the_smaller_number() {
    for (live, written, expected) in [
        (Some("9"), Some("10"), true),
        (Some("10"), Some("10"), false),
        // Somebody has annotated it since.
        (Some("11"), Some("10"), false),
        (Some("100"), Some("99"), false),
        // Longer than 64 bits.
        (
            Some("18446744073709551616"),
            Some("18446744073709551617"),
            true,
        ),
        // What is no number says nothing.
        (Some("nine"), Some("10"), false),
        (Some("9"), Some("ten"), false),
        (None, Some("10"), false),
        (Some("9"), None, false),
        (None, None, false),
    ] {
        let found = is_earlier(&of_version(live), &of_version(written));
        assert_eq!(found, expected, "{live:?} after {written:?}");
    }
}

//! Only the gate's signature opens anything, and its clock may differ from the service's.

use crate::fixture::{NEXT, Signature, problem, with_data};

const PATH: &str = "/api/v1/stress";

#[tokio::test]
async fn a_request_without_an_identity_is_refused_on_every_path() {
    let (service, _) = with_data().await;
    let bearer = [("Authorization", "Bearer something")];
    for path in [
        PATH,
        "/api/v1/risque?dept=34",
        "/api/v1/none",
        "/",
        "/api/v1/stress?dept=%",
    ] {
        for headers in [&[][..], &bearer] {
            let answer = service.raw("GET", path, headers).await;
            let (status, code, _) = problem(&answer);
            assert_eq!((status, code), (401, "invalid_identity".into()), "{path}");
        }
    }
}

#[tokio::test]
async fn an_identity_is_good_for_two_hours_either_way_and_its_distance_is_shown() {
    let (service, _) = with_data().await;
    // Five minutes of leeway beyond the two hours, and half a minute that an identity is for.
    let (earliest, latest) = (-7_470_000, 7_530_000);
    for (expires_in, status) in [
        (earliest - 5_000, 401),
        (earliest + 5_000, 200),
        (latest + 5_000, 401),
        (latest - 5_000, 200),
    ] {
        let signature = Signature {
            expires_in,
            ..Signature::default()
        };
        let identity = signature.value("GET", PATH);
        let answer = service.get_with(PATH, &identity).await;
        assert_eq!(answer.status, status, "{expires_in} ms");
    }
    let metrics = service.admin("/metrics").await;
    let shown = "water_identity_clock_skew_seconds 749";
    assert!(metrics.text().unwrap().contains(shown), "{metrics:?}");
}

#[tokio::test]
async fn the_next_key_is_believed_before_the_gate_signs_with_it() {
    let (service, _) = with_data().await;
    let next = Signature {
        key: NEXT,
        ..Signature::default()
    };
    let answer = service.get_with(PATH, &next.value("GET", PATH)).await;
    assert_eq!(answer.status, 200);
}

//! Identity headers that a service accepts, and those that it rejects.

use super::*;

const NOW: i64 = 1_800_000_000_000;
const TARGET: &str = "/api/v1/hydrorisk?limit=5";

fn key(digit: &str) -> IdentityKey {
    digit.repeat(64).parse().unwrap()
}

fn identity() -> Identity {
    Identity {
        account: "acme.fr".parse().unwrap(),
        key: "0123456789ab".parse().unwrap(),
        plan: "Enterprise".parse().unwrap(),
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn signed() -> HeaderValue {
    Signer::new(&key("a")).sign(&identity(), at(NOW + 30_000), &Method::GET, TARGET)
}

fn verify(
    value: HeaderValue,
    method: Method,
    target: &str,
    now: i64,
) -> Result<VerifiedIdentity, IdentityError> {
    let headers = HeaderMap::from_iter([(X_WATER_IDENTITY, value)]);
    Verifier::new(&key("a"), Some(&key("b"))).verify(&headers, &method, target, at(now))
}

#[test]
fn what_the_gate_signs_a_service_believes() {
    let vouched = |ahead| {
        let identity = identity();
        Ok(VerifiedIdentity { identity, ahead })
    };
    assert_eq!(verify(signed(), Method::GET, TARGET, NOW), vouched(0));
    let next = Signer::new(&key("b")).sign(&identity(), at(NOW), &Method::HEAD, TARGET);
    assert_eq!(verify(next, Method::HEAD, TARGET, NOW), vouched(-30_000));
}

#[test]
fn the_header_is_what_gate_md_says() {
    let text = signed().to_str().unwrap().to_owned();
    let (signed, mac) = text.rsplit_once(";mac=").unwrap();
    let expected = "v1;account=acme.fr;key=0123456789ab;plan=Enterprise;exp=1800000030000";
    assert_eq!((signed, mac.len()), (expected, 64));
}

#[test]
fn another_request_another_key_or_another_account_is_forged() {
    let forged = Err(IdentityError::Forged);
    assert_eq!(verify(signed(), Method::HEAD, TARGET, NOW), forged);
    assert_eq!(
        verify(signed(), Method::GET, "/api/v1/hydrorisk?limit=50", NOW),
        forged
    );
    let stranger = Signer::new(&key("c")).sign(&identity(), at(NOW), &Method::GET, TARGET);
    assert_eq!(verify(stranger, Method::GET, TARGET, NOW), forged);
    let other = signed().to_str().unwrap().replace("acme.fr", "umbrella");
    assert_eq!(
        verify(other.parse().unwrap(), Method::GET, TARGET, NOW),
        forged
    );
}

#[test]
fn clocks_may_differ_by_the_leeway_to_the_millisecond() {
    let leeway = LEEWAY.as_millis() as i64;
    let ahead = |millis| match verify(signed(), Method::GET, TARGET, NOW - millis) {
        Ok(vouched) => Ok(vouched.ahead),
        Err(error) => Err(error),
    };
    let outside = |ahead| Err(IdentityError::OutsideLeeway { ahead });
    for millis in [-leeway, -3_600_000, 11_000, leeway] {
        assert_eq!(ahead(millis), Ok(millis));
    }
    assert_eq!(ahead(-leeway - 1), outside(-leeway - 1));
    assert_eq!(ahead(leeway + 1), outside(leeway + 1));
}

#[test]
fn none_two_or_half_a_header_is_refused() {
    let verifier = Verifier::new(&key("a"), None);
    let check = |headers: &HeaderMap| verifier.verify(headers, &Method::GET, TARGET, at(NOW));
    assert_eq!(check(&HeaderMap::new()), Err(IdentityError::NotOne));
    let mut twice = HeaderMap::from_iter([(X_WATER_IDENTITY, signed())]);
    twice.append(X_WATER_IDENTITY, signed());
    assert_eq!(check(&twice), Err(IdentityError::NotOne));
    for bad in ["", "v1", "v1;account=a;mac=00", "mac="] {
        let headers = HeaderMap::from_iter([(X_WATER_IDENTITY, HeaderValue::from_static(bad))]);
        assert_eq!(check(&headers), Err(IdentityError::Malformed), "{bad}");
    }
}

#[test]
fn keys_and_signers_do_not_print_their_secret() {
    let key = key("d");
    let printed = format!(
        "{key:?} {:?} {:?}",
        Signer::new(&key),
        Verifier::new(&key, None)
    );
    assert_eq!(printed, "IdentityKey Signer Verifier");
    assert_eq!(
        "d".repeat(63).parse::<IdentityKey>(),
        Err(InvalidIdentityKey)
    );
}

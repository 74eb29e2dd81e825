//! Tests of what is believed of a key that status, Secret and spec name.

use water_resources::api_key::Brought;

use super::*;
use crate::sample;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn issued(digits: &str, revision: u32, time: i64) -> Issuance {
    Issuance {
        hash: digits.repeat(32).parse().unwrap(),
        key_id: digits.repeat(6).parse().unwrap(),
        revision,
        time: at(time),
    }
}

/// An ApiKey whose status names this key as the current one.
fn told(current: &Issuance) -> ApiKey {
    let mut key = sample::key("acme", "team");
    key.status = Some(ApiKeyStatus {
        key_id: Some(current.key_id.to_string()),
        current: Some(current.told()),
        ..ApiKeyStatus::default()
    });
    key
}

/// The issue of the current key, where others know these.
fn issue(subject: &Subject, others: &[Issuance]) -> (BTreeMap<KeyHash, Issuance>, Option<Issue>) {
    let issued = subject.issued(others.iter().cloned(), at(7));
    let issue = subject.issue(&issued);
    (issued, issue)
}

/// Somebody wrote it into the status: no raise would replace that key, and no age.
fn planted() -> Issuance {
    Issuance {
        key_id: "planted00000".parse().unwrap(),
        ..issued("ab", 4_000_000_000, i64::from(i32::MAX))
    }
}

#[test]
fn of_status_and_secret_the_one_counts_that_has_the_key_replaced_earlier() {
    let subject = Subject::whole(&told(&planted()));
    let (in_secret, before) = (issued("ab", 1, 5), issued("cd", 0, 0));
    let (known, issue) = issue(&subject, &[before.clone(), in_secret.clone()]);
    let expected = Issuance {
        key_id: planted().key_id,
        ..in_secret
    };
    assert_eq!(known[&expected.hash], expected);
    assert_eq!(known[&before.hash], before);
    let (revision, time) = (1, at(5));
    assert_eq!(issue, Some(Issue { revision, time }));

    let forged = issued("ab", 4_000_000_000, i64::from(i32::MAX));
    let told = issued("ab", 3, 2);
    let known = Subject::whole(&self::told(&told)).issued([forged].into_iter(), at(7));
    assert_eq!(known[&told.hash], told);
}

#[test]
fn a_status_is_believed_of_a_key_that_nothing_else_knows() {
    let current = issued("ab", 3, 5);
    let subject = Subject::whole(&told(&current));
    let (known, issue) = issue(&subject, &[issued("cd", 4, 6)]);
    assert_eq!(known[&current.hash], current);
    let (revision, time) = (3, at(5));
    assert_eq!(issue, Some(Issue { revision, time }));
    let new = Subject::whole(&sample::key("acme", "team"));
    assert_eq!(new.issue(&known), None, "no key yet");
}

#[test]
fn a_brought_key_is_issued_once() {
    let current = issued("ab", 3, 5);
    let mut key = told(&current);
    key.spec.material.generated = None;
    key.spec.material.hash = Some(Brought {
        sha256: current.hash.to_string(),
        key_id: None,
    });
    let (known, issue) = issue(&Subject::whole(&key), &[]);
    assert_eq!(known[&current.hash], current);
    assert_eq!(issue.map(|issue| issue.time), Some(at(5)));
}

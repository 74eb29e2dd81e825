//! What a status announces.

use water_domain::Timestamp;

use super::*;

fn issued(digit: char) -> IssuedKey {
    IssuedKey {
        revision: 0,
        hash: digit.to_string().repeat(64),
        key_id: digit.to_string().repeat(12),
        issued_time: at(0),
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

/// Announces these, one after the other, without revealing any.
fn announce(before: ApiKeyStatus, digits: &str) -> ApiKeyStatus {
    let announce = |status, digit| announced(status, issued(digit), None);
    digits.chars().fold(before, announce)
}

fn ids(keys: &[IssuedKey]) -> String {
    keys.iter().map(|key| &key.key_id[..1]).collect()
}

#[test]
fn what_nobody_saw_stays_announced_the_latest_first() {
    let status = announce(ApiKeyStatus::default(), "abc");
    assert_eq!(status.current, Some(issued('c')));
    assert_eq!(ids(&status.unrevealed), "ba");
}

#[test]
fn one_too_many_is_dropped() {
    let status = announce(ApiKeyStatus::default(), "abcdef0123");
    assert_eq!(ids(&status.unrevealed), "210fedcb");
}

#[test]
fn announcing_the_same_key_again_changes_nothing() {
    let once = announce(ApiKeyStatus::default(), "ab");
    assert_eq!(announce(once.clone(), "b"), once);
}

/// Key a is in force.
fn told() -> ApiKeyStatus {
    ApiKeyStatus {
        current: Some(issued('a')),
        key_id: Some(issued('a').key_id),
        ..ApiKeyStatus::default()
    }
}

#[test]
fn a_key_that_was_revealed_stays_the_current_one_however_many_are_announced() {
    let status = announce(told(), "bc");
    assert_eq!(status.current, Some(issued('a')));
    assert_eq!(ids(&status.unrevealed), "cb");
    assert_eq!(announce(status.clone(), "c"), status);
}

#[test]
fn each_reissue_is_counted_once_whoever_carries_it_through() {
    let reissue = |status, digit, time| {
        let reissue = Reissue {
            key_id: issued(digit).key_id,
            time: at(time),
        };
        announced(status, issued(digit), Some(reissue))
    };
    let counted = |status: &ApiKeyStatus| -> Vec<i64> {
        status
            .reissues
            .iter()
            .map(|reissue| reissue.time.as_millis())
            .collect()
    };
    let begun = reissue(told(), 'b', 1);
    assert_eq!(counted(&begun), [1]);
    let again = reissue(begun, 'c', 2);
    assert_eq!(counted(&again), [2], "the first one was not ended");
    let ended = |mut status: ApiKeyStatus| {
        status.unrevealed.clear();
        status
    };
    let fourth = "def"
        .chars()
        .zip(3..)
        .fold(ended(again), |status, (digit, time)| {
            ended(reissue(status, digit, time))
        });
    assert_eq!(counted(&fourth), [3, 4, 5], "only the last three decide");
}

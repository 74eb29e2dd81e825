//! Tests of the content that is written into a Secret, and of its owner by its metadata.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use water_domain::{KeyPrefix, PlainKey};
use water_resources::ApiKey;
use water_resources::api_key::{DeletionPolicy, GeneratedKey};

use super::metadata::{BASE_URL, SecretMetadata, data, metadata, owner, owner_changes};
use super::*;
use crate::sample;

fn issued(digits: &str) -> Issuance {
    Issuance {
        hash: digits.repeat(32).parse().unwrap(),
        key_id: digits.repeat(6).parse().unwrap(),
        revision: 2,
        time: at(1000),
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

/// The metadata of a Secret with key ab after cd.
fn meta(key: &ApiKey) -> ObjectMeta {
    let (current, before) = (issued("ab"), (issued("cd"), at(5000)));
    let api = sample::api("water-data", "team");
    let SecretMetadata {
        labels,
        annotations,
    } = metadata(key, &current, Some(&before), &api);
    ObjectMeta {
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: owner(key).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

fn edited(key: &ApiKey, annotation: &str, value: &str) -> ObjectMeta {
    let mut meta = meta(key);
    let annotations = meta.annotations.as_mut().unwrap();
    annotations.insert(annotation.into(), value.into());
    meta
}

fn key() -> ApiKey {
    sample::key("acme", "team")
}

#[test]
fn a_secret_tells_its_key_and_the_one_before_it() {
    let SecretLookup::Own(written) = judge(&key().metadata, &meta(&key())) else {
        panic!("not its own");
    };
    assert_eq!(written.issued, Some(issued("ab")));
    assert_eq!(written.retiring, Some((issued("cd"), at(5000))));
}

#[test]
fn a_secret_is_its_own_keys_or_that_of_one_of_the_same_name_or_foreign() {
    let (own, mut restored) = (key(), key());
    restored.metadata.uid = Some("uid-of-another-cluster".into());
    let other = sample::key("other", "team");
    let found = |key: &ApiKey| judge(&key.metadata, &meta(&own));
    assert!(matches!(found(&own), SecretLookup::Own(_)));
    assert!(matches!(found(&restored), SecretLookup::Orphan(_)));
    assert_eq!(found(&other), SecretLookup::Foreign);
    let bare = judge(&own.metadata, &ObjectMeta::default());
    assert_eq!(bare, SecretLookup::Foreign);
}

#[test]
fn annotations_that_name_no_key_are_told_apart_from_anothers() {
    let edited = edited(&key(), CURRENT[1], "too short");
    let SecretLookup::Own(written) = judge(&key().metadata, &edited) else {
        panic!("not its own");
    };
    assert_eq!(written.issued, None);
    let mut restored = key();
    restored.metadata.uid = Some("uid-of-another-cluster".into());
    assert_eq!(judge(&restored.metadata, &edited), SecretLookup::Foreign);
}

#[test]
fn what_an_edit_of_the_spec_or_of_the_secret_changes_is_written_again() {
    let api = sample::api("water-data", "team");
    let is_as_declared = |key: &ApiKey, meta: &ObjectMeta| {
        let SecretLookup::Own(written) = judge(&key.metadata, meta) else {
            panic!("not its own");
        };
        is_as_declared(key, &written, &api)
    };
    let key = key();
    assert!(is_as_declared(&key, &meta(&key)));
    assert!(is_as_declared(
        &key,
        &edited(&key, "backup.example/by", "tool")
    ));
    assert!(!is_as_declared(
        &key,
        &edited(&key, BASE_URL, "http://elsewhere")
    ));
    assert!(!is_as_declared(&retained(), &meta(&key)));
    assert!(is_as_declared(&retained(), &meta(&retained())));
    assert!(!is_as_declared(&key, &meta(&retained())));
}

fn retained() -> ApiKey {
    let mut key = key();
    key.spec.material.generated = Some(GeneratedKey {
        deletion_policy: DeletionPolicy::Retain,
        ..GeneratedKey::default()
    });
    key
}

#[test]
fn an_apikey_owns_its_secret_unless_that_is_retained_and_others_own_it_too() {
    let mut restored = key();
    restored.metadata.uid = Some("uid-of-another-cluster".into());
    let before = owner(&restored).unwrap();
    let own = owner(&key()).unwrap();
    let other = OwnerReference {
        kind: "Application".into(),
        uid: "uid-of-an-application".into(),
        ..before.clone()
    };
    let removed = |owner: &OwnerReference| json!({ "$patch": "delete", "uid": owner.uid });
    let owned = [other.clone(), own.clone()];
    let left = [other, before.clone()];
    assert_eq!(owner_changes(&key(), &owned), [] as [Value; 0]);
    let changes = owner_changes(&key(), &left);
    assert_eq!(changes, [removed(&before), json!(own)]);
    assert_eq!(owner_changes(&retained(), &owned), [removed(&own)]);
    assert_eq!(owner_changes(&retained(), &left), [removed(&before)]);
}

#[test]
fn the_text_is_in_the_data_alone() {
    let plain = PlainKey::generate(&KeyPrefix::default(), &[7; 48]);
    let api = sample::api("water-data", "team");
    let data: BTreeMap<String, _> = data(&plain, &issued("ab"), &api);
    let text = String::from_utf8(data["api-key"].0.clone()).unwrap();
    assert_eq!(text, plain.expose());
    let metadata = serde_json::to_string(&meta(&key())).unwrap();
    assert!(!metadata.contains(&text));
}

fn written() -> SecretData {
    SecretData::written(issued("ab").hash)
}

/// The metadata of a Secret at a version.
fn version_of(version: &str) -> ObjectMeta {
    ObjectMeta {
        resource_version: Some(version.into()),
        ..ObjectMeta::default()
    }
}

#[test]
fn a_secret_that_was_written_counts_until_the_watch_shows_it() {
    let kept = HashCache::default();
    kept.keep("uid", version_of("10"), written());
    let newer = |version| kept.newer("uid", &version_of(version));
    assert!(newer("9").is_some());
    assert_eq!((newer("10"), newer("9")), (None, None));
    let data = |version: &str| kept.data_at("uid", Some(&version.into()));
    assert_eq!((data("10"), data("11")), (Some(written()), None));
}

#[test]
fn who_wrote_which_field_of_a_secret_is_not_kept() {
    let kept = HashCache::default();
    let mut secret = version_of("10");
    secret.managed_fields = Some(Vec::new());
    kept.keep("uid", secret, written());
    let newer = kept.newer("uid", &version_of("9")).unwrap();
    assert_eq!(newer.managed_fields, None);
}

#[test]
fn the_secret_of_an_apikey_that_is_gone_is_forgotten() {
    let kept = HashCache::default();
    kept.keep("uid", version_of("10"), written());
    kept.retain(&HashSet::new());
    assert_eq!(kept.data_at("uid", Some(&"10".into())), None);
}

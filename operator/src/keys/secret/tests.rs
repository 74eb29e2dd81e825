//! What is written into a Secret, and its owner by its metadata.

use std::collections::BTreeMap;

use water_resources::ApiKey;
use water_resources::api_key::{DeletionPolicy, Generated};

use super::metadata::{BASE_URL, SecretMetadata, data, metadata, owners};
use super::*;
use crate::sample;

fn issued(digits: &str) -> Issued {
    Issued {
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
        owner_references: Some(owners(key, &[])),
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
    let Found::Own(written) = judge(&key().metadata, &meta(&key())) else {
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
    assert!(matches!(found(&own), Found::Own(_)));
    assert!(matches!(found(&restored), Found::Orphan(_)));
    assert_eq!(found(&other), Found::Foreign);
    let bare = judge(&own.metadata, &ObjectMeta::default());
    assert_eq!(bare, Found::Foreign);
}

#[test]
fn annotations_that_name_no_key_are_told_apart_from_anothers() {
    let edited = edited(&key(), CURRENT[1], "too short");
    let Found::Own(written) = judge(&key().metadata, &edited) else {
        panic!("not its own");
    };
    assert_eq!(written.issued, None);
    let mut restored = key();
    restored.metadata.uid = Some("uid-of-another-cluster".into());
    assert_eq!(judge(&restored.metadata, &edited), Found::Foreign);
}

#[test]
fn what_an_edit_of_the_spec_or_of_the_secret_changes_is_written_again() {
    let api = sample::api("water-data", "team");
    let is_as_declared = |key: &ApiKey, meta: &ObjectMeta| {
        let Found::Own(written) = judge(&key.metadata, meta) else {
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
    key.spec.material.generated = Some(Generated {
        deletion_policy: DeletionPolicy::Retain,
        ..Generated::default()
    });
    key
}

#[test]
fn an_apikey_owns_its_secret_unless_that_is_retained_and_others_own_it_too() {
    let mut restored = key();
    restored.metadata.uid = Some("uid-of-another-cluster".into());
    let mut before = owners(&restored, &[]);
    before[0].kind = "Application".into();
    before.extend(owners(&restored, &[]));
    let uids = |key: &ApiKey| -> Vec<String> {
        let owners = owners(key, &before);
        owners
            .into_iter()
            .map(|owner| owner.kind + "/" + &owner.uid)
            .collect()
    };
    assert_eq!(
        uids(&key()),
        ["Application/uid-of-another-cluster", "ApiKey/uid-of-acme"]
    );
    assert_eq!(uids(&retained()), ["Application/uid-of-another-cluster"]);
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
    kept.keep("uid", version_of("10"), None);
    let newer = |version| kept.newer("uid", &version_of(version));
    assert!(newer("9").is_some());
    assert_eq!((newer("10"), newer("9")), (None, None));
    let text = |version: &str| kept.text_at("uid", Some(&version.into()));
    assert_eq!((text("10"), text("11")), (Some(None), None));
}

#[test]
fn who_wrote_which_field_of_a_secret_is_not_kept() {
    let kept = HashCache::default();
    let mut written = version_of("10");
    written.managed_fields = Some(Vec::new());
    kept.keep("uid", written, None);
    let newer = kept.newer("uid", &version_of("9")).unwrap();
    assert_eq!(newer.managed_fields, None);
}

#[test]
fn the_secret_of_an_apikey_that_is_gone_is_forgotten() {
    let kept = HashCache::default();
    kept.keep("uid", version_of("10"), None);
    kept.retain(&HashSet::new());
    assert_eq!(kept.text_at("uid", Some(&"10".into())), None);
}

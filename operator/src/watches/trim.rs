//! Metadata of objects that are remembered by the thousand: only what the operator uses is kept.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::ObjectMeta;
use water_resources::ApiKey;
use water_resources::api_key::FINALIZER;

/// The prefix of labels, annotations and finalizers that the operator reads.
const OURS: &str = "waterdata.dev/";
/// Labels or annotations of one object that are kept, more than it ever has.
const NAMES: usize = 32;
/// Bytes of an annotation that is kept: more than the longest, a URL.
const LONGEST: usize = 1024;
/// Owners of one kind that are kept.
const FEW: usize = 4;
/// Labels by which it knows its Secrets and the gates' pods.
const RECOMMENDED: [&str; 3] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/name",
];

/// Drops what the operator never reads, and what is too much. A tenant may give an object more than a megabyte of
/// metadata; and who wrote which field is half of an object's memory. Neither a merge patch nor a PUT of the status
/// changes what it leaves out.
///
/// One foreign finalizer stays, to show that there are others: a patch that writes the whole list has to read it
/// first. Of the owners some stay, ApiKeys before others.
pub fn trim(meta: &mut ObjectMeta) {
    meta.managed_fields = None;
    retain(&mut meta.labels, |name| {
        is_ours(name) || RECOMMENDED.contains(&name)
    });
    retain(&mut meta.annotations, is_ours);
    if let Some(finalizers) = &mut meta.finalizers {
        *finalizers = few(finalizers, |name| name == FINALIZER, 1);
    }
    if let Some(owners) = &mut meta.owner_references {
        *owners = few(owners, is_api_key, FEW);
    }
}

fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

fn is_api_key(owner: &OwnerReference) -> bool {
    owner.kind == ApiKey::kind(&())
}

fn retain(named: &mut Option<BTreeMap<String, String>>, is_kept: impl Fn(&str) -> bool) {
    if let Some(named) = named {
        let mut left = NAMES;
        named.retain(|name, value| {
            let is_kept = is_kept(name) && value.len() <= LONGEST && left > 0;
            left -= usize::from(is_kept);
            is_kept
        });
    }
}

/// Keeps a few of ours, then so many of the others. A list as decoded has room for four and holds one.
fn few<T: Clone>(all: &[T], is_ours: impl Fn(&T) -> bool, others: usize) -> Vec<T> {
    let (ours, theirs): (Vec<&T>, Vec<&T>) = all.iter().partition(|one| is_ours(one));
    let kept = ours.into_iter().take(FEW);
    let mut kept: Vec<T> = kept
        .chain(theirs.into_iter().take(others))
        .cloned()
        .collect();
    kept.shrink_to_fit();
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn our_labels_and_annotations_stay_and_other_peoples_go() {
        let meta = json!({
            "name": "acme",
            "labels": { "waterdata.dev/account": "acme", "app.kubernetes.io/name": "water-gate", "team": "a" },
            "annotations": { "waterdata.dev/key-id": "id", "notes": "long" },
            "finalizers": ["example.com/theirs", "waterdata.dev/revoke", "example.com/another"],
            "managedFields": [{ "manager": "kubectl" }],
        });
        let mut meta: ObjectMeta = serde_json::from_value(meta).unwrap();
        trim(&mut meta);
        let kept = json!({
            "name": "acme",
            "labels": { "waterdata.dev/account": "acme", "app.kubernetes.io/name": "water-gate" },
            "annotations": { "waterdata.dev/key-id": "id" },
            "finalizers": ["waterdata.dev/revoke", "example.com/theirs"],
        });
        assert_eq!(serde_json::to_value(&meta).unwrap(), kept);
    }

    #[test]
    fn what_bears_our_prefix_or_owns_an_object_is_bounded_too() {
        let many = |prefix: &str, value: &str| {
            let entries = (0..2000).map(|number| (format!("{prefix}{number}"), value.to_owned()));
            Some(entries.collect::<BTreeMap<_, _>>())
        };
        let owner = |number: usize| OwnerReference {
            kind: (if number == 1999 {
                "ApiKey"
            } else {
                "ConfigMap"
            })
            .into(),
            name: number.to_string(),
            ..OwnerReference::default()
        };
        let mut meta = ObjectMeta {
            labels: many(OURS, ""),
            annotations: many(OURS, &"n".repeat(LONGEST)),
            finalizers: many(OURS, "").map(|names| {
                let names = names.into_keys();
                names.chain([FINALIZER.to_owned()]).collect()
            }),
            owner_references: Some((0..2000).map(owner).collect()),
            ..ObjectMeta::default()
        };
        trim(&mut meta);
        let owners = meta.owner_references.unwrap();
        assert_eq!(owners[0].kind, "ApiKey");
        let kept = [
            meta.labels.unwrap().len(),
            meta.annotations.unwrap().len(),
            owners.len(),
        ];
        assert_eq!(kept, [NAMES, NAMES, 1 + FEW]);
        assert_eq!(meta.finalizers.unwrap(), [FINALIZER, "waterdata.dev/0"]);
        let notes = [(format!("{OURS}notes"), "n".repeat(LONGEST + 1))].into();
        let mut meta = ObjectMeta {
            annotations: Some(notes),
            ..ObjectMeta::default()
        };
        trim(&mut meta);
        assert_eq!(meta.annotations, Some(BTreeMap::new()));
    }
}

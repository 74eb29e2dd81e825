//! Rules of the platform that stop a write of the portal: quotas, admission policies, webhooks, the end of the
//! namespace. Its administrator has set them, so that none of them is a fault of the portal.

use std::fmt;

use kube::core::Status;

/// Cause of a refusal in a namespace that is being deleted.
const TERMINATING: &str = "NamespaceTerminating";
/// Words of an API server that has just started.
const STARTING: &str = "not yet ready to handle request";
/// The longest name of an object.
const LONGEST: usize = 253;

/// Rule of the platform that a write is against.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// ResourceQuota of this name.
    Quota(String),
    /// Lack of a ResourceQuota, without which the API server gives none of a resource.
    NoQuota,
    /// ValidatingAdmissionPolicy of this name.
    Policy(String),
    /// MutatingAdmissionPolicy of this name.
    MutatingPolicy(String),
    /// Admission webhook of this name.
    Webhook(String),
    /// Deletion of the namespace.
    NamespaceEnds,
}

impl Barrier {
    /// Returns the rule that a refusal names; none where it names none, as for a missing right. Takes a name from the
    /// message and nothing else: the rest may repeat what the object holds.
    pub fn of(status: &Status) -> Option<Self> {
        // A webhook chooses the code of its refusal, perhaps one that says "try again".
        if !(400..500).contains(&status.code) || status.code == 429 {
            return None;
        }
        if ends_namespace(status) {
            return Some(Self::NamespaceEnds);
        }
        let words = without_object(&status.message);
        quota(words)
            .or_else(|| policy(words))
            .or_else(|| mutating_policy(words))
            .or_else(|| webhook(&status.message))
    }
}

impl fmt::Display for Barrier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(name) => write!(formatter, "ResourceQuota {name}"),
            Self::NoQuota => formatter.write_str("no ResourceQuota allows any"),
            Self::Policy(name) => write!(formatter, "ValidatingAdmissionPolicy {name}"),
            Self::MutatingPolicy(name) => write!(formatter, "MutatingAdmissionPolicy {name}"),
            Self::Webhook(name) => write!(formatter, "admission webhook {name}"),
            Self::NamespaceEnds => formatter.write_str("the namespace is being deleted"),
        }
    }
}

/// Whether the API server has just started and refuses what it cannot judge yet.
pub fn is_starting(status: &Status) -> bool {
    status.code == 403 && without_object(&status.message) == STARTING
}

fn ends_namespace(status: &Status) -> bool {
    let details = status.details.as_ref();
    details.is_some_and(|details| {
        let mut causes = details.causes.iter();
        causes.any(|cause| cause.reason == TERMINATING)
    })
}

fn quota(words: &str) -> Option<Barrier> {
    let full = name(words, "exceeded quota: ", ", requested: ");
    // What is used has not been counted yet.
    let new = || name(words, "status unknown for quota: ", ", resources: ");
    let none = words.starts_with("insufficient quota to consume: ");
    let none = none.then_some(Barrier::NoQuota);
    full.or_else(new).map(Barrier::Quota).or(none)
}

fn policy(words: &str) -> Option<Barrier> {
    const BEFORE: &str = "ValidatingAdmissionPolicy '";
    let bound = name(words, BEFORE, "' with binding '");
    let unbound = || name(words, BEFORE, "' denied request: ");
    bound.or_else(unbound).map(Barrier::Policy)
}

/// Returns the policy that changes objects: its message has no object before it.
fn mutating_policy(words: &str) -> Option<Barrier> {
    let bound = name(words, "policy '", "' with binding '");
    let unbound = || name(words, "policy \"", "\" denied request: ");
    bound.or_else(unbound).map(Barrier::MutatingPolicy)
}

fn webhook(message: &str) -> Option<Barrier> {
    let name = name(message, "admission webhook \"", "\" denied the request");
    name.map(Barrier::Webhook)
}

/// Returns the words behind `<resource> "<name>" is forbidden: `. The whole message where it begins otherwise, such as
/// that of an object against its schema: it repeats the value at fault, which could hold these very words.
fn without_object(message: &str) -> &str {
    let is_object = |byte: u8| is_plain(byte) || b"\" ".contains(&byte);
    match message.split_once(" is forbidden: ") {
        Some((object, words)) if object.bytes().all(is_object) => words,
        _ => message,
    }
}

/// Returns the name behind `before`, with which the text begins, and before `after`.
fn name(text: &str, before: &str, after: &str) -> Option<String> {
    let (name, _) = text.strip_prefix(before)?.split_once(after)?;
    let is_name = !name.is_empty() && name.len() <= LONGEST && name.bytes().all(is_plain);
    is_name.then(|| name.to_owned())
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the rule in an answer of Kubernetes 1.33 with this code, reason, message and causes.
    fn named(code: u16, reason: &str, message: &str, causes: &Value) -> Option<Barrier> {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
            "details": {
                "name": "acme-0a1b2c3d4e", "group": "waterdata.dev", "kind": "apikeys",
                "causes": causes,
            },
        });
        Barrier::of(&serde_json::from_value(status).unwrap())
    }

    /// Returns the rule in an answer whose message says that the key is forbidden.
    fn forbidden(words: &str) -> Option<Barrier> {
        let message = format!("apikeys.waterdata.dev \"acme-0a1b2c3d4e\" is forbidden: {words}");
        named(403, "Forbidden", &message, &json!([]))
    }

    fn policy(name: &str) -> Option<Barrier> {
        Some(Barrier::Policy(name.to_owned()))
    }

    #[test]
    fn a_quota_is_known_by_its_name() {
        let quota = Some(Barrier::Quota("probe-quota".to_owned()));
        for words in [
            "exceeded quota: probe-quota, requested: count/apikeys.waterdata.dev=1, \
             used: count/apikeys.waterdata.dev=3, limited: count/apikeys.waterdata.dev=3",
            "status unknown for quota: probe-quota, resources: count/apikeys.waterdata.dev",
        ] {
            assert_eq!(forbidden(words), quota, "{words}");
        }
        let none = "insufficient quota to consume: count/apikeys.waterdata.dev";
        assert_eq!(forbidden(none), Some(Barrier::NoQuota));
    }

    #[test]
    fn an_admission_policy_is_known_by_its_name_whatever_its_reason() {
        let words = "ValidatingAdmissionPolicy 'keys.example' with binding 'keys-here' denied request: \
                     acme's \"Nightly import\" is forbidden: exceeded quota: other, requested: 1";
        assert_eq!(forbidden(words), policy("keys.example"));
        let message = format!("apikeys.waterdata.dev \"acme-0a1b2c3d4e\" is forbidden: {words}");
        let causes = json!([{ "message": words }]);
        for (code, reason) in [
            (422, "Invalid"),
            (401, "Unauthorized"),
            (413, "RequestEntityTooLarge"),
        ] {
            let known = named(code, reason, &message, &causes);
            assert_eq!(known, policy("keys.example"), "{reason}");
        }
        let bare =
            "ValidatingAdmissionPolicy 'keys.example' denied request: failed expression: false";
        assert_eq!(
            named(422, "Invalid", bare, &json!([])),
            policy("keys.example")
        );
    }

    #[test]
    fn a_policy_that_changes_objects_is_known_by_its_name() {
        let known = Some(Barrier::MutatingPolicy("keys.example".to_owned()));
        for message in [
            "policy 'keys.example' with binding 'keys-here' denied request: no such key",
            r#"policy "keys.example" denied request: no such key"#,
        ] {
            for (code, reason) in [(403, "Forbidden"), (422, "Invalid")] {
                let named = named(code, reason, message, &json!([]));
                assert_eq!(named, known, "{message}");
            }
        }
    }

    #[test]
    fn a_webhook_is_known_by_its_name_whatever_its_code() {
        let webhook = Some(Barrier::Webhook("validate.keys.example".to_owned()));
        for (code, message) in [
            (
                403,
                r#"admission webhook "validate.keys.example" denied the request: no keys on Fridays"#,
            ),
            (
                400,
                r#"admission webhook "validate.keys.example" denied the request without explanation"#,
            ),
            (
                409,
                r#"admission webhook "validate.keys.example" denied the request: Conflict"#,
            ),
        ] {
            assert_eq!(named(code, "", message, &json!([])), webhook, "{code}");
        }
    }

    #[test]
    fn the_end_of_a_namespace_is_known_by_its_cause() {
        let message = "apikeys.waterdata.dev \"acme-0a1b2c3d4e\" is forbidden: unable to create new content in \
                       namespace water because it is being terminated";
        let cause = json!({
            "reason": "NamespaceTerminating", "field": "metadata.namespace",
            "message": "namespace water is being terminated",
        });
        let known = named(403, "Forbidden", message, &json!([cause]));
        assert_eq!(known, Some(Barrier::NamespaceEnds));
        assert_eq!(named(403, "Forbidden", message, &json!([])), None);
    }

    #[test]
    fn a_missing_right_a_broken_schema_and_what_may_pass_name_no_rule() {
        let right = "User \"system:serviceaccount:water:water-data-portal\" cannot create resource \"apikeys\" in \
                     API group \"waterdata.dev\" in the namespace \"water\"";
        assert_eq!(forbidden(right), None);
        let without_name = format!("apikeys.waterdata.dev is forbidden: {right}");
        assert_eq!(named(403, "Forbidden", &without_name, &json!([])), None);
        // The value is a reader's own title.
        let schema = "ApiKey.waterdata.dev \"acme-0a1b2c3d4e\" is invalid: spec.description: Invalid value: \
                      \"a is forbidden: exceeded quota: mine, requested: 1\": too long";
        assert_eq!(named(422, "Invalid", schema, &json!([])), None);
        for words in [
            "exceeded quota: , requested: 1",
            "exceeded quota: Nightly import, requested: 1",
            "exceeded quota: probe-quota",
            "the ValidatingAdmissionPolicy 'keys.example' with binding 'b' denied request: no",
        ] {
            assert_eq!(forbidden(words), None, "{words}");
        }
        let denied = r#"admission webhook "validate.keys.example" denied the request: later"#;
        for code in [0, 429, 500, 503] {
            assert_eq!(named(code, "", denied, &json!([])), None, "{code}");
        }
    }

    #[test]
    fn what_is_logged_of_a_rule_is_its_kind_and_its_name() {
        for (barrier, text) in [
            (Barrier::Quota("a".to_owned()), "ResourceQuota a"),
            (Barrier::NoQuota, "no ResourceQuota allows any"),
            (
                Barrier::Policy("b".to_owned()),
                "ValidatingAdmissionPolicy b",
            ),
            (
                Barrier::MutatingPolicy("b".to_owned()),
                "MutatingAdmissionPolicy b",
            ),
            (Barrier::Webhook("c.d".to_owned()), "admission webhook c.d"),
            (Barrier::NamespaceEnds, "the namespace is being deleted"),
        ] {
            assert_eq!(barrier.to_string(), text);
        }
    }
}

//! Tests of the admission of ApiKeys, and of the messages for those that are not admitted.

use serde_json::json;

use super::*;
use crate::clock;
use crate::conditions::{ConditionType, Finding, stated};
use crate::sample;

fn key() -> ApiKey {
    sample::key("acme", "team")
}

fn api(name: &str, namespace: &str, rules: serde_json::Value) -> WaterDataApi {
    let mut api = sample::api(name, namespace);
    api.spec.api_keys = serde_json::from_value(rules).unwrap();
    api
}

fn own() -> WaterDataApi {
    api("water-data", "team", json!({}))
}

fn resolved(key: &ApiKey, apis: &[WaterDataApi]) -> Result<String, (Reason, String)> {
    let resolved = resolve(key, key.issued_at(), &Labels::new(), apis, Scope::Cluster);
    let resolved = resolved.map(|place| format!("{}/{}", place.namespace, place.name));
    resolved.map_err(|refusal| (refusal.reason, refusal.message))
}

/// Admission of the key in a namespace with this label.
fn admitted(
    key: &ApiKey,
    label: &str,
    api: &WaterDataApi,
    scope: Scope,
) -> Result<(), (Reason, String)> {
    let labels = label.split_once('=').into_iter();
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let admitted = admit(key, &labels.collect(), api, scope);
    admitted.map_err(|refusal| (refusal.reason, refusal.message))
}

#[test]
fn the_only_api_that_admits_the_namespace_is_taken_once_and_for_all() {
    let mut key = key();
    let apis = [own(), api("other", "elsewhere", json!({}))];
    assert_eq!(resolved(&key, &apis).as_deref(), Ok("team/water-data"));
    let first = ApiName {
        namespace: "water".into(),
        name: "first".into(),
    };
    key.status = Some(water_resources::ApiKeyStatus {
        api: Some(first),
        ..Default::default()
    });
    assert_eq!(resolved(&key, &apis).as_deref(), Ok("water/first"));
}

#[test]
fn a_name_that_follows_a_status_that_lied_moves_no_key() {
    let place = |name: &str| ApiName {
        namespace: "team".into(),
        name: name.into(),
    };
    let mut key = key();
    key.spec.api_ref = Some(water_resources::api_key::ApiRef {
        name: "other".into(),
        namespace: None,
    });
    key.status = Some(water_resources::ApiKeyStatus {
        api: Some(place("other")),
        ..Default::default()
    });
    let both = [own(), api("other", "team", json!({}))];
    let apis = both.map(|api| Arc::new(DeserializeGuard(Ok(api))));
    let of = |subject: &Subject, apis: &[Arc<Installation>]| {
        let member = membership(subject, &Labels::new(), apis, Scope::Cluster);
        let refusal = member.refusal.as_ref();
        let refusal = refusal.map(|refusal| (refusal.reason, refusal.message.clone()));
        (member.place, member.admission, refusal)
    };
    let believed = of(&Subject::whole(&key), &apis);
    assert_eq!(believed, (Some(place("other")), Admission::Admitted, None));
    let mut found = Subject::whole(&key).held_by(place("water-data"));
    let words = "spec.apiRef names the WaterDataApi team/other, but the key was issued at team/water-data and stays \
        there: create another ApiKey for the one that it is meant for, and delete this one";
    let refusal = Some((Reason::ApiMismatch, words.to_owned()));
    let stays = (Some(place("water-data")), Admission::Hindered, refusal);
    assert_eq!(of(&found, &apis), stays);
    assert_eq!(of(&found, &apis[1..]), stays, "that one is gone");
    // As its status then says.
    key.status = Some(water_resources::ApiKeyStatus {
        api: Some(place("water-data")),
        conditions: stated(
            &[],
            vec![Finding::lacks(
                ConditionType::Accepted,
                Reason::ApiMismatch,
                words,
            )],
            1,
            clock::now(),
        ),
        ..Default::default()
    });
    assert_eq!(of(&Subject::whole(&key), &apis), stays);
    // Whom that one does not admit any more is withdrawn.
    found.meta.namespace = Some("elsewhere".into());
    if let Ok(key) = &mut found.key {
        key.metadata.namespace = Some("elsewhere".into());
    }
    assert_eq!(of(&found, &apis).1, Admission::Refused);
}

#[test]
fn none_and_several_are_ambiguous_and_say_what_to_write() {
    let open = json!({ "allowedNamespaces": { "from": "All" } });
    let several = "spec.apiRef is left out and several WaterDataApis admit ApiKeys of namespace team \
        (team/water-data, water/shared): name one of them";
    let none = "spec.apiRef is left out and no WaterDataApi admits ApiKeys of namespace team: \
        create one there, or name one that admits it";
    for (apis, words) in [
        (vec![own(), api("shared", "water", open)], several),
        (vec![], none),
    ] {
        let refusal = (Reason::ApiAmbiguous, words.to_owned());
        assert_eq!(resolved(&key(), &apis), Err(refusal));
    }
}

#[test]
fn another_namespace_needs_an_invitation_and_the_scope_to_accept_it() {
    let selector = json!({ "matchLabels": { "keys": "yes" } });
    let from = json!({ "from": "Selector", "selector": selector });
    let selected = api("water-data", "water", json!({ "allowedNamespaces": from }));
    let admitted = |label, scope| admitted(&key(), label, &selected, scope);
    assert_eq!(admitted("keys=yes", Scope::Cluster), Ok(()));
    let words = "the WaterDataApi water/water-data does not admit ApiKeys of namespace team: create the ApiKey in \
        namespace water, or widen spec.apiKeys.allowedNamespaces there";
    for (label, scope) in [("keys=no", Scope::Cluster), ("keys=yes", Scope::Namespaced)] {
        let refusal = (Reason::NamespaceNotAdmitted, words.to_owned());
        assert_eq!(admitted(label, scope), Err(refusal));
    }
}

#[test]
fn a_bound_account_needs_its_label() {
    let bound = api(
        "water-data",
        "team",
        json!({ "accountBinding": "NamespaceLabel" }),
    );
    let admitted = |label| admitted(&key(), label, &bound, Scope::Namespaced);
    assert_eq!(admitted("account.waterdata.dev/acme="), Ok(()));
    let words = "spec.accountId names an account that namespace team may not name: have a cluster administrator label \
        the namespace with account.waterdata.dev/acme, or name another account";
    let refusal = (Reason::AccountNotBound, words.to_owned());
    assert_eq!(admitted("account.waterdata.dev/other="), Err(refusal));
}

#[test]
fn an_unknown_plan_is_answered_with_the_known_ones() {
    let mut key = key();
    key.spec.plan = "Gold".parse().unwrap();
    let words = "spec.plan is Gold, which the WaterDataApi water-data does not have: name one of Enterprise, Free, \
        or add the plan there";
    let refusal = (Reason::PlanUnknown, words.to_owned());
    assert_eq!(admitted(&key, "", &own(), Scope::Namespaced), Err(refusal));
}

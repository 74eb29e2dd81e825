//! Which ApiKeys are admitted, and the messages for those that are not.

use super::*;
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
    api("water-data", "team", serde_json::json!({}))
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Refusal>) -> (Reason, String) {
    let refusal = result.unwrap_err();
    (refusal.reason, refusal.message)
}

#[test]
fn the_only_api_that_admits_the_namespace_is_taken() {
    let apis = [own(), api("other", "elsewhere", serde_json::json!({}))];
    let resolved = resolve(&key(), &Labels::new(), &apis, Scope::Cluster).unwrap();
    assert_eq!(
        (resolved.namespace.as_str(), resolved.name.as_str()),
        ("team", "water-data")
    );
}

#[test]
fn none_and_several_are_ambiguous_and_say_what_to_write() {
    let open = serde_json::json!({ "allowedNamespaces": { "from": "All" } });
    let apis = [own(), api("shared", "water", open)];
    assert_eq!(
        refusal(resolve(&key(), &Labels::new(), &apis, Scope::Cluster)),
        (
            Reason::ApiAmbiguous,
            "spec.apiRef is left out and several WaterDataApis admit ApiKeys of namespace team \
             (team/water-data, water/shared): name one of them"
                .into()
        )
    );
    assert_eq!(
        refusal(resolve(&key(), &Labels::new(), &[], Scope::Cluster)),
        (
            Reason::ApiAmbiguous,
            "spec.apiRef is left out and no WaterDataApi admits ApiKeys of namespace team: \
             create one there, or name one that admits it"
                .into()
        )
    );
}

#[test]
fn what_was_resolved_once_stays() {
    let mut key = key();
    let place = ApiName {
        namespace: "water".into(),
        name: "first".into(),
    };
    key.status = Some(water_resources::ApiKeyStatus {
        api: Some(place.clone()),
        ..Default::default()
    });
    assert_eq!(
        resolve(&key, &Labels::new(), &[own()], Scope::Cluster),
        Ok(place)
    );
}

#[test]
fn another_namespace_needs_an_invitation_and_the_scope_to_accept_it() {
    let selected = api(
        "water-data",
        "water",
        serde_json::json!({
            "allowedNamespaces": { "from": "Selector", "selector": { "matchLabels": { "keys": "yes" } } },
        }),
    );
    assert_eq!(
        admit(
            &key(),
            &labels(&[("keys", "yes")]),
            &selected,
            Scope::Cluster
        ),
        Ok(())
    );
    let expected = (
        Reason::NamespaceNotAdmitted,
        "the WaterDataApi water/water-data does not admit ApiKeys of namespace team: create the ApiKey in namespace \
         water, or widen spec.apiKeys.allowedNamespaces there"
            .to_owned(),
    );
    assert_eq!(
        refusal(admit(&key(), &Labels::new(), &selected, Scope::Cluster)),
        expected
    );
    assert_eq!(
        refusal(admit(
            &key(),
            &labels(&[("keys", "yes")]),
            &selected,
            Scope::Namespaced
        )),
        expected
    );
}

#[test]
fn a_bound_account_needs_its_label() {
    let bound = api(
        "water-data",
        "team",
        serde_json::json!({ "accountBinding": "NamespaceLabel" }),
    );
    assert_eq!(
        admit(
            &key(),
            &labels(&[("account.waterdata.dev/acme", "")]),
            &bound,
            Scope::Namespaced
        ),
        Ok(())
    );
    assert_eq!(
        refusal(admit(&key(), &Labels::new(), &bound, Scope::Namespaced)),
        (
            Reason::AccountNotBound,
            "spec.accountId names an account that namespace team may not name: have a cluster administrator label the \
             namespace with account.waterdata.dev/acme, or name another account"
                .into()
        )
    );
}

#[test]
fn an_unknown_plan_is_answered_with_the_known_ones() {
    let mut key = key();
    key.spec.plan = "Gold".parse().unwrap();
    assert_eq!(
        refusal(admit(&key, &Labels::new(), &own(), Scope::Namespaced)),
        (
            Reason::PlanUnknown,
            "spec.plan is Gold, which the WaterDataApi water-data does not have: name one of Enterprise, Free, \
             or add the plan there"
                .into()
        )
    );
}

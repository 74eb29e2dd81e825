//! Tests of what a rebuild publishes, and of the ApiKey that gets a hash which several name.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use water_domain::Timestamp;
use water_resources::ApiKeyStatus;
use water_resources::api_key::{Brought, IssuedKey};
use water_resources::water_data_api::AccountBinding;

use super::*;
use crate::conditions::{Finding, stated};
use crate::keys::record::Issuance;
use crate::sample;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn place() -> ApiName {
    ApiName {
        namespace: "team".into(),
        name: "water-data".into(),
    }
}

fn issued(digits: &str) -> IssuedKey {
    IssuedKey {
        revision: 0,
        hash: digits.repeat(32),
        key_id: digits.repeat(6),
        issued_time: at("2026-01-01T00:00:00Z"),
    }
}

/// A Secret with this key.
fn secret(digits: &str) -> StoredSecret {
    StoredSecret {
        meta: Default::default(),
        issued: Issuance::read(&issued(digits)),
        retiring: None,
    }
}

/// A key that a pass has left like this.
fn told(change: impl FnOnce(&mut ApiKeyStatus)) -> ApiKey {
    let mut key = sample::key("acme", "team");
    let mut status = ApiKeyStatus {
        api: Some(place()),
        current: Some(issued("ab")),
        key_id: Some(issued("ab").key_id),
        conditions: conditions(Finding::holds(ConditionType::Synced, Reason::Published, "")),
        ..Default::default()
    };
    change(&mut status);
    key.status = Some(status);
    key
}

fn conditions(finding: Finding) -> Vec<water_resources::Condition> {
    stated(&[], vec![finding], 1, at("2026-01-01T00:00:00Z"))
}

fn refused(aspect: ConditionType, reason: Reason) -> ApiKey {
    let lacks = |aspect| Finding::lacks(aspect, reason, "");
    let mut findings = conditions(lacks(aspect));
    findings.extend(conditions(lacks(ConditionType::Ready)));
    told(|status| status.conditions = findings)
}

/// Admission by the WaterDataApi of the namespace, whatever the status reports.
fn admission(key: &ApiKey) -> Admission {
    let api = sample::api("water-data", "team");
    admitted(key, &Labels::new(), Some(&api), Scope::Cluster)
}

/// The first two digits of each hash that a rebuild publishes; `-` after one that retires.
fn published(key: &ApiKey, in_secret: Option<&StoredSecret>) -> String {
    let entries = entries(key, &place(), admission(key), in_secret, &[]);
    let told = ranked(entries, |entry| entry.hash).map(|entry| {
        let ends = entry.record.retires.map(|at| assert_eq!(at, retires()));
        let hash = entry.hash.to_string();
        hash[..2].to_owned() + ends.map_or("", |()| "-")
    });
    told.collect::<Vec<_>>().join(" ")
}

fn retires() -> Timestamp {
    at("2026-02-01T00:00:00Z")
}

/// Adds this key to the status as the one before the key in force.
fn after(digits: &str) -> impl FnOnce(&mut ApiKeyStatus) {
    let before = Issuance::read(&issued(digits));
    move |status| status.previous = before.map(|before| before.retiring(retires()))
}

/// ab is in force, and this hash is brought along; these are announced, too.
fn brought(digits: &str, announced: &[&str]) -> ApiKey {
    let unrevealed = announced.iter().map(|digits| issued(digits)).collect();
    let mut key = told(|status| status.unrevealed = unrevealed);
    bring(&mut key, digits);
    key
}

fn bring(key: &mut ApiKey, digits: &str) {
    key.spec.material.generated = None;
    key.spec.material.hash = Some(Brought {
        sha256: digits.repeat(32),
        key_id: None,
    });
}

#[test]
#[rustfmt::skip]
fn a_rebuild_publishes_what_an_owner_can_have_or_may_get() {
    let unseen = || told(|status| {
        status.key_id = None;
        status.unrevealed = vec![issued("ef")];
    });
    let begun = || told(|status| status.unrevealed = vec![issued("ef")]);
    let retiring = Issuance::read(&issued("ab")).map(|before| (before, retires()));
    let in_place_of_ab = StoredSecret { retiring, ..secret("ef") };
    let later = at("2026-02-02T00:00:00Z");
    let before = || Issuance::read(&issued("cd"));
    let until = |at| StoredSecret { retiring: before().map(|before| (before, at)), ..secret("ab") };
    let put_off = told(|status| status.previous = before().map(|before| before.retiring(later)));
    let replaced = |digits, announced: &[&str], before| {
        let mut key = brought(digits, announced);
        after(before)(key.status.as_mut().unwrap());
        key
    };
    let cut = |mut key: ApiKey| {
        key.spec.rotation.overlap_seconds = 0;
        key
    };
    for (what, key, in_secret, wanted) in [
        ("it is in force", told(|_| {}), None, "ab"),
        ("a lost leader may reveal either", unseen(), None, "ab ef"),
        ("the Secret has one of them", unseen(), Some(secret("ef")), "ef"),
        ("it was declared elsewhere", told(|status| status.api = None), None, ""),
        ("a Secret that names what nobody announced is not believed", told(|_| {}), Some(secret("cd")), "ab"),
        ("one that was replaced is published until it retires", told(after("cd")), Some(secret("ab")), "ab cd-"),
        ("not longer, though its Secret says so", told(after("cd")), Some(until(later)), "ab cd-"),
        ("or the status does", put_off, Some(until(retires())), "ab cd-"),
        ("a Secret with it that was put back is not newer", told(after("cd")), Some(secret("cd")), "ab cd-"),
        ("as the Secret says, of which no status tells yet", begun(), Some(in_place_of_ab), "ab- ef"),
        ("a brought one", brought("ab", &[]), None, "ab"),
        ("the same beside the one before", replaced("ab", &[], "cd"), None, "ab cd-"),
        ("another is not announced: ab is not replaced yet", brought("cd", &[]), None, "ab"),
        ("it is announced", brought("cd", &["cd"]), None, "ab cd"),
        ("cd was never in force", brought("ef", &["ef", "cd"]), None, "ab ef"),
        ("the status says when it ends", replaced("cd", &["cd"], "ab"), None, "ab- cd"),
        ("the overlap was ended", cut(replaced("cd", &["cd"], "ab")), None, "cd"),
        ("the edit was taken back", replaced("ab", &["cd"], "ab"), None, "ab"),
        ("another ends the overlap", replaced("ef", &["ef"], "cd"), None, "ab ef"),
    ] {
        assert_eq!(published(&key, in_secret.as_ref()), wanted, "{what}");
    }
}

#[test]
fn a_key_that_is_not_admitted_is_left_out_and_a_hindered_one_is_not() {
    let published = |key: &ApiKey, admission| {
        let entries = entries(key, &place(), admission, None, &[]);
        !entries.is_empty()
    };
    for key in [
        told(|_| {}),
        refused(ConditionType::Accepted, Reason::NamespaceNotAdmitted),
        refused(ConditionType::Accepted, Reason::PlanUnknown),
    ] {
        assert!(published(&key, Admission::Admitted), "{:?}", key.status);
        assert!(published(&key, Admission::Hindered), "{:?}", key.status);
        assert!(!published(&key, Admission::Refused), "{:?}", key.status);
    }
}

#[test]
fn a_rebuild_asks_the_water_data_api_and_not_what_a_status_told_of_it() {
    let api = sample::api("water-data", "team");
    let labelled = |labels: &[(&str, &str)]| -> Labels {
        let labels = labels.iter();
        labels
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    };
    let mut bound = api.clone();
    bound.spec.api_keys.account_binding = AccountBinding::NamespaceLabel;
    let of = |key: &ApiKey, api, labels: &Labels| admitted(key, labels, api, Scope::Cluster);
    let key = refused(ConditionType::Accepted, Reason::NamespaceNotAdmitted);
    let (none, account) = (
        labelled(&[]),
        format!("account.waterdata.dev/{}", key.spec.account_id),
    );
    assert_eq!(of(&key, Some(&api), &none), Admission::Admitted);
    assert_eq!(of(&key, Some(&bound), &none), Admission::Refused);
    assert_eq!(
        of(&key, Some(&bound), &labelled(&[(&account, "")])),
        Admission::Admitted
    );
    assert_eq!(of(&key, None, &none), Admission::Hindered);
    let mut stranger = told(|_| {});
    stranger.metadata.namespace = Some("elsewhere".into());
    assert_eq!(of(&stranger, Some(&api), &none), Admission::Refused);
    let mut typo = told(|_| {});
    typo.spec.plan = "Typo".parse().unwrap();
    assert_eq!(of(&typo, Some(&api), &none), Admission::Hindered);
}

#[test]
fn what_hindered_a_key_that_is_admitted_again_restricts_it_no_more() {
    let mut key = refused(ConditionType::Accepted, Reason::PlanUnknown);
    let former = |key: &ApiKey| -> Vec<Entry> {
        let candidates = entries(key, &place(), Admission::Admitted, None, &[]);
        let mut entries: Vec<Entry> = ranked(candidates, |entry| entry.hash).collect();
        entries[0].record.plan = "Gold".parse().unwrap();
        entries[0].record.state = water_keystore::KeyState::Suspended;
        entries
    };
    let former = former(&key);
    let plan = |key: &ApiKey, former: &[Entry]| {
        let former: Vec<&Entry> = former.iter().collect();
        let rebuilt = entries(key, &place(), admission(key), None, &former);
        rebuilt[0].2.record.plan.to_string()
    };
    assert_eq!(plan(&key, &former), "Enterprise");
    key.spec.plan = "Typo".parse().unwrap();
    assert_eq!(plan(&key, &former), "Gold");
}

#[test]
fn a_hindered_key_keeps_its_plan_and_takes_every_restriction() {
    let mut key = refused(ConditionType::Accepted, Reason::PlanUnknown);
    key.spec.plan = "Typo".parse().unwrap();
    key.spec.suspend = true;
    let mut former: Vec<Entry> = entries(&told(|_| {}), &place(), Admission::Admitted, None, &[])
        .into_iter()
        .map(|(_, _, entry)| entry)
        .collect();
    former[0].record.plan = "Gold".parse().unwrap();
    let former: Vec<&Entry> = former.iter().collect();
    let rebuilt = entries(&key, &place(), admission(&key), None, &former);
    let record = &rebuilt[0].2.record;
    assert_eq!(record.plan.as_str(), "Gold");
    assert_eq!(record.state, water_keystore::KeyState::Suspended);
}

#[test]
fn a_key_that_stays_though_its_spec_names_another_water_data_api_is_of_the_one_that_has_it() {
    let other = ApiName {
        name: "other".into(),
        ..place()
    };
    let mut key = refused(ConditionType::Accepted, Reason::ApiMismatch);
    key.spec.suspend = true;
    key.spec.plan = "Free".parse().unwrap();
    key.spec.api_ref = Some(water_resources::api_key::ApiRef {
        name: other.name.clone(),
        namespace: None,
    });
    let former = entries(&told(|_| {}), &place(), Admission::Admitted, None, &[]);
    let former: Vec<&Entry> = former.iter().map(|(_, _, entry)| entry).collect();
    assert_eq!(admission(&key), Admission::Hindered);
    let at = |place: &ApiName| entries(&key, place, admission(&key), None, &former);
    let [(_, _, kept)] = &at(&place())[..] else {
        panic!("one entry");
    };
    let (plan, state) = (&kept.record.plan, kept.record.state);
    assert_eq!(
        (plan.as_str(), state),
        ("Enterprise", water_keystore::KeyState::Suspended)
    );
    assert!(at(&other).is_empty());
}

#[test]
fn a_hash_that_several_name_is_the_ones_in_force_then_the_oldest_ones() {
    let mut key = told(|_| {});
    bring(&mut key, "ab");
    let candidate = |uid: &str, second: i64, change: fn(&mut ApiKeyStatus)| {
        let mut key = key.clone();
        key.metadata.uid = Some(uid.into());
        let created = jiff::Timestamp::from_second(second).unwrap();
        key.metadata.creation_timestamp = Some(Time(created));
        change(key.status.as_mut().unwrap());
        entries(&key, &place(), Admission::Admitted, None, &[]).remove(0)
    };
    let in_force = |_: &mut ApiKeyStatus| {};
    let announced = |status: &mut ApiKeyStatus| status.key_id = None;
    let winner = |candidates: [(Claim, Age, Entry); 2]| {
        let entries: Vec<Entry> = ranked(candidates.into(), |entry| entry.hash).collect();
        assert_eq!(entries.len(), 1);
        entries[0].owner.uid.to_string()
    };
    for (stronger, weaker) in [
        (candidate("b", 2, in_force), candidate("a", 1, announced)),
        (candidate("b", 1, announced), candidate("a", 2, announced)),
        (candidate("a", 1, in_force), candidate("c", 1, in_force)),
    ] {
        let uid = stronger.2.owner.uid.to_string();
        assert_eq!(winner([weaker.clone(), stronger.clone()]), uid);
        assert_eq!(winner([stronger, weaker]), uid);
    }
}

#[test]
fn a_plan_that_is_gone_keeps_its_limits_while_a_key_may_name_it() {
    let declared = plans(&sample::api("water-data", "team"));
    assert_eq!(declared[0].limits.unwrap().requests_per_minute.get(), 120);
    assert_eq!(declared[1].limits, None);
    let mut stored = declared.clone();
    stored[0].name = "Gold".parse().unwrap();
    let names = |key: &ApiKey| -> Vec<String> {
        let kept = retained(
            [Some(key)].into_iter(),
            &place(),
            declared.clone(),
            stored.clone(),
        );
        kept.iter().map(|plan| plan.name.to_string()).collect()
    };
    let mut key = told(|_| {});
    assert_eq!(names(&key), ["Enterprise", "Free"]);
    key.spec.plan = "Gold".parse().unwrap();
    assert_eq!(names(&key), ["Enterprise", "Free", "Gold"]);
    // Others may write the status, which a restore may lack.
    let mut emptied = key.clone();
    emptied.status = None;
    assert_eq!(names(&emptied), ["Enterprise", "Free", "Gold"]);
    // Its record may be on any plan that there was.
    let mut edited = told(|_| {});
    edited.metadata.generation = Some(2);
    assert_eq!(names(&edited), ["Enterprise", "Free", "Gold"]);
    let mut hindered = refused(ConditionType::Accepted, Reason::PlanUnknown);
    hindered.spec.plan = "Typo".parse().unwrap();
    assert_eq!(names(&hindered), ["Enterprise", "Free", "Gold"]);
}

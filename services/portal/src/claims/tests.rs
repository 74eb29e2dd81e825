//! Claims against patterns: a table each.

use serde_json::json;

use super::*;

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap()
}

fn accounts(pattern: &str, values: Value) -> Result<Accounts, ClaimsError> {
    let claims = json!({ "groups": values });
    let default_plan = "Enterprise".parse().unwrap();
    let claim = "groups".parse().unwrap();
    self::pattern(pattern).accounts(&claims, &claim, Some(&default_plan))
}

/// Returns `acme Enterprise Manager`, an account a line.
fn told(pattern: &str, values: Value) -> Vec<String> {
    let grants = accounts(pattern, values).unwrap().grants;
    let line = |grant: &Grant| format!("{} {} {:?}", grant.account, grant.plan, grant.role);
    grants.iter().map(line).collect()
}

#[test]
fn each_value_gives_these_accounts() {
    let groups = "wd/(?<account>[a-z]+)(/(?<plan>[A-Za-z]+))?(/(?<role>[a-z]+))?";
    let any = Pattern::DEFAULT;
    let table: [(&str, Value, &[&str]); 13] = [
        (
            any,
            json!(["water:acme:Enterprise"]),
            &["acme Enterprise Manager"],
        ),
        (any, json!("water:acme:Free"), &["acme Free Manager"]),
        (
            any,
            json!(["water:acme:Free:viewer"]),
            &["acme Free Viewer"],
        ),
        (
            any,
            json!(["water:acme:Free", "water:acme:Free:viewer"]),
            &["acme Free Viewer"],
        ),
        (
            any,
            json!(["water:acme:Free:viewer", "water:acme:Free"]),
            &["acme Free Viewer"],
        ),
        (
            any,
            json!(["water:b:Free", "staff", "water:a:Enterprise", 7, null]),
            &["a Enterprise Manager", "b Free Manager"],
        ),
        (any, json!(["xwater:acme:Free"]), &[]),
        (any, json!(["water:acme:Free\n"]), &[]),
        (any, json!(["water:acme:Free:admin"]), &[]),
        (any, json!([]), &[]),
        (any, json!({"water:acme:Free": true}), &[]),
        (groups, json!(["wd/acme"]), &["acme Enterprise Manager"]),
        (
            groups,
            json!(["wd/acme/Free/viewer"]),
            &["acme Free Viewer"],
        ),
    ];
    for (pattern, values, expected) in table {
        assert_eq!(
            told(pattern, values.clone()),
            expected,
            "{pattern} on {values}"
        );
    }
}

#[test]
fn a_claim_is_a_name_or_a_pointer() {
    let claims = json!({
        "https://example.org/groups": ["water:url:Free"],
        "realm": {"roles": ["water:nested:Free"]},
        "/odd": ["water:odd:Free"],
    });
    for (name, expected) in [
        ("https://example.org/groups", Some("url")),
        ("/realm/roles", Some("nested")),
        ("realm", None),
        ("/odd", None),
        ("missing", None),
    ] {
        let claim = name.parse().unwrap();
        let found = pattern(Pattern::DEFAULT).accounts(&claims, &claim, None);
        let found = found.unwrap().grants;
        let account = found.first().map(|grant| grant.account.as_str());
        assert_eq!(account, expected, "{name}");
    }
}

#[test]
fn values_that_match_and_cannot_be_read_are_left_out() {
    for (pattern, value, reason) in [
        (
            Pattern::DEFAULT,
            "water:a b:Free".to_owned(),
            LeftOut::Account,
        ),
        (
            Pattern::DEFAULT,
            "water:acme:Free plan".to_owned(),
            LeftOut::Plan,
        ),
        (
            Pattern::DEFAULT,
            format!("water:{}:Free", "a".repeat(300)),
            LeftOut::Long,
        ),
    ] {
        let found = accounts(pattern, json!([value, "water:good:Free"])).unwrap();
        assert_eq!(found.left_out, [reason]);
        assert_eq!(found.grants.len(), 1);
    }
}

#[test]
fn without_a_plan_in_value_and_settings_there_is_no_account() {
    let claims = json!({ "groups": ["acme"] });
    let claim = "groups".parse().unwrap();
    let found = pattern("(?<account>.+)").accounts(&claims, &claim, None);
    assert_eq!(found.unwrap().left_out, [LeftOut::NoPlan]);
}

#[test]
fn an_account_on_two_plans_refuses_everything() {
    let found = accounts(
        Pattern::DEFAULT,
        json!([
            "water:acme:Free",
            "water:good:Free",
            "water:acme:Enterprise"
        ]),
    );
    let error = found.unwrap_err();
    assert_eq!(error.as_str(), "claims_ambiguous");
    let text = error.to_string();
    assert!(
        text.contains("Free") && text.contains("Enterprise"),
        "{text}"
    );
}

#[test]
fn a_role_that_does_not_exist_refuses_everything() {
    let found = accounts(
        "(?<account>[a-z]+):(?<role>[a-z]+)",
        json!(["acme:admin", "b:viewer"]),
    );
    assert_eq!(found, Err(ClaimsError::Role("acme".parse().unwrap())));
}

#[test]
fn fifty_accounts_are_enough() {
    let values = |count: usize| {
        (0..count)
            .map(|n| format!("water:a{n}:Free"))
            .collect::<Vec<_>>()
    };
    let noise = |count| (0..count).map(|n| format!("staff-{n}"));
    let fifty: Vec<_> = values(50).into_iter().chain(noise(1000)).collect();
    assert_eq!(told(Pattern::DEFAULT, json!(fifty)).len(), 50);
    let more = accounts(Pattern::DEFAULT, json!(values(51)));
    assert_eq!(more, Err(ClaimsError::TooMany));
}

#[test]
fn a_pattern_that_cannot_be_used_is_refused() {
    for (text, error) in [
        ("(", InvalidPattern::Syntax),
        ("(?<account>a)|(?<account>b)", InvalidPattern::Syntax),
        ("a)|(?<account>b", InvalidPattern::Syntax),
        ("(?x)(?<account>a) # end", InvalidPattern::Syntax),
        ("(?<konto>a)", InvalidPattern::Account),
    ] {
        assert_eq!(text.parse::<Pattern>().unwrap_err(), error, "{text}");
    }
}

#[test]
fn the_readmes_recipes_give_what_they_say() {
    let path = "/water/(?<account>[^/]+)/(?<plan>[^/]+)(/(?<role>viewer))?";
    let table = [
        (path, "/water/acme/Free", "acme Free Manager"),
        (path, "/water/acme/Free/viewer", "acme Free Viewer"),
        (
            "water-(?<account>.+)",
            "water-acme",
            "acme Enterprise Manager",
        ),
    ];
    let readme = include_str!("../../README.md");
    for (pattern, value, expected) in table {
        assert!(readme.contains(&format!("`{pattern}`")), "{pattern}");
        assert_eq!(told(pattern, json!([value])), [expected], "{pattern}");
    }
}

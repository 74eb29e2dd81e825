//! A wrong ApiKey is refused by the API server, rule by rule.

use anyhow::Result;
use serde_json::{Value, json};
use water_e2e::{ApiKey, Cluster, refusal};

/// SHA-256 of nothing that anybody uses as a key.
const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// What the API server adds where it stopped after a field of a wrong type.
const NOT_ALL_CHECKED: &str = "* <nil>: Invalid value: null: some validation rules were not checked because the \
     object was invalid; correct the existing errors to complete validation";

fn wrong() -> ApiKey {
    ApiKey::named("wrong")
}

async fn assert_refused(key: &ApiKey, expected: &str) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let refused = refusal(cluster.kubectl.apply(&key.manifest()))?;
    assert_eq!(
        refused,
        format!("The ApiKey \"{}\" is invalid: {expected}", key.name())
    );
    Ok(())
}

/// A refusal after which the API server does not look at the rules between fields.
async fn assert_refused_early(key: &ApiKey, expected: &str) -> Result<()> {
    assert_refused(key, &format!("\n* {expected}\n{NOT_ALL_CHECKED}")).await
}

/// A change that an existing key's rules forbid.
async fn assert_change_refused(key: ApiKey, change: &Value, expected: &str) -> Result<()> {
    let cluster = Cluster::shared().await?;
    cluster.delete(key.name())?;
    cluster.kubectl.apply(&key.manifest())?;
    let object = format!("apikey/{}", key.name());
    let refused = refusal(cluster.kubectl.patch(&object, &json!({ "spec": change })))?;
    assert_eq!(
        refused,
        format!("The ApiKey \"{}\" is invalid: {expected}", key.name())
    );
    Ok(())
}

#[tokio::test]
async fn an_account_is_an_identifier() -> Result<()> {
    let expected = "spec.accountId: Invalid value: \"a b\": spec.accountId in body should match \
         '^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$'";
    assert_refused(&wrong().of_account("a b"), expected).await
}

#[tokio::test]
async fn an_account_and_a_plan_are_required() -> Result<()> {
    assert_refused_early(
        &wrong().without("accountId"),
        "spec.accountId: Required value",
    )
    .await?;
    assert_refused_early(&wrong().without("plan"), "spec.plan: Required value").await
}

#[tokio::test]
async fn a_plan_is_a_name() -> Result<()> {
    let expected = "spec.plan: Invalid value: \"1st\": spec.plan in body should match '^[A-Za-z][A-Za-z0-9-]{0,62}$'";
    assert_refused(&wrong().on_plan("1st"), expected).await
}

#[tokio::test]
async fn a_name_leaves_room_for_the_secrets() -> Result<()> {
    let expected = "<nil>: Invalid value: metadata.name has more than 52 characters, and the key's Secret is \
         named after it: choose a shorter name";
    assert_refused(&ApiKey::named(&"a".repeat(53)), expected).await
}

#[tokio::test]
async fn a_field_that_does_not_exist_is_refused() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = wrong().with("colour", "blue");
    let refused = refusal(cluster.kubectl.apply(&key.manifest()))?;
    let expected = "Error from server (BadRequest): error when creating \"STDIN\": ApiKey in version \"v1\" cannot \
         be handled as a ApiKey: strict decoding error: unknown field \"spec.colour\"";
    assert_eq!(refused, expected);
    Ok(())
}

#[tokio::test]
async fn material_is_either_generated_or_a_hash() -> Result<()> {
    let expected = "spec.material: Invalid value: spec.material needs exactly one of generated and hash: remove \
         one, or leave material out for a generated key";
    let both = json!({ "generated": {}, "hash": { "sha256": HASH } });
    assert_refused(&wrong().with("material", both), expected).await?;
    assert_refused(&wrong().with("material", json!({})), expected).await
}

#[tokio::test]
async fn a_hash_is_64_hexadecimal_digits() -> Result<()> {
    let expected = "spec.material.hash.sha256: Invalid value: \"ABC\": spec.material.hash.sha256 in body should \
         match '^[0-9a-f]{64}$'";
    assert_refused(
        &wrong().with("material", json!({ "hash": { "sha256": "ABC" } })),
        expected,
    )
    .await
}

#[tokio::test]
async fn a_secrets_name_is_one_that_kubernetes_accepts() -> Result<()> {
    let expected = "spec.material.generated.secretName: Invalid value: \"Big_Name\": \
         spec.material.generated.secretName in body should match '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$'";
    let material = json!({ "generated": { "secretName": "Big_Name" } });
    assert_refused(&wrong().with("material", material), expected).await
}

#[tokio::test]
async fn a_deletion_policy_is_one_of_two() -> Result<()> {
    let expected = "spec.material.generated.deletionPolicy: Unsupported value: \"Keep\": supported values: \
         \"Delete\", \"Retain\"";
    let material = json!({ "generated": { "deletionPolicy": "Keep" } });
    assert_refused_early(&wrong().with("material", material), expected).await
}

#[tokio::test]
async fn an_overlap_is_shorter_than_the_period() -> Result<()> {
    let expected = "spec.rotation.overlapSeconds: Invalid value: spec.rotation.overlapSeconds is not below \
         spec.rotation.periodSeconds, so two old keys would work at once: shorten the overlap or lengthen the period";
    assert_refused(
        &wrong().with("rotation", json!({ "periodSeconds": 3600 })),
        expected,
    )
    .await
}

#[tokio::test]
async fn revisions_and_periods_have_bounds() -> Result<()> {
    let expected = "spec.rotation.revision: Invalid value: -1: spec.rotation.revision in body should be greater \
         than or equal to 0";
    assert_refused(
        &wrong().with("rotation", json!({ "revision": -1 })),
        expected,
    )
    .await?;
    let expected = "spec.rotation.periodSeconds: Invalid value: 59: spec.rotation.periodSeconds in body should be \
         greater than or equal to 60";
    let rotation = json!({ "periodSeconds": 59, "overlapSeconds": 1 });
    assert_refused(&wrong().with("rotation", rotation), expected).await
}

#[tokio::test]
async fn a_brought_key_is_not_rotated_by_a_revision() -> Result<()> {
    let expected = "spec.rotation: Invalid value: spec.rotation.revision and spec.rotation.periodSeconds are for \
         generated keys only: remove them, and rotate a brought key by editing spec.material.hash.sha256";
    let brought = wrong().with("material", json!({ "hash": { "sha256": HASH } }));
    assert_refused(
        &brought.with("rotation", json!({ "revision": 1 })),
        expected,
    )
    .await
}

#[tokio::test]
async fn a_key_expires_after_it_becomes_valid() -> Result<()> {
    let expected = "spec.expirationTime: Invalid value: spec.expirationTime is not after spec.notBefore, so the \
         key would never work: set a later one";
    let key = wrong().with("notBefore", "2026-02-01T00:00:00Z");
    assert_refused(
        &key.with("expirationTime", "2026-01-01T00:00:00Z"),
        expected,
    )
    .await
}

#[tokio::test]
async fn a_time_is_a_time() -> Result<()> {
    let expected = "spec.expirationTime: Invalid value: \"soon\": spec.expirationTime in body must be of type \
         date-time: \"soon\"";
    assert_refused_early(&wrong().with("expirationTime", "soon"), expected).await
}

#[tokio::test]
async fn a_keys_account_cannot_be_changed() -> Result<()> {
    let expected = "spec.accountId: Invalid value: spec.accountId cannot be changed, since a key belongs to one \
         account for life: create another ApiKey for the other account";
    let change = json!({ "accountId": "other" });
    assert_change_refused(ApiKey::named("fixed-account"), &change, expected).await
}

#[tokio::test]
async fn a_keys_api_cannot_be_changed() -> Result<()> {
    let expected = "spec.apiRef: Invalid value: spec.apiRef cannot be changed, since the key is known to that \
         WaterDataApi only: create another ApiKey for the other one";
    let key = ApiKey::named("fixed-api").with("apiRef", json!({ "name": "water-data" }));
    assert_change_refused(key, &json!({ "apiRef": { "name": "other" } }), expected).await
}

#[tokio::test]
async fn a_keys_api_cannot_be_contradicted_once_it_is_decided() -> Result<()> {
    let expected = "<nil>: Invalid value: spec.apiRef names another WaterDataApi than status.api, where the key was \
         issued: write the same, or create another ApiKey";
    let cluster = Cluster::shared().await?;
    cluster.issue(&ApiKey::named("decided-api")).await?;
    let change = json!({ "spec": { "apiRef": { "name": "other" } } });
    let refused = refusal(cluster.kubectl.patch("apikey/decided-api", &change))?;
    assert_eq!(
        refused,
        format!("The ApiKey \"decided-api\" is invalid: {expected}")
    );
    Ok(())
}

#[tokio::test]
async fn a_generated_key_cannot_become_a_brought_one() -> Result<()> {
    let expected = "spec.material: Invalid value: spec.material cannot switch between generated and hash, since \
         that would be another key: create another ApiKey";
    let change = json!({ "material": { "generated": null, "hash": { "sha256": HASH } } });
    assert_change_refused(ApiKey::named("fixed-material"), &change, expected).await
}

#[tokio::test]
async fn a_keys_secret_cannot_be_renamed() -> Result<()> {
    let expected = "spec.material.generated.secretName: Invalid value: spec.material.generated.secretName cannot be \
         changed, since the key's text is in that Secret alone: create another ApiKey";
    let change = json!({ "material": { "generated": { "secretName": "other" } } });
    assert_change_refused(ApiKey::named("fixed-secret"), &change, expected).await
}

#[tokio::test]
async fn a_revision_cannot_decrease() -> Result<()> {
    let expected = "spec.rotation.revision: Invalid value: spec.rotation.revision cannot decrease, since a rotation \
         cannot be undone: keep it, or raise it to rotate";
    let key = ApiKey::named("fixed-revision").with("rotation", json!({ "revision": 2 }));
    assert_change_refused(key, &json!({ "rotation": { "revision": 1 } }), expected).await
}

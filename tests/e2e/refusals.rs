//! Wrong ApiKeys as kubectl shows their refusal: the field, its value and the remedy. Every rule is tested by the
//! operator's tests, on the same API server.

use anyhow::Result;
use serde_json::json;
use water_e2e::{ApiKey, Cluster, refusal};

#[tokio::test]
async fn a_wrong_apikey_is_refused_with_field_value_and_remedy() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let kubectl = &cluster.kubectl;
    let wrong = || ApiKey::named("wrong");
    let expected = "The ApiKey \"wrong\" is invalid: spec.accountId: Invalid value: \"a b\": spec.accountId in body \
         should match '^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$'";
    let refused = refusal(kubectl.apply(&wrong().of_account("a b").manifest()))?;
    assert_eq!(refused, expected);

    let expected = "Error from server (BadRequest): error when creating \"STDIN\": ApiKey in version \"v1\" cannot \
         be handled as a ApiKey: strict decoding error: unknown field \"spec.colour\"";
    let refused = refusal(kubectl.apply(&wrong().with("colour", "blue").manifest()))?;
    assert_eq!(refused, expected);

    cluster.issue(&ApiKey::named("decided-api")).await?;
    let expected = "The ApiKey \"decided-api\" is invalid: <nil>: Invalid value: spec.apiRef names another WaterDataApi \
         than status.api, where the key was issued: write the same, or create another ApiKey";
    let change = json!({ "spec": { "apiRef": { "name": "other" } } });
    let refused = refusal(kubectl.patch("apikey/decided-api", &change))?;
    assert_eq!(refused, expected);
    Ok(())
}

//! Comparison of the definitions that the API server has with those of this operator. A definition of an earlier version
//! drops the fields that it lacks from each write, and reports nothing.

use std::convert::Infallible;
use std::sync::Mutex;
use std::time::Duration;

use hyper::Request;
use kube::Client;
use serde_json::Value;
use tokio::time::sleep;
use tracing::{info, warn};
use water_resources::definitions;

use crate::backoff::{chance, spread};
use crate::conditions::Failure;
use crate::inquiry::Inquiry;
use crate::lock::lock;
use crate::metrics::Metrics;

/// Interval between two comparisons.
const EVERY: Duration = Duration::from_secs(60);
/// Path of the served schema, readable with any account of the API server.
const SERVED: &str = "/openapi/v3/apis/waterdata.dev/v1";
/// Prefix of the names of schemas in that document.
const PACKAGE: &str = "dev.waterdata.v1";
/// Fields that a message names.
const NAMED: usize = 5;

/// Fields that the API server's definitions lack, as the last comparison found.
#[derive(Debug)]
pub struct Definitions {
    lacking: Mutex<Vec<String>>,
    read: Inquiry,
}

impl Definitions {
    pub fn new(metrics: &Metrics) -> Self {
        let unread = "the API server's definitions cannot be read, so that nobody notices if they lack fields";
        Self {
            lacking: Mutex::default(),
            read: Inquiry::new(unread, metrics),
        }
    }

    /// Names of fields, such as `ApiKey.status.reissues`, in a sentence's form; `None`: none is lacking.
    pub fn lacking(&self) -> Option<String> {
        let lacking = lock(&self.lacking);
        let more = lacking.len().saturating_sub(NAMED);
        let named = lacking.iter().take(NAMED).map(String::as_str);
        let named = named.collect::<Vec<_>>().join(", ");
        match (lacking.len(), more) {
            (0, _) => None,
            (_, 0) => Some(named),
            (_, more) => Some(format!("{named} and {more} more")),
        }
    }

    /// Compares now and then, and reports each change of the outcome.
    pub async fn follow(&self, client: &Client, report: impl Fn()) -> Infallible {
        loop {
            let served = served(client).await;
            self.read.note(&served);
            if let Ok(served) = served
                && self.note(lacking_in(&served))
            {
                report();
            }
            sleep(spread(EVERY, chance())).await;
        }
    }

    /// The last comparison, if the definitions could not be read for it.
    pub fn unread(&self) -> Option<Failure> {
        self.read.failure()
    }

    /// Returns whether the outcome is another than before.
    fn note(&self, lacking: Vec<String>) -> bool {
        let is_news = *lock(&self.lacking) != lacking;
        if is_news && lacking.is_empty() {
            info!("the API server's definitions have all fields");
        } else if is_news {
            let fields = lacking.join(", ");
            warn!(fields, "the API server's definitions lack fields");
        }
        *lock(&self.lacking) = lacking;
        is_news
    }
}

async fn served(client: &Client) -> kube::Result<Value> {
    let request = Request::get(SERVED).body(Vec::new());
    client
        .request(request.map_err(kube::Error::HttpError)?)
        .await
}

/// Fields of this operator's definitions that a document of the API server does not have.
fn lacking_in(served: &Value) -> Vec<String> {
    let mut lacking = Vec::new();
    for definition in definitions() {
        let kind = &definition.spec.names.kind;
        let schema = &served["components"]["schemas"][format!("{PACKAGE}.{kind}")];
        let versions = definition.spec.versions.iter();
        let known =
            versions.filter_map(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
        for known in known {
            // It was made from Rust's types, which all can be written as JSON.
            let known = serde_json::to_value(known).unwrap_or_default();
            compare(&known, schema, kind, &mut lacking);
        }
    }
    lacking
}

/// Adds the paths of properties that `known` has and `served` lacks.
fn compare(known: &Value, served: &Value, path: &str, lacking: &mut Vec<String>) {
    for (name, property) in known["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match served["properties"].get(name) {
            None => lacking.push(path),
            Some(served) => compare(property, served, &path, lacking),
        }
    }
    for nested in ["items", "additionalProperties"] {
        if known[nested].is_object() {
            compare(&known[nested], &served[nested], path, lacking);
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::Config;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;

    /// The document of an API server that has this operator's definitions.
    fn document() -> Value {
        let mut schemas = json!({});
        for definition in definitions() {
            let schema = definition.spec.versions[0].schema.clone().unwrap();
            let name = format!("{PACKAGE}.{}", definition.spec.names.kind);
            schemas[name] = json!(schema.open_api_v3_schema);
        }
        json!({ "components": { "schemas": schemas } })
    }

    #[test]
    fn the_same_definitions_lack_nothing() {
        assert_eq!(lacking_in(&document()), Vec::<String>::new());
    }

    #[test]
    fn a_field_that_an_earlier_version_lacks_is_named_however_deep() {
        let mut earlier = document();
        let schemas = &mut earlier["components"]["schemas"];
        let key = &mut schemas["dev.waterdata.v1.ApiKey"]["properties"];
        let mut remove = |pointer: &str, field: &str| {
            let properties = key.pointer_mut(pointer).unwrap();
            properties.as_object_mut().unwrap().remove(field).unwrap();
        };
        remove("/status/properties", "reissues");
        remove("/status/properties/conditions/items/properties", "reason");
        assert_eq!(
            lacking_in(&earlier),
            ["ApiKey.status.conditions.reason", "ApiKey.status.reissues"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn definitions_that_cannot_be_read_are_counted_and_reported() {
        let client = Client::try_from(Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap();
        let metrics = Metrics::default();
        let definitions = Definitions::new(&metrics);
        assert_eq!(definitions.unread(), None);
        let followed = timeout(EVERY, definitions.follow(&client, || {})).await;
        assert!(followed.is_err());
        let unread = definitions.unread().unwrap();
        let means = &unread.means;
        assert!(means.contains("definitions cannot be read"), "{means}");
        assert!(metrics.api_server_failures() > 0);
    }

    #[test]
    fn a_message_names_five_fields() {
        let definitions = Definitions::new(&Metrics::default());
        assert_eq!(definitions.lacking(), None);
        assert!(definitions.note(vec!["a".into()]));
        assert!(!definitions.note(vec!["a".into()]));
        assert_eq!(definitions.lacking().as_deref(), Some("a"));
        definitions.note("abcdefg".chars().map(String::from).collect());
        let named = "a, b, c, d, e and 2 more";
        assert_eq!(definitions.lacking().as_deref(), Some(named));
    }
}

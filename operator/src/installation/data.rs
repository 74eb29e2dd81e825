//! What the operator asks the pods: what data is loaded, and whether people can sign in.

use serde::Deserialize;

use super::question::{self, QuestionError};

/// Rows of each public dataset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct Loaded {
    /// Départements with a stress record.
    pub stress: u64,
    /// Départements with a risk record.
    pub risk: u64,
}

/// Whether the identity provider can be used, as a pod of the portal found it.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Provider {
    /// Nothing: it has not looked yet.
    pub usable: Option<bool>,
    /// What is wrong.
    pub problem: String,
    /// Whether what is wrong is the portal's client id or secret.
    pub client_refused: bool,
}

/// Asks the departements of the WaterDataApi `name`: `GET /data`.
pub async fn loaded(name: &str, namespace: &str) -> Result<Loaded, QuestionError> {
    question::ask(&format!("{name}-departements"), namespace, "/data").await
}

/// Asks its portal: `GET /provider`.
pub async fn provider(name: &str, namespace: &str) -> Result<Provider, QuestionError> {
    question::ask(&format!("{name}-portal"), namespace, "/provider").await
}

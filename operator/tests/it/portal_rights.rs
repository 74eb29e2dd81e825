//! Tests of the portal's rights to write, at a real API server with the portal's own token, under the Role and the
//! admission policy that the chart renders.

mod changes;
mod creates;
mod later;
mod metadata;
mod role;

use std::fs;
use std::path::PathBuf;

use anyhow::ensure;
use serde_json::{Value, json};
use water_harness::scratch_directory;

use crate::rights;
use crate::world::{API, PATIENCE, World, brought, key};

const ACCOUNT: &str = "water-data-portal";
const VALUES: [&str; 3] = [
    "portal.enabled=true",
    "portal.oidc.issuer=https://id.example",
    "portal.oidc.existingSecret=portal-client",
];

/// The portal, with the rights that it has in one namespace.
struct Portal {
    world: World,
    kubeconfig: PathBuf,
}

impl Portal {
    /// Creates the portal once the API server enforces the policy: until then it refuses nothing.
    async fn new(world: World) -> anyhow::Result<Self> {
        let template = Some("templates/portal.yaml");
        let manifests = rights::rendered(&world.namespace, template, &VALUES)?;
        world.cluster.apply(&manifests)?;
        let kubeconfig = scratch_directory("portal")?.join("kubeconfig");
        fs::write(
            &kubeconfig,
            world.cluster.kubeconfig_of(&world.namespace, ACCOUNT)?,
        )?;
        let portal = Self { world, kubeconfig };
        let enforced = async || {
            let generated = portal.create(&key("probe"), &["--dry-run=server"]);
            ensure!(portal.is_refused_by_policy(&generated), "{generated:?}");
            Ok(())
        };
        portal
            .world
            .wait("the policy to be in force", PATIENCE, enforced)
            .await?;
        Ok(portal)
    }

    async fn in_namespace(name: &str) -> anyhow::Result<Self> {
        Self::new(World::new(name).await?).await
    }

    /// kubectl with the portal's token.
    fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let kubeconfig = self.kubeconfig.to_string_lossy();
        let mut all = vec!["--kubeconfig", &kubeconfig];
        all.extend(arguments);
        self.world.kubectl(&all)
    }

    fn create(&self, object: &Value, more: &[&str]) -> anyhow::Result<String> {
        let file = scratch_directory("portal")?.join("object.json");
        fs::write(&file, object.to_string())?;
        let file = file.to_string_lossy();
        let mut arguments = vec!["create", "--validate=false", "-f", &file];
        arguments.extend(more);
        self.kubectl(&arguments)
    }

    fn patch(&self, name: &str, patch: &Value) -> anyhow::Result<String> {
        let patch = patch.to_string();
        self.kubectl(&["patch", "apikey", name, "--type=merge", "--patch", &patch])
    }

    fn is_refused_by_policy(&self, outcome: &anyhow::Result<String>) -> bool {
        let policy = format!("ValidatingAdmissionPolicy '{}-water'", self.world.namespace);
        outcome
            .as_ref()
            .is_err_and(|error| error.to_string().contains(&policy))
    }

    /// A key as the portal makes it.
    fn own(&self, name: &str) -> Value {
        let mut key = brought(name, 'a');
        key["metadata"] = json!({
            "name": name,
            "labels": { "app.kubernetes.io/managed-by": "water-portal" },
            "annotations": { "waterdata.dev/requested-by": "subject" },
        });
        key["spec"]["apiRef"] = json!({ "name": API });
        key["spec"]["description"] = "prod".into();
        key["spec"]["expirationTime"] = "2030-01-01T00:00:00Z".into();
        key["spec"]["material"]["hash"]["keyId"] = "AAAAbbbb0000".into();
        key
    }
}

/// `object` with a merge patch applied, as RFC 7396 has it.
fn merged(mut object: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    if !object.is_object() {
        object = json!({});
    }
    for (name, value) in patch {
        let place = &mut object[name];
        *place = merged(place.take(), value);
    }
    let fields = object.as_object_mut().expect("it was made one");
    fields.retain(|_, value| !value.is_null());
    object
}
